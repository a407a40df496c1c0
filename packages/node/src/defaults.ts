import { mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { getHeapStatistics } from "node:v8";
import { silentLogger, isLoopback, type Logger } from "@parley/a2a/internal/base/index";
import { auditLog } from "@parley/a2a/internal/protocol/index";
import { jsonRpcBinding, restBinding, type ServerBinding, type HandlerOptions } from "@parley/server/internal/handler";
import type { Store } from "@parley/server/internal/store/index";
import { nodeDialer } from "./client/dialer.ts";
import type { BindingOnPort } from "./listen.ts";
import { standardLogger } from "./logger.ts";
import type { ConsoleServing, GrpcServing, ServeOptions } from "./serve-options.ts";

/* Defaults of the options of `serve()`. */

/** Loads an optional package; `undefined` if it is not installed. Throws if it is installed and cannot be loaded. */
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

/** The bindings of a server: from its options, or JSON-RPC, REST and, if requested, gRPC. */
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

const consoleName = "@parley/console";

/** The routes of a server: from its options and, if requested, of the console. */
export async function routesOn({
  routes,
  console: wanted = false,
  operators = false,
}: Pick<ServeOptions, "console" | "operators" | "routes">): Promise<Pick<HandlerOptions, "routes">> {
  if (wanted === false) return routes === undefined ? {} : { routes };
  const { path } = consoleServing(wanted);
  if (typeof routes === "function")
    throw new TypeError("With the option `console`, `routes` must be a list: [{ path, answer }]");
  const loaded = await optional(consoleName, () => import("@parley/console"));
  if (loaded === undefined) throw new Error(`The option \`console\` needs ${consoleName}: npm install ${consoleName}`);
  const { path: at = "/ops", authenticator } = operators === true ? {} : operators || {};
  const own = {
    ...(path !== undefined && { path }),
    ...(operators !== false && { operators: { path: at, ...(authenticator && { authenticator }) } }),
  };
  return { routes: [...(routes ?? []), ...loaded.consoleRoutes(own)] };
}

/** The option `console`. JavaScript can pass anything. */
function consoleServing(wanted: unknown): ConsoleServing {
  if (wanted === true) return {};
  if (typeof wanted === "object" && wanted !== null && !Array.isArray(wanted)) {
    const { path } = wanted as ConsoleServing;
    if (path === undefined || /^(?:\/[\w.~-]+)+$/.test(path)) return wanted;
  }
  throw new TypeError(
    `The option \`console\` must be true, false or { path: "/console" }; got ${JSON.stringify(wanted)}`,
  );
}

/** The logger of the options, or one that writes to standard error. */
export function defaultLogger({ logger = "info" }: Pick<ServeOptions, "logger">): Logger {
  if (logger === false) return silentLogger;
  return typeof logger === "string" ? standardLogger({ level: logger }) : logger;
}

/** The option `audit`. Default: in development, on a terminal, the default logger prints a line for each event of the audit. */
export function auditOn({ audit, logger }: Pick<ServeOptions, "audit" | "logger">, to: Logger): ServeOptions["audit"] {
  const isOther = typeof logger === "object" || logger === false || process.env["NODE_ENV"] === "production";
  return audit ?? (process.stderr.isTTY && !isOther ? auditLog(to) : undefined);
}

/** The default database, below the working directory. */
const file = join(".parley", "parley.db");

/** Opens SQLite in a file. Loaded on demand, because a server with another store does not need it. */
export async function defaultStore(logger: Logger): Promise<Store> {
  const { sqliteStore } = await import("@parley/sql/sqlite");
  const path = resolve(file);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  return sqliteStore({ path, logger });
}

/** An eighth of the heap, at most 1 GiB. Limits the JSON of running tasks, and the size of large answers, in bytes. */
export function heapShare(): number {
  return Math.min(2 ** 30, Math.floor(getHeapStatistics().heap_size_limit / 8));
}

type PushOption = HandlerOptions["push"];

/** The environment variable for keys, used if no option sets them. */
const variable = "PARLEY_KEYS";

/**
 * Completes the option `push` of `serve()` for the handler: adds the keys of the environment, and a dialer that pins addresses.
 *
 * @param isLocal - Whether only this machine reaches the server. `publicUrl` cannot tell, because it may name `localhost` although the server
 * listens on `0.0.0.0`.
 */
export function pushOn(push: PushOption, isLocal: boolean): PushOption {
  if (push === undefined || push === false) return push;
  const options = push === true ? {} : push;
  const keys = options.keys ?? environmentKeys();
  if (keys === undefined && !isLocal) {
    throw new Error(
      "The server can be reached from other machines, and `push` has no keys, which seal the secrets of webhooks and sign. Set " +
        `\`push.keys\`, or the environment variable ${variable}, to 32 random bytes in base64: openssl rand -base64 32`,
    );
  }
  return {
    dialer: nodeDialer(),
    ...options,
    ...(keys !== undefined && { keys }),
    ...(!isLocal && { net: { allowLoopback: false, ...options.net } }),
  };
}

/** Adds the key in `.parley` to `push`, so that webhooks survive a restart, unless keys are set or `NODE_ENV` is production. */
export async function withDevelopmentKey(
  push: PushOption,
  { publicUrl, developmentKey: isWanted = true }: Pick<ServeOptions, "developmentKey" | "publicUrl">,
  { isLocal, store, logger }: { readonly isLocal: boolean; readonly store: Store; readonly logger: Logger },
): Promise<PushOption> {
  if (typeof push !== "object" || push.keys !== undefined || !isLocal || !store.durable) return push;
  // A proxy on this machine makes the server reachable from other machines.
  const isPublic = publicUrl !== undefined && !(URL.canParse(publicUrl) && isLoopback(new URL(publicUrl).hostname));
  if (isPublic || !isWanted || process.env["NODE_ENV"] === "production") return push;
  const { CannotMakeKey, developmentKey } = await import("./development-key.ts");
  const folder = resolve(".parley");
  try {
    const key = await developmentKey(folder);
    logger.info(`Webhooks use the development key in ${folder}: keep it out of git, and set ${variable} in production`);
    return { ...push, keys: [key] };
  } catch (cause) {
    if (!(cause instanceof CannotMakeKey)) throw cause;
    logger.warn("Failed to make a development key; webhooks with secrets end with this process", { cause });
    return push;
  }
}

/** Completes the option `authorization` of `serve()` for the handler: adds the keys of the environment, unless `push` has keys. */
export function authorizationOn(
  authorization: HandlerOptions["authorization"] = {},
  push: PushOption,
): HandlerOptions["authorization"] {
  const keys = typeof push === "object" && push.keys !== undefined ? undefined : environmentKeys();
  return keys === undefined ? authorization : { keys, ...authorization };
}

/**
 * Completes the option `blobs` of `serve()` for the handler: adds the keys of the environment, unless `push` has keys.
 *
 * @param shared - The key that several processes on a loopback address share if no other is set, so that each accepts the links of all.
 */
export function blobsOn(blobs: HandlerOptions["blobs"], push: PushOption, shared?: string): HandlerOptions["blobs"] {
  const keys =
    typeof push === "object" && push.keys !== undefined
      ? undefined
      : (environmentKeys() ?? (shared === undefined ? undefined : [shared]));
  return blobs === undefined || keys === undefined ? blobs : { keys, ...blobs };
}

/** Keys separated by commas, the current one first. */
function environmentKeys(): readonly string[] | undefined {
  const keys = (process.env[variable] ?? "").split(",").map((key) => key.trim());
  const given = keys.filter((key) => key !== "");
  return given.length === 0 ? undefined : given;
}
