import type { ServerOptions as TlsOptions } from "node:https";
import { isIPv6 } from "node:net";
import process from "node:process";
import { getHeapStatistics } from "node:v8";
import {
  createHandler,
  jsonRpcBinding,
  restBinding,
  silentLogger,
  type Agent,
  type AgentMount,
  type Handler,
  type HandlerOptions,
  type Logger,
  type ServedAgent,
} from "@parley/a2a";
import type { UniversalHandler } from "@parley/a2a/protocol";
import { beforeRouter, isLoopback } from "@parley/a2a/transport";
import type { Store } from "@parley/a2a/store";
import { addressOf, urlOf } from "./bind.ts";
import { defaultStore } from "./default-store.ts";
import { dispatch } from "./dispatch.ts";
import { grpcAddress, grpcAt, grpcOf, type GrpcServeOptions } from "./grpc.ts";
import { Responder, type HttpOptions } from "./http.ts";
import { standardLogger, type LogLevel } from "./logger.ts";
import { Port } from "./port.ts";
import { processLease } from "./process-lease.ts";
import { onStopSignal } from "./signals.ts";

/** What `serve` takes, beside the options of `createHandler`. */
export interface ServeOptions
  extends Omit<HandlerOptions, "store" | "publicUrl" | "logger" | "facts">, Omit<HttpOptions, "logger"> {
  /** Default 4000; 0 takes any free port. */
  readonly port?: number;
  /** Name or address to listen on. Default `127.0.0.1`: this machine alone. */
  readonly host?: string;
  /**
   * The URL that cards give out: how clients reach this server. Default: the address it listens on, where that is a
   * loopback one; for any other it has to be said, since nobody elsewhere can use `0.0.0.0`.
   */
  readonly publicUrl?: string;
  /**
   * Where tasks live. Default: SQLite in `.parley/parley.db` below the working directory where `@parley/sql` is installed,
   * else memory, with a warning: to the logger, or as a warning of the process where there is none. A store that is given
   * stays open when the server closes.
   */
  readonly store?: Store;
  /**
   * What went wrong, with its stack, and what an operator should know. Default: standard error, as text on a terminal and
   * as JSON lines elsewhere (`standardLogger`); `false`: nowhere.
   */
  readonly logger?: Logger | false;
  /** How much the default logger says. Default `"info"`. */
  readonly logLevel?: LogLevel;
  /** Default: gRPC and gRPC-Web on the same port, where `@parley/grpc` is installed; `false`: neither. */
  readonly grpc?: GrpcServeOptions | false;
  /** Certificate and key, as `node:https` takes them: the server then speaks HTTPS, and HTTP/2 with who asks for it. */
  readonly tls?: TlsOptions;
  /**
   * Names of hosts that requests may name, beside loopback names and the host of `publicUrl`. Default: none where the server
   * listens on a loopback address without an authenticator, since any page that a browser here opens could have its own name
   * resolve to this machine and use the agents (DNS rebinding); any name elsewhere. `["*"]`: any name here too.
   */
  readonly allowedHosts?: readonly string[];
  /** Serves an address beyond this machine without an authenticator: whoever reaches it may use the agents (D14). */
  readonly insecure?: boolean;
  /** Whether SIGTERM and SIGINT close the server before the process ends of them (default true). A second one does not wait. */
  readonly signals?: boolean;
  /** Default of `close`, and what signals give, in milliseconds. Default 10 s. */
  readonly grace?: number;
}

export interface CloseOptions {
  /** How long turns that are under way may go on, in milliseconds; what is left then goes to the next server on this store. */
  readonly grace?: number;
}

/** A running server. */
export interface Server {
  /** Where it listens: `http://127.0.0.1:4000`. */
  readonly url: string;
  readonly port: number;
  /** Where gRPC is spoken, if it is: its port, and the address that cards give out. */
  readonly grpc?: { readonly port: number; readonly url: string };
  /** What is served, with the addresses that the cards say. */
  readonly agents: readonly ServedAgent[];
  /**
   * Stops: takes no new connections, lets calls and turns finish within the grace, then ends the streams that are left, so
   * that their clients go on elsewhere. Always comes to an end; called again it gives the same promise.
   */
  close(options?: CloseOptions): Promise<void>;
}

/** What the handler gets beyond its grace, and the last answers to reach their readers, in milliseconds. */
const closeTimeout = 1_000;

/**
 * Serves one agent at the root, or several by path and by tenant, over JSON-RPC, REST and, where `@parley/grpc` is
 * installed, gRPC: everything on one port, over HTTP/1.1 and HTTP/2. Rejects where an option is missing or wrong, and where the port cannot be had.
 */
export async function serve(agents: Agent | readonly AgentMount[], given: ServeOptions = {}): Promise<Server> {
  const logger = loggerOf(given);
  const options = { ...given, logger };
  const { host = "127.0.0.1", port: wanted = 4000, tls, signals = true } = options;
  const address = await addressOf(host);
  if (!isLoopback(address)) refuseOpenDoor(host, options);

  const grpcBinding = await grpcOf(options.grpc);
  const { port: ownPort, url: grpcUrl } = options.grpc === false ? {} : (options.grpc ?? {});
  const portOptions = { ...(tls !== undefined && { tls }) };
  const main = new Port(portOptions);
  const second = grpcBinding !== undefined && ownPort !== undefined ? new Port(portOptions) : undefined;
  const ports = second === undefined ? [main] : [main, second];
  const store = options.store ?? (await defaultStore(tellMemory(given, logger), logger));
  const release = async (): Promise<void> => {
    if (options.store === undefined) await store.close();
  };

  let port: number;
  let spoken: Server["grpc"];
  let handler: Handler;
  try {
    port = await main.bind(address, wanted);
    const publicUrl = options.publicUrl ?? urlOf(host, port, tls !== undefined);
    if (grpcBinding !== undefined) {
      const bound = await second?.bind(address, ownPort as number);
      spoken = { port: bound ?? port, url: grpcUrl ?? grpcAddress(publicUrl, bound) };
    }
    const lease = { ...processLease(), ...options.lease };
    const { grpc: _, bindings = [jsonRpcBinding(), restBinding()], ...rest } = options;
    handler = createHandler(agents, {
      ...rest,
      limits: { totalBytes: heapShare(), answerBytes: heapShare(), ...options.limits },
      ...allowedHostsOf(options, isLoopback(address), [host, grpcUrl]),
      store,
      publicUrl,
      lease,
      bindings: [...bindings, ...(grpcBinding && spoken ? [grpcAt(grpcBinding, spoken.url, !second)] : [])],
    });
  } catch (error) {
    for (const each of ports) each.drain();
    await release();
    throw error;
  }
  // From here on nothing waits, so no request can come before there is someone to answer it.
  const apart = second && grpcBinding ? [grpcBinding.openAnyPath(handler.host)] : [];
  const isLast = (): boolean => main.connections.draining;
  const responder = (handle: UniversalHandler): Responder => new Responder(handle, options, isLast);
  main.answer(dispatch(main, responder(handler.handle)), logger);
  second?.answer(dispatch(second, responder(beforeRouter(apart, nothingElse))), logger);

  let closing: Promise<void> | undefined;
  const close = (grace: number): Promise<void> => {
    closing ??= (async () => {
      forgetSignals();
      for (const each of ports) each.drain();
      for (const endpoint of apart) endpoint.close?.();
      await within(grace + closeTimeout, handler.close({ grace }), logger);
      await Promise.all(ports.map((each) => each.end(closeTimeout)));
      await release();
    })();
    return closing;
  };
  const forgetSignals = signals ? onStopSignal(() => close(options.grace ?? defaultGrace)) : () => {};
  return {
    url: urlOf(host, port, tls !== undefined),
    port,
    ...(spoken !== undefined && { grpc: spoken }),
    agents: handler.agents,
    close: ({ grace = options.grace ?? defaultGrace } = {}) => close(grace),
  };
}

const defaultGrace = 10_000;

function loggerOf({ logger, logLevel }: ServeOptions): Logger {
  if (logger === false) return silentLogger;
  return logger ?? standardLogger({ ...(logLevel !== undefined && { level: logLevel }) });
}

/** The warning that tasks end with the process is also given where there is no log: otherwise the first sign of it would be lost tasks. */
function tellMemory({ logger: given, logLevel }: ServeOptions, logger: Logger): (text: string) => void {
  const unheard = given === false || (given === undefined && logLevel === "error");
  return (text) => (unheard ? process.emitWarning(text, { code: "PARLEY_MEMORY_STORE" }) : logger.warn(text));
}

/** What a port for gRPC alone says to everything else. */
const nothingElse: UniversalHandler = () => ({
  status: 404,
  headers: { "content-type": "application/json" },
  body: '{"error":{"code":404,"status":"NOT_FOUND","message":"This port speaks gRPC alone"}}',
});

/** The names that requests may have, where that matters: `own` are those that this server gives out itself. */
function allowedHostsOf(
  { allowedHosts, authenticator }: ServeOptions,
  isLocal: boolean,
  own: readonly (string | undefined)[],
): Pick<HandlerOptions, "allowedHosts"> {
  if (allowedHosts === undefined && (!isLocal || authenticator !== undefined)) return {};
  const names = own
    .filter((name) => name !== undefined)
    // An address of gRPC may have a scheme: `http://host:50051`, `dns:host`, where `host:50051` has none.
    .map((name) => (isIPv6(name) ? `[${name}]` : name.replace(/^[a-z][\w+.-]*:(?:\/+|(?=\D))/i, "")));
  return { allowedHosts: [...names, ...(allowedHosts ?? [])] };
}

/** Others reach this address: they must be told apart or welcomed on purpose (D14), and need a URL that leads here. */
function refuseOpenDoor(host: string, { authenticator, insecure = false, publicUrl }: ServeOptions): void {
  if (authenticator === undefined && !insecure) {
    throw new Error(
      `${host} can be reached from other machines, and no authenticator says who may use the agents: give one, or say \`insecure: true\``,
    );
  }
  if (publicUrl === undefined) {
    throw new Error(`${host} can be reached from other machines: say under which \`publicUrl\` they find it`);
  }
}

/** Waits for work that should end by itself, but no longer than `ms`. */
async function within(ms: number, work: Promise<void>, logger: Logger): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      logger.warn("The agents did not stop in time");
      resolve();
    }, ms);
  });
  await Promise.race([
    late,
    work.catch((cause: unknown) => logger.error("The agents did not stop cleanly", { cause })),
  ]);
  clearTimeout(timer);
}

/** What of the memory the tasks that run here may take, in bytes of JSON: parsed and written anew each takes some times as much. And what large answers may. */
function heapShare(): number {
  return Math.min(2 ** 30, Math.floor(getHeapStatistics().heap_size_limit / 8));
}
