// A server for tests. Its argument is its options as JSON; each process that is ready prints a line of JSON. The first message of a task is the
// agent's work: `exit`, `wait`, or JSON with the number of chunks and the pause after each in milliseconds. A chunk has its number, and the process
// that yielded it. With `finish`, the turn continues until that file exists. With `until`, the turn yields chunks until that file exists. With
// `hold`, the turn stops after two chunks until that file exists.

import { existsSync } from "node:fs";
import cluster from "node:cluster";
import {
  defineAgent,
  fileBlobs,
  jsonRpcBinding,
  restBinding,
  serve,
  standardLogger,
  text,
  type ServeOptions,
  type Store,
} from "@parley/node";
import { grpcBinding } from "@parley/grpc";
import { migrateToNext } from "./next-release.ts";
import { postgresStore } from "@parley/sql/postgres";
import { sqliteStore } from "@parley/sql/sqlite";

export interface ManyOptions extends Omit<ServeOptions, "store"> {
  /** The path of the SQLite file. */
  readonly file?: string;
  /** The folder for large files. By default, the database stores them. */
  readonly files?: string;
  /** The URL of PostgreSQL. */
  readonly database?: string;
  /** Makes the program do more than serve. */
  readonly mode?: "fails" | "fails later" | "signals" | "leaves" | "gRPC apart" | "next release" | "hurries";
  /** Whether the store polls for changes by other processes. Default: it relies only on wake-ups. */
  readonly looks?: boolean;
}

interface Work {
  readonly chunks: number;
  readonly pause: number;
  readonly finish?: string;
  readonly until?: string;
  readonly hold?: string;
}

const { file, files, database, mode, looks = false, ...options } = JSON.parse(process.argv[2] ?? "{}") as ManyOptions;

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    });
  });

const agent = defineAgent<{ checkpoint: number }>({
  name: "Counter",
  description: "Says which process works.",
  version: "1.0.0",
  skills: [],
  resumable: true,
  capabilities: { streaming: true },
  async *onMessage(turn) {
    yield turn.working(String(process.pid));
    if (turn.text === "exit") process.exit(3);
    if (turn.text === "wait") {
      const go = yield* turn.waitFor("go");
      yield turn.artifact({ parts: [text(JSON.stringify(go))] });
      return;
    }
    const { chunks, pause: ms, finish, until, hold } = JSON.parse(turn.text) as Work;
    for (let at = turn.checkpoint ?? 0; until === undefined ? at < chunks : !existsSync(until); at += 1) {
      const parts = [text(`${at}:${process.pid}`)];
      const chunk =
        at === 0 ? turn.artifact({ artifactId: "chunks", parts, open: true }) : turn.append("chunks", parts);
      yield [chunk, turn.saveCheckpoint(at + 1)];
      await pause(ms, turn.signal);
      while (hold !== undefined && at === 1 && !existsSync(hold)) await pause(20, turn.signal);
    }
    while (finish !== undefined && !existsSync(finish)) await pause(20, turn.signal);
  },
});

/** Work that is due after half a minute. With `hurries`, this work runs as soon as all processes serve. */
const late = new Map<NodeJS.Timeout, () => void>();
if (mode === "hurries") {
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const noting = (run: () => void, ms?: number): NodeJS.Timeout => {
    const timer = set(run, ms);
    if (ms === 30_000) late.set(timer, run);
    return timer;
  };
  globalThis.setTimeout = Object.assign(noting, set);
  globalThis.clearTimeout = (timer) => {
    late.delete(timer as NodeJS.Timeout);
    clear(timer);
  };
}
if (mode === "fails" && cluster.isWorker) throw new Error("This program fails where it serves");
// The first processes serve; later processes do not.
if (mode === "fails later" && (cluster.worker?.id ?? 0) > 2) process.exit(7);

/** Turns polling off, so that a process learns of a change only if another process announces it. */
const never = 3_600_000;
const logger = standardLogger();
const open = async (): Promise<Store> => {
  if (mode === "next release") await migrateToNext({ ...(file && { file }), ...(database && { database }) });
  if (database !== undefined)
    return postgresStore({ database, logger, connections: 3, ...(!looks && { pollInterval: never }) });
  return sqliteStore({
    path: file ?? ":memory:",
    logger,
    synchronous: "NORMAL",
    ...(!looks && { watchInterval: never }),
  });
};
const apart = [jsonRpcBinding(), restBinding(), { binding: grpcBinding(), port: 0 }];
const server = await serve(agent, {
  port: 0,
  store: open,
  // Each chunk must remain separate, because it names the process that wrote it.
  mergeTextParts: false,
  ...(files !== undefined && { blobs: { store: fileBlobs(files), inlineBytes: 0 } }),
  ...(mode === "gRPC apart" ? { bindings: apart } : { grpc: true }),
  ...options,
});

const print = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const { url, ports, agents } = server;
print({ primary: cluster.isPrimary, pid: process.pid, url, ports, names: agents.map(({ card }) => card.name) });
if (cluster.isPrimary && mode === "hurries") {
  for (const run of late.values()) run();
  print({ later: true });
}
if (cluster.isPrimary && (mode === "signals" || mode === "leaves")) {
  process.stdin.on("data", (line) => {
    if (mode === "leaves") return void server.close({ grace: 60_000 }).then(() => process.exit(0));
    const [taskId, data] = JSON.parse(String(line)) as [string, string];
    if (taskId === "delete") {
      return void server.deleteOwner({ subject: data }).then((erased) => print({ erased }));
    }
    if (taskId === "export") return void exported(data).then((lines) => print({ exported: lines }));
    server.signal(taskId, "go", data).then(
      () => print({ signaled: taskId }),
      (error: unknown) => print({ refused: (error as { code: string }).code }),
    );
  });
}

/** Returns the types of the lines of an export, and the first type of a second export, which is abandoned immediately. */
async function exported(subject: string): Promise<readonly string[]> {
  let text = "";
  for await (const piece of server.exportOwner({ subject })) text += piece;
  const types = text
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { readonly type: string }).type);
  for await (const piece of server.exportOwner({ subject })) {
    types.push((JSON.parse(piece.split("\n", 1)[0] ?? "") as { readonly type: string }).type);
    break;
  }
  return types;
}
