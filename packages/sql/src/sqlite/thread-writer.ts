import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { A2AError } from "@parley/a2a";
import { unavailable } from "@parley/a2a/store";
import type { Identity } from "./files.ts";
import { closeGate, openGate, type Gate } from "./gate.ts";
import type { WriteOptions } from "./open.ts";
import type { Writer } from "./writer.ts";

export interface ThreadWriter extends Writer {
  /** Which files the database must be from now on: the thread begins before there are any. */
  keepTo(identity: Identity): Promise<void>;
}

/** What is asked of the thread: a call of the writer. It answers them in order. */
export type Request = {
  [Call in keyof ThreadWriter]: { readonly call: Call; readonly input: Parameters<ThreadWriter[Call]> };
}[keyof ThreadWriter];

/** `failure`: an error of SQLite's, which does not come across as one. */
export type Answer =
  | { readonly value: unknown }
  | { readonly error: unknown }
  | { readonly failure: { readonly message: string; readonly code: string } };

/** Whether this is a source, as in tests alone: the thread is then the one that is built, since Node reads no TypeScript there. */
const isSource = import.meta.url.endsWith(".ts");

/** Where the thread begins: beside this file. `undefined` in a program that was put into one file. */
export function threadFile(): URL | undefined {
  // Named so that no file of a bundle is taken for it.
  const name = isSource ? "../../dist/sqlite/sqlite-thread.js" : "sqlite-thread.js";
  const file = new URL(name, import.meta.url);
  return file.protocol === "file:" && existsSync(fileURLToPath(file)) ? file : undefined;
}

export interface ThreadData {
  readonly options: WriteOptions;
  readonly gate: Gate;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/**
 * Writes in a thread of its own: what SQLite does, and above all its waiting for the disk, then holds nobody up who
 * answers requests. The thread is told to end and never stopped, and a process that ends without that waits for its transaction.
 */
export function threadWriter(file: URL, options: WriteOptions): ThreadWriter {
  const gate = openGate();
  const thread = new Worker(file, {
    workerData: { options, gate } satisfies ThreadData,
    // The condition under which sources import sources is not for what is built.
    ...(isSource && { execArgv: [] }),
  });
  const end = (): void => closeGate(gate);
  process.on("exit", end);
  const waiting: Waiting[] = [];
  let cause: unknown;
  let failure: A2AError | undefined;
  // Whoever waits for an answer keeps the process alive, not the thread.
  thread.unref();
  thread.on("message", (answer: Answer) => {
    const asked = waiting.shift();
    if (waiting.length === 0) thread.unref();
    if ("value" in answer) asked?.resolve(answer.value);
    else if ("error" in answer) asked?.reject(answer.error);
    else asked?.reject(Object.assign(new Error(answer.failure.message), { code: answer.failure.code }));
  });
  thread.on("error", (error) => (cause = error));
  const ended = new Promise<void>((resolve) => {
    thread.once("exit", () => {
      process.off("exit", end);
      failure = unavailable("The thread that writes has ended", cause);
      for (const { reject } of waiting.splice(0)) reject(failure);
      resolve();
    });
  });

  function ask(request: Request): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (failure !== undefined) return reject(failure);
      thread.postMessage(request);
      if (waiting.length === 0) thread.ref();
      waiting.push({ resolve, reject });
    });
  }

  return {
    keepTo: (...input) => ask({ call: "keepTo", input }) as Promise<void>,
    append: (...input) => ask({ call: "append", input }) as ReturnType<Writer["append"]>,
    sweep: (...input) => ask({ call: "sweep", input }) as ReturnType<Writer["sweep"]>,
    moved: (...input) => ask({ call: "moved", input }) as ReturnType<Writer["moved"]>,
    async close() {
      await ask({ call: "close", input: [] });
      thread.ref();
      await ended;
    },
  };
}
