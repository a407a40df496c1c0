import type { ServerOptions as TlsOptions } from "node:https";
import { isIPv6 } from "node:net";
import process from "node:process";
import { getHeapStatistics } from "node:v8";
import {
  createHandler,
  silentLogger,
  type Agent,
  type AgentMount,
  type Handler,
  type HandlerOptions,
  type Logger,
  type ServedAgent,
  type ServerBinding,
} from "@parley/a2a";
import { isLoopback, type UniversalHandler } from "@parley/a2a/protocol";
import { beforeRouter } from "@parley/a2a/transport";
import type { Store } from "@parley/a2a/store";
import { addressOf, urlOf } from "./bind.ts";
import { defaultBindings, elsewhere, hasOwnPort, type BindingOnPort } from "./bindings.ts";
import { defaultStore } from "./default-store.ts";
import { dispatch } from "./dispatch.ts";
import { Responder, type HttpOptions } from "./http.ts";
import { standardLogger, type LogLevel } from "./logger.ts";
import { Port } from "./port.ts";
import { processLease } from "./process-lease.ts";
import { onStopSignal } from "./signals.ts";
import { Upgrades } from "./upgrade.ts";

/** What `serve` takes, beside the options of `createHandler`. */
export interface ServeOptions
  extends Omit<HandlerOptions, "bindings" | "store" | "publicUrl" | "logger" | "facts">, Omit<HttpOptions, "logger"> {
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
  /**
   * How agents are called, in the order of their cards. A binding that knows its requests by their headers may have a port of
   * its own: `{ binding: grpcBinding(), port: 50051 }`. Default: `jsonRpcBinding()`, `restBinding()` and, where `@parley/grpc`
   * is installed, its `grpcBinding()`.
   */
  readonly bindings?: readonly (ServerBinding | BindingOnPort)[];
  /** Certificate and key, as `node:https` takes them: the server then speaks HTTPS, and HTTP/2 with who asks for it. */
  readonly tls?: TlsOptions;
  /**
   * Names of hosts that requests may name, beside loopback names and the host of `publicUrl`. Default: none where the server
   * listens on a loopback address without an authenticator, since any page that a browser here opens could have its own name
   * resolve to this machine and use the agents (DNS rebinding); any name elsewhere. `["*"]`: any name here too.
   */
  readonly allowedHosts?: readonly string[];
  /** Serves an address beyond this machine without an authenticator: whoever reaches it may use the agents. */
  readonly insecure?: boolean;
  /** Whether SIGTERM and SIGINT close the server before the process ends of them (default true). A second one does not wait. */
  readonly signals?: boolean;
  /** Default of `close`, and what signals give, in milliseconds. Default 10 s. */
  readonly grace?: number;
}

/** How a server closes. */
export interface CloseOptions {
  /** How long turns that are under way may go on, in milliseconds; what is left then goes to the next server on this store. */
  readonly grace?: number;
}

/** A running server. */
export interface Server {
  /** Where it listens: `http://127.0.0.1:4000`. */
  readonly url: string;
  /** The port that it listens on. */
  readonly port: number;
  /** The ports of bindings that have one of their own, by their names: `{ GRPC: 50051 }`. */
  readonly ports: Readonly<Record<string, number>>;
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

  const bindings = options.bindings ?? (await defaultBindings());
  const newPort = (): Port => new Port({ ...(tls !== undefined && { tls }) });
  const main = newPort();
  const others = bindings.filter(hasOwnPort).map((each) => ({ ...each, own: newPort() }));
  const ports = [main, ...others.map(({ own }) => own)];
  const store = options.store ?? (await defaultStore(tellMemory(given, logger), logger));
  const release = async (): Promise<void> => {
    if (options.store === undefined) await store.close();
  };

  let port: number;
  const bound: Record<string, number> = {};
  let handler: Handler;
  try {
    port = await main.bind(address, wanted);
    for (const other of others) bound[other.binding.name] = await other.own.bind(address, other.port);
    handler = createHandler(agents, {
      ...options,
      bindings: bindings.map((each) =>
        hasOwnPort(each) ? elsewhere(each.binding, bound[each.binding.name] as number) : each,
      ),
      limits: { totalBytes: heapShare(), answerBytes: heapShare(), ...options.limits },
      ...allowedHostsOf(options, isLoopback(address), host),
      store,
      publicUrl: options.publicUrl ?? urlOf(host, port, tls !== undefined),
      lease: { ...processLease(), ...options.lease },
    });
  } catch (error) {
    for (const each of ports) each.drain();
    await release();
    throw error;
  }
  // From here on nothing waits, so no request can come before there is someone to answer it.
  const isLast = (): boolean => main.connections.draining;
  const upgrades = new Upgrades(handler, bindings, logger);
  main.answer(dispatch(main, new Responder(handler.handle, options, isLast), upgrades), logger);
  const apart = others.map(({ binding, own }) => {
    const endpoint = binding.openAnyPath(handler.host);
    own.answer(dispatch(own, new Responder(beforeRouter([endpoint], nothingElse), options, isLast)), logger);
    return endpoint;
  });

  let closing: Promise<void> | undefined;
  const close = (grace: number): Promise<void> => {
    closing ??= (async () => {
      forgetSignals();
      for (const each of ports) each.drain();
      for (const endpoint of apart) endpoint.close?.();
      await within(grace + closeTimeout, handler.close({ grace }), logger);
      upgrades.close();
      await Promise.all(ports.map((each) => each.end(closeTimeout)));
      await release();
    })();
    return closing;
  };
  const forgetSignals = signals ? onStopSignal(() => close(options.grace ?? defaultGrace)) : () => {};
  return {
    url: urlOf(host, port, tls !== undefined),
    port,
    ports: bound,
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

/** What the port of one binding says to requests that are not that binding's. */
const nothingElse: UniversalHandler = () => ({
  status: 404,
  headers: { "content-type": "application/json" },
  body: '{"error":{"code":404,"status":"NOT_FOUND","message":"Nothing of this kind is answered on this port"}}',
});

/** The names that requests may have beside those that cards give out, where that matters. */
function allowedHostsOf(
  { allowedHosts, authenticator }: ServeOptions,
  isLocal: boolean,
  host: string,
): Pick<HandlerOptions, "allowedHosts"> {
  if (allowedHosts === undefined && (!isLocal || authenticator !== undefined)) return {};
  return { allowedHosts: [isIPv6(host) ? `[${host}]` : host, ...(allowedHosts ?? [])] };
}

/** Others reach this address: they must be told apart or welcomed on purpose, and need a URL that leads here. */
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
