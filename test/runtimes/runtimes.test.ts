import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { serve as serveHono } from "@hono/node-server";
import { build } from "esbuild";
import { Hono } from "hono";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { memoryStore, serve, type Server } from "@parley/node";
import { countingAgent, countingHandler } from "./agent.ts";
import { findProgram } from "./binaries.ts";
import { check, expected, type Report } from "./check.ts";

/** A runtime that can run the agent and the client outside of this process. */
interface Runtime {
  readonly version: string;
  /** Serves the agent with the core's `fetch(Request)`. Resolves to the agent's URL. */
  serve(): Promise<string>;
  /** Runs the client on this runtime, against the agent at `url`. */
  check(url: string): Promise<readonly Report[]>;
}

const here = import.meta.dirname;
/** Only the variables that programs need to start, without this machine's other settings, such as proxies. */
const env = { PATH: process.env["PATH"] ?? "", HOME: tmpdir(), DENO_NO_UPDATE_CHECK: "1", DO_NOT_TRACK: "1" };
const children: ChildProcess[] = [];
const folders: string[] = [];
let node: Server;

beforeAll(async () => {
  node = await serve(countingAgent, { port: 0, signals: false, store: memoryStore() });
});

afterEach(async () => {
  await Promise.all(children.splice(0).map(end));
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true })));
});

afterAll(() => node.close());

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** Starts a program. Resolves to the first line of its output on the file descriptor `stream`. */
async function start(file: string, args: readonly string[], stream: 1 | 3): Promise<string> {
  const child = spawn(file, args, { cwd: here, env, stdio: ["ignore", "pipe", "inherit", "pipe"] });
  children.push(child);
  let text = "";
  const said = new Promise<string>((resolve, reject) => {
    child.stdio[stream]?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes("\n")) resolve(text.split("\n")[0] ?? "");
    });
    child.on("error", reject).on("exit", (code) => reject(new Error(`${file} ended with ${code}`)));
  });
  return said;
}

/** Returns a runtime that runs a TypeScript file. Without an argument the file serves the agent; with a URL it checks the agent there. */
async function scripted(scope: string, path: readonly string[], args: readonly string[]): Promise<Runtime> {
  const { file, version } = await findProgram(scope, ...path);
  return {
    version,
    serve: () => start(file, args, 1),
    async check(url) {
      const { stdout } = await promisify(execFile)(file, [...args, url], { cwd: here, env });
      return JSON.parse(stdout) as readonly Report[];
    },
  };
}

async function workerd(): Promise<Runtime> {
  const { file, version } = await findProgram("@cloudflare", "bin", "workerd");
  const startWorker = async (): Promise<string> => {
    const folder = await mkdtemp(join(tmpdir(), "parley-workerd-"));
    folders.push(folder);
    const outfile = join(folder, "worker.js");
    const entryPoints = [join(here, "worker.ts")];
    // The build tool for Workers also reads these fields of a package.
    const mainFields = ["browser", "module", "main"];
    await build({
      entryPoints,
      outfile,
      bundle: true,
      format: "esm",
      platform: "neutral",
      mainFields,
      logLevel: "error",
    });
    const config = join(folder, "worker.capnp");
    await copyFile(join(here, "worker.capnp"), config);
    const said = await start(file, ["serve", config, "--control-fd=3"], 3);
    return `http://127.0.0.1:${(JSON.parse(said) as { port: number }).port}`;
  };
  return {
    version,
    serve: startWorker,
    async check(url) {
      const worker = await startWorker();
      const answer = await fetch(`${worker}/check?url=${encodeURIComponent(url)}`);
      if (!answer.ok) throw new Error(await answer.text());
      return (await answer.json()) as readonly Report[];
    },
  };
}

const deno = ["run", "--no-lock", "--node-modules-dir=manual", "--allow-net=127.0.0.1", "deno.ts"];

describe.each([
  ["Bun", () => scripted("@oven", ["bin", "bun"], ["bun.ts"])],
  ["Deno", () => scripted("@deno", ["deno"], deno)],
  ["workerd", workerd],
])("on %s", (name, find) => {
  it("serves an agent, and a client calls it", async () => {
    const runtime = await find();
    expect(await check(await runtime.serve())).toEqual(expected);
    expect(await runtime.check(node.url)).toEqual(expected);
    process.stdout.write(`${name} (${runtime.version}): served an agent, and called one\n`);
  });
});

describe("on Bun's own SQLite", () => {
  it("the driver and the store pass their contracts, including random histories", async () => {
    const { file } = await findProgram("@oven", "bin", "bun");
    const args = ["test", "--timeout", "120000", "--conditions=@parley/source", "./bun-store.ts"];
    // The test report goes to stderr. The program exits with an error if a case fails.
    const { stderr } = await promisify(execFile)(file, args, { cwd: here, env: { ...env, TMPDIR: tmpdir() } });
    expect(stderr).toMatch(/^ 0 fail$/m);
    expect(Number(/^ (\d+) pass$/m.exec(stderr)?.[1])).toBeGreaterThan(150);
  });
});

describe("in Hono", () => {
  it("serves an agent beside the routes of the application", async () => {
    const app = new Hono();
    const server = serveHono({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 });
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const handler = countingHandler(`http://127.0.0.1:${port}/agents`);
    app.get("/", (context) => context.text("home"));
    app.all("/agents/*", (context) => handler.fetch(context.req.raw));
    try {
      expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("home");
      expect(await check(`http://127.0.0.1:${port}/agents`)).toEqual(expected);
    } finally {
      await handler.close();
      server.close();
    }
    process.stdout.write("Hono: served an agent\n");
  });
});
