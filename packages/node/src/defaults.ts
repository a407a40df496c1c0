import { mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { getHeapStatistics } from "node:v8";
import { jsonRpcBinding, memoryStore, restBinding, silentLogger, type Logger, type ServerBinding } from "@parley/a2a";
import type { Store } from "@parley/a2a/store";
import { standardLogger, type LogLevel } from "./logger.ts";

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

/** JSON-RPC, REST and, where `@parley/grpc` is installed, gRPC. */
export async function defaultBindings(): Promise<readonly ServerBinding[]> {
  const grpc = await optional(grpcName, () => import("@parley/grpc"));
  return [jsonRpcBinding(), restBinding(), ...(grpc === undefined ? [] : [grpc.grpcBinding()])];
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
  await mkdir(dirname(path), { recursive: true });
  return sqlite.sqliteStore({ path, logger });
}

/** An eighth of the heap, at most 1 GiB: the limit in bytes of JSON for running tasks, and in bytes for large answers. */
export function heapShare(): number {
  return Math.min(2 ** 30, Math.floor(getHeapStatistics().heap_size_limit / 8));
}
