import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { A2AError } from "@parley/a2a/internal/model/index";
import { unavailable } from "@parley/server/internal/store/index";
import type { ConnectionOptions } from "./libraries.ts";
import type { Identity } from "./files.ts";
import type { Writer } from "./writer.ts";

export interface ThreadWriter extends Writer {
  /** Tells the thread which files it must write to. The files do not exist yet when the thread starts. */
  keepTo(identity: Identity): Promise<void>;
}

/** A call of the writer. The thread answers calls in their order. */
export type Request = {
  [Call in keyof ThreadWriter]: { readonly call: Call; readonly input: Parameters<ThreadWriter[Call]> };
}[keyof ThreadWriter];

/** `failure` is an SQLite error as data, because posting the error itself would lose its code. */
export type Answer =
  | { readonly value: unknown }
  | { readonly error: unknown }
  | { readonly failure: { readonly message: string; readonly code: string } };

export interface ThreadData {
  readonly options: ConnectionOptions;
  readonly gate: Gate;
}

/** Whether this file is the TypeScript source, as in tests. The thread runs the built file even then, because Node may not support TypeScript. */
const isSource = import.meta.url.endsWith(".ts");

/** The file of the thread. `undefined` in a program bundled into one file. */
export function threadFile(): URL | undefined {
  // The name is a variable, so that bundlers do not treat the file as an asset.
  const name = isSource ? "../../dist/sqlite/sqlite-thread.js" : "sqlite-thread.js";
  const file = new URL(name, import.meta.url);
  return file.protocol === "file:" && existsSync(fileURLToPath(file)) ? file : undefined;
}

/**
 * A writer in a thread, so that waiting for the disk does not block requests. The thread is never terminated: `close` asks it to end. A
 * process that exits without `close` waits for the current transaction.
 */
export function threadWriter(file: URL, options: ConnectionOptions): ThreadWriter {
  const gate: Gate = new Int32Array(new SharedArrayBuffer(4));
  const thread = new Worker(file, {
    workerData: { options, gate } satisfies ThreadData,
    // The built thread must not use the export condition for sources.
    ...(isSource && { execArgv: [] }),
  });
  const end = (): void => closeGate(gate);
  process.on("exit", end);
  const waiting: { resolve(value: unknown): void; reject(error: unknown): void }[] = [];
  let cause: unknown;
  let failure: A2AError | undefined;
  // Only a call in progress keeps the process alive.
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
      failure = unavailable("The writer thread has exited", cause);
      for (const { reject } of waiting.splice(0)) reject(failure);
      resolve();
    });
  });

  const ask =
    <Call extends keyof ThreadWriter>(call: Call) =>
    (...input: Parameters<ThreadWriter[Call]>) =>
      new Promise((resolve, reject) => {
        if (failure !== undefined) return reject(failure);
        thread.postMessage({ call, input });
        if (waiting.length === 0) thread.ref();
        waiting.push({ resolve, reject });
      }) as ReturnType<ThreadWriter[Call]>;

  return {
    keepTo: ask("keepTo"),
    append: ask("append"),
    sweep: ask("sweep"),
    tidy: ask("tidy"),
    scrub: ask("scrub"),
    index: ask("index"),
    note: ask("note"),
    operate: ask("operate"),
    probe: ask("probe"),
    moved: ask("moved"),
    async close() {
      await ask("close")();
      thread.ref();
      await ended;
    },
  };
}

/**
 * Two bits shared by both threads. `libsql` aborts the process if a thread is terminated inside the library. So the exiting process
 * waits until the thread is outside, and keeps it from entering again.
 */
export type Gate = Int32Array<SharedArrayBuffer>;

const inside = 1;
const closed = 2;

/** Milliseconds after which the process exits even if the disk does not answer. */
const exitTimeout = 10_000;

/** Called in the thread. Runs `body` inside the gate. Never returns once the gate is closed. */
export function pass<T>(gate: Gate, body: () => T): T {
  if ((Atomics.or(gate, 0, inside) & closed) !== 0) {
    leave(gate);
    Atomics.wait(gate, 0, closed);
  }
  try {
    return body();
  } finally {
    leave(gate);
  }
}

function leave(gate: Gate): void {
  Atomics.and(gate, 0, ~inside);
  Atomics.notify(gate, 0);
}

/** Called in the exiting process. Blocks until the thread is outside, because asynchronous code no longer runs. */
function closeGate(gate: Gate): void {
  if ((Atomics.or(gate, 0, closed) & inside) !== 0) Atomics.wait(gate, 0, inside | closed, exitTimeout);
}
