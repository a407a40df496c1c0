import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { Client, type Answer, type Request } from "./client.ts";
import { GrpcClient } from "./grpc.ts";
import { inFull } from "../counts.ts";
import { compiled } from "../programs.ts";
import type { Outcome } from "./outcome.ts";
import type { Stats } from "./server.ts";

const connections = 16;

/** The seed, set in the environment to repeat a run. */
export const seed: number = Number(process.env["FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 32));

/** The process of the fuzzed server, with its clients. */
export class Fuzzed {
  client!: Client;
  grpc!: GrpcClient;
  /** The output of the process. */
  said = "";
  /** The problems, each kind once. */
  readonly problems = new Set<string>();
  #child!: ChildProcess;

  async start(args: readonly string[]): Promise<void> {
    this.#child = fork(compiled(fileURLToPath(new URL("server.ts", import.meta.url))), args, {
      execArgv: ["--expose-gc"],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on("data", (chunk: Buffer) => (this.said += chunk.toString()));
    const [{ port }] = (await Promise.race([
      once(this.#child, "message"),
      once(this.#child, "exit").then(() => expect.fail(`the server ended: ${this.said}`)),
    ])) as [{ port: number }];
    this.client = new Client(port, connections);
    this.grpc = new GrpcClient(port);
  }

  async stop(): Promise<void> {
    this.client.close();
    this.grpc.close();
    const ended = once(this.#child, "exit");
    this.#child.kill();
    await ended;
  }

  async stats(): Promise<Stats> {
    const answer = once(this.#child, "message");
    this.#child.send("stats");
    return ((await answer) as [Stats])[0];
  }

  /** Sends a request, and reads the response. If the response is never allowed, this is a problem of `name`. */
  ask(name: string, request: Request, read: (answer: Answer) => Outcome): Promise<Outcome | undefined> {
    return this.noting(name, async () => {
      const answer = await this.client.request(request);
      if (answer.status >= 500) this.problems.add(`${name}: ${answer.status} ${answer.body.slice(0, 200)}`);
      return read(answer);
    });
  }

  async noting(name: string, ask: () => Promise<Outcome>): Promise<Outcome | undefined> {
    try {
      const outcome = await ask();
      if (!outcome.accepted && outcome.code === "InvalidParams" && outcome.fields.length === 0) {
        this.problems.add(`${name}: InvalidParams names no field: ${outcome.message}`);
      }
      return outcome;
    } catch (error) {
      this.problems.add(`${name}: ${String(error)}`);
      return undefined;
    }
  }

  /** The server's figures. Throws if there are problems, or if the server has logged warnings. */
  async sound(): Promise<Stats> {
    const stats = await this.stats();
    const wrong = [...[...this.problems].slice(0, 20), ...stats.errors, this.said].filter((text) => text !== "");
    if (wrong.length > 0 || this.#child.exitCode !== null) throw new Error(wrong.join("\n"));
    return stats;
  }
}

/** The maximum size of an item in a memory store, in bytes. */
const storedBytes = 4 * 1024;

/**
 * Expects that the server holds at most a tenth more memory than `before`, in addition to the items that it has stored since then
 * (random ids make some requests new). Only long runs check resident memory, because V8 releases it late.
 */
export function expectNoGrowth(before: Stats | undefined, after: Stats): void {
  expect(before).toBeDefined();
  if (before === undefined) return;
  const stored = (after.appended - before.appended) * storedBytes;
  expect(after.live).toBeLessThanOrEqual(before.live * 1.1 + stored);
  if (inFull) expect(after.resident).toBeLessThanOrEqual(before.resident * 1.1 + stored);
}

/** Starts the server for the tests of the current block. */
export function fuzzed(store: "memory" | "SQLite"): Fuzzed {
  const server = new Fuzzed();
  let folder = "";
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "parley-fuzz-"));
    await server.start(store === "SQLite" ? [join(folder, "fuzz.db")] : []);
  });
  beforeEach(() => server.problems.clear());
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  return server;
}

/** Runs the cases of `list`, as many in parallel as there are connections. */
export async function through<T>(list: Iterable<T>, each: (item: T) => Promise<unknown> | undefined): Promise<void> {
  const items = list[Symbol.iterator]();
  await Promise.all(
    Array.from({ length: connections }, async () => {
      for (let next = items.next(); next.done !== true; next = items.next()) await each(next.value);
    }),
  );
}
