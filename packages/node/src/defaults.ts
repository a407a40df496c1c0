import { mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { getHeapStatistics } from "node:v8";
import { jsonRpcBinding, restBinding, type ServerBinding } from "@parley/server/internal/handler";
import { memoryStore, type Store } from "@parley/server/internal/store/index";
import { silentLogger, type Logger } from "@parley/a2a/internal/base/index";
import type { BindingOnPort } from "./listen.ts";
import { standardLogger, type LogLevel } from "./logger.ts";
import type { GrpcServing, ServeOptions } from "./serve-options.ts";

/* What a server uses where an option is absent. */

/** Loads an optional package; `undefined` where it is not installed. Throws where it is installed and cannot be loaded. */
export async function optional<Module>(name: string, load: () => Promise<Module>): Promise<Module | undefined> {
  try {
    return await load();
  } catch (cause) {
    const missing = cause instanceof Error && "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND";
    if (missing && cause.message.includes(name)) return undefined;
    throw cause;
  }
}

/** The package with the binding of gRPC. */
export const grpcName = "@parley/grpc";

/** The bindings of a server: those of its options, or JSON-RPC, REST and, where it is asked for, gRPC. */
export async function bindingsOf({
  bindings,
  grpc = false,
}: Pick<ServeOptions, "bindings" | "grpc">): Promise<readonly (ServerBinding | BindingOnPort)[]> {
  if (grpc === false) return bindings ?? [jsonRpcBinding(), restBinding()];
  if (bindings !== undefined)
    throw new TypeError("The options `bindings` and `grpc` exclude each other: add grpcBinding() to `bindings`");
  const { port, ...options } = grpcServing(grpc);
  const loaded = await optional(grpcName, () => import("@parley/grpc"));
  if (loaded === undefined) throw new Error(`The option \`grpc\` needs ${grpcName}: npm install ${grpcName}`);
  const binding = loaded.grpcBinding(options);
  return [jsonRpcBinding(), restBinding(), port === undefined ? binding : { binding, port }];
}

/** The option `grpc`. JavaScript can pass anything. */
function grpcServing(grpc: unknown): GrpcServing {
  if (grpc === true) return {};
  if (typeof grpc === "object" && grpc !== null && !Array.isArray(grpc)) return grpc;
  throw new TypeError(`The option \`grpc\` must be true, false or { port, url }; got ${JSON.stringify(grpc)}`);
}

interface LogOptions {
  readonly logger?: Logger | false;
  readonly logLevel?: LogLevel;
}

/** The logger of the options, or one that writes to standard error. */
export function defaultLogger({ logger, logLevel }: LogOptions): Logger {
  if (logger === false) return silentLogger;
  return logger ?? standardLogger({ ...(logLevel !== undefined && { level: logLevel }) });
}

/** Below the working directory. */
const file = join(".parley", "parley.db");

const inMemory =
  "Tasks are kept in memory and end with this process: install @parley/sql to keep them on disk, or pass `store: memoryStore()` where that is meant";

/** A store on disk where `@parley/sql` is installed. Otherwise a store in memory, with a warning. */
export async function defaultStore(options: LogOptions, logger: Logger): Promise<Store> {
  const sqlite = await optional("@parley/sql", () => import("@parley/sql/sqlite"));
  if (sqlite === undefined) {
    // Without a log it is a warning of the process, because otherwise lost tasks would be the first sign.
    const isSilent = options.logger === false || (options.logger === undefined && options.logLevel === "error");
    if (isSilent) process.emitWarning(inMemory, { code: "PARLEY_MEMORY_STORE" });
    else logger.warn(inMemory);
    return memoryStore();
  }
  const path = resolve(file);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  return sqlite.sqliteStore({ path, logger });
}

/** An eighth of the heap, at most 1 GiB: the limit in bytes of JSON for running tasks, and in bytes for large answers. */
export function heapShare(): number {
  return Math.min(2 ** 30, Math.floor(getHeapStatistics().heap_size_limit / 8));
}
