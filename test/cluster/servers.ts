import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { fileURLToPath } from "node:url";
import { afterEach, expect } from "vitest";
import type { StreamResponse } from "@parley/a2a";
import type { ManyOptions } from "./many.ts";
import { compiled } from "../programs.ts";

/** The line that a serving process prints. */
interface Line {
  readonly primary?: boolean;
  readonly pid: number;
  readonly url: string;
  readonly ports: Readonly<Record<string, number>>;
  readonly names: readonly string[];
}

/** A running program of `many.ts`. */
export interface Program {
  readonly child: ChildProcess;
  /** The number of processes that serve in addition to the first process. `0`: the first process serves. */
  readonly count: number;
  /** The lines that the program has printed. */
  readonly lines: readonly (Line & Readonly<Record<string, unknown>>)[];
  /** The lines of the program's log. */
  readonly log: readonly { readonly level: string; readonly message: string; readonly [field: string]: unknown }[];
  /** Returns the text on the program's standard error. */
  readonly errors: () => string;
  readonly ended: Promise<readonly [code: number | null, signal: NodeJS.Signals | null]>;
}

const script = compiled(fileURLToPath(new URL("many.ts", import.meta.url)));

/** Returns a function that starts a program, which ends after its test. */
export function useServers(): (options: ManyOptions, env?: Record<string, string>) => Program {
  const children: ChildProcess[] = [];
  afterEach(async () => {
    await Promise.all(
      children.splice(0).map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        child.kill("SIGKILL");
        await once(child, "exit");
      }),
    );
  });
  return (options, env = {}) => {
    const child = spawn(process.execPath, [script, JSON.stringify(options)], { env: { ...process.env, ...env } });
    children.push(child);
    const ended = new Promise<[number | null, NodeJS.Signals | null]>((resolve) =>
      child.on("close", (code, signal) => resolve([code, signal])),
    );
    const [out, errors] = [reading(child.stdout), reading(child.stderr)];
    return {
      child,
      count: typeof options.processes === "number" && options.processes > 1 ? options.processes : 0,
      ended,
      errors,
      get lines() {
        return jsonLines(out()) as Program["lines"];
      },
      get log() {
        return jsonLines(errors()) as Program["log"];
      },
    };
  };
}

function reading(stream: NodeJS.ReadableStream): () => string {
  let text = "";
  stream.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  return () => text;
}

function jsonLines(text: string): readonly unknown[] {
  const lines = text.split("\n").slice(0, -1);
  return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as unknown);
}

/** Resolves to the program's line once all of its processes serve. */
export async function ready(program: Program): Promise<Line> {
  let ended = false;
  void program.ended.then(() => (ended = true));
  const find = (): Line | undefined => program.lines.find(({ primary }) => primary === true);
  const all = (): boolean => find() !== undefined && serving(program).length >= program.count;
  await expect.poll(() => ended || all(), { interval: 10 }).toBe(true);
  const line = find();
  if (line === undefined || !all()) throw new Error(`The program has ended: ${program.errors()}`);
  return line;
}

/** Returns the ids of the processes that serve, from the lines that they printed. */
export function serving(program: Program): readonly number[] {
  return program.lines.filter(({ primary }) => primary === false).map(({ pid }) => pid);
}

/** Sends a request on a separate connection, so that the next process answers it. */
export async function call(url: string, body?: object): Promise<{ status: number; text: string }> {
  const outgoing = request(url, {
    method: body === undefined ? "GET" : "POST",
    agent: false,
    headers: { "content-type": "application/json" },
  });
  outgoing.end(body && JSON.stringify(body));
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of incoming.setEncoding("utf8")) text += chunk as string;
  return { status: incoming.statusCode ?? 0, text };
}

export interface TaskJson {
  readonly id: string;
  readonly status: { readonly state: string; readonly message?: { readonly parts: readonly { text: string }[] } };
  readonly artifacts?: readonly { readonly parts: readonly { text: string }[] }[];
}

/** Sends a message. If `blocking` is false, the server returns the task as soon as it exists. */
export async function send(url: string, work: string | object, blocking = true): Promise<TaskJson> {
  const text = typeof work === "string" ? work : JSON.stringify(work);
  const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] };
  const answer = await call(`${url}/message:send`, { message, configuration: { returnImmediately: !blocking } });
  expect(answer.status, answer.text).toBe(200);
  return (JSON.parse(answer.text) as { task: TaskJson }).task;
}

/** Collects the numbers of chunks in order of arrival, and the processes that yielded the chunks. */
export class Heard {
  readonly chunks: number[] = [];
  readonly pids = new Set<number>();
  state = "";

  add(event: StreamResponse): void {
    this.state = event.statusUpdate?.status.state ?? event.task?.status.state ?? this.state;
    // After their server was killed, subscriptions and repeated sends start with the current task.
    if (event.task !== undefined) this.chunks.length = 0;
    const artifacts = event.task?.artifacts ?? [event.artifactUpdate?.artifact];
    for (const part of artifacts.flatMap((artifact) => artifact?.parts ?? [])) {
      const [chunk = "", pid = ""] = (part.text ?? "").split(":");
      this.chunks.push(Number(chunk));
      this.pids.add(Number(pid));
    }
  }
}

export function upTo(count: number): readonly number[] {
  return Array.from({ length: count }, (_, at) => at);
}
