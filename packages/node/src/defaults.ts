import { mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { getHeapStatistics } from "node:v8";
import { jsonRpcBinding, restBinding, type ServerBinding } from "@parley/server/internal/handler";
import type { Store } from "@parley/server/internal/store/index";
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

/** SQLite in a file. It is loaded here, because a server with a store of its own does not need it. */
export async function defaultStore(logger: Logger): Promise<Store> {
  const { sqliteStore } = await import("@parley/sql/sqlite");
  const path = resolve(file);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  return sqliteStore({ path, logger });
}

/** An eighth of the heap, at most 1 GiB: the limit in bytes of JSON for running tasks, and in bytes for large answers. */
export function heapShare(): number {
  return Math.min(2 ** 30, Math.floor(getHeapStatistics().heap_size_limit / 8));
}
