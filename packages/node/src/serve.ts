import type { ServerOptions as TlsOptions } from "node:https";
import {
  createHandler,
  type Agent,
  type AgentMount,
  type Handler,
  type HandlerOptions,
  type Logger,
  type ServedAgent,
  type ServerBinding,
} from "@parley/a2a";
import { isLoopback, type UniversalHandler } from "@parley/a2a/protocol";
import type { Store } from "@parley/a2a/store";
import { beforeRouter, type AnyPathEndpoint } from "@parley/a2a/transport";
import { defaultBindings, defaultLogger, defaultStore, heapShare } from "./defaults.ts";
import { dispatch, Responder, type HttpOptions } from "./http.ts";
import type { LogLevel } from "./logger.ts";
import { Port } from "./port.ts";
import {
  addressOf,
  bracketed,
  elsewhere,
  hasOwnPort,
  nothingElse,
  refuseHostUser,
  refuseOpenDoor,
  urlOf,
  warnOfMutualTls,
  type BindingOnPort,
} from "./listen.ts";
import { authorizationOn, pushOn } from "./push.ts";
import { onStopSignal, processLease } from "./process.ts";
import type { Routes } from "./routes.ts";
import type { TlsFiles } from "./tls.ts";
import type { TransportSecurity } from "./transport-security.ts";
import { Upgrades } from "./upgrade.ts";

/** Options of `serve`, in addition to those of `createHandler`. */
export interface ServeOptions
  extends Omit<HandlerOptions, "bindings" | "store" | "publicUrl" | "logger" | "facts">, Omit<HttpOptions, "logger"> {
  /** The port to listen on; 0 takes any free port. Default 4000. */
  readonly port?: number;
  /** Host name or address to listen on. Default `127.0.0.1`, which only this machine can reach. */
  readonly host?: string;
  /**
   * The URL of this server for clients, which cards contain. Required where the server listens on another address than a
   * loopback address, because clients cannot use `0.0.0.0`. Default: the address that it listens on.
   */
  readonly publicUrl?: string;
  /**
   * Where tasks are kept. Default: SQLite in `.parley/parley.db` below the working directory, where `@parley/sql` is installed.
   * Otherwise memory, with a warning to the logger, or a warning of the process where there is no logger. A store that you pass
   * stays open when the server closes.
   */
  readonly store?: Store;
  /**
   * Where the server logs errors, with their stacks, and what an operator should know. Default: `standardLogger`, which writes
   * to standard error: text on a terminal, otherwise lines of JSON. `false`: no log.
   */
  readonly logger?: Logger | false;
  /** Level of the default logger. Default `"info"`. */
  readonly logLevel?: LogLevel;
  /**
   * The bindings, in the order of the cards. A binding that recognizes its requests by their headers may have a port of its
   * own: `{ binding: grpcBinding(), port: 50051 }`. Default: `jsonRpcBinding()`, `restBinding()` and, where `@parley/grpc` is
   * installed, `grpcBinding()`.
   */
  readonly bindings?: readonly (ServerBinding | BindingOnPort)[];
  /**
   * Certificate and key, as for `node:https`, or the names of their files: `{ certFile, keyFile }`. Files are read again when they
   * change. The server then speaks HTTPS (TLS 1.2 or newer), and HTTP/2 with clients that support it. Where the authenticator has a
   * scheme of mutual TLS, clients are asked for certificates, and may have none.
   */
  readonly tls?: TlsOptions | TlsFiles;
  /**
   * The header `Strict-Transport-Security` of answers over TLS (RFC 6797), also where `trustProxy` says that the client's connection
   * is encrypted. Browsers then use only HTTPS for the host. `false`: none. Default `max-age=31536000`, and none where `publicUrl` is an
   * address of this machine.
   */
  readonly hsts?: string | false;
  /**
   * Host names that requests may use, in addition to loopback names and the host of `publicUrl`. `["*"]` allows any name.
   * Default: no further names where the server listens on a loopback address without an authenticator, because a page in a
   * browser on this machine could let its own name resolve to this machine and use the agents (DNS rebinding). Otherwise any
   * name.
   */
  readonly allowedHosts?: readonly string[];
  /**
   * Allows to serve other machines without an authenticator, and over plain HTTP: everyone who reaches the address may use the agents,
   * and everyone on the way can read along. Default false.
   */
  readonly insecure?: boolean;
  /**
   * What your application answers on the same port, where nothing of the agents is: a `Response`, or `undefined` for the usual 404. The
   * URL of the request has the origin of `publicUrl`. The second argument is what the server knows of the client. `allowedHosts`,
   * `limits.bodyBytes`, TLS and its headers hold here, too; authenticator, rates and `cors` do not. Default: nothing.
   */
  readonly routes?: Routes;
  /** Whether the server closes at SIGTERM and SIGINT before the process ends. A second signal ends the process at once. Default true. */
  readonly signals?: boolean;
  /** Grace of `close()` and of signals, in milliseconds. Default 10 s. */
  readonly grace?: number;
}

/** How a server closes. */
export interface CloseOptions {
  /** How long running turns may continue, in milliseconds. Unfinished resumable tasks then continue on the next server of this store. */
  readonly grace?: number;
  /**
   * Leaves the port at once, for another process that is to listen on it while running turns finish here. Default false: meanwhile
   * requests are answered with 503, so that load balancers and probes notice.
   */
  readonly leavePort?: boolean;
}

/** A running server. */
export interface Server {
  /** The URL that it listens on: `http://127.0.0.1:4000`. */
  readonly url: string;
  /** The port that it listens on. */
  readonly port: number;
  /** Ports of the bindings that have a port of their own, by their names: `{ GRPC: 50051 }`. */
  readonly ports: Readonly<Record<string, number>>;
  /** The agents, with their addresses and cards. */
  readonly agents: readonly ServedAgent[];
  /**
   * Tells a task of something that has happened outside, for `turn.waitFor()`: as `signal` of the handler.
   *
   * @example
   * ```ts
   * const server = await serve(agent);
   * await server.signal("0199-task", "approved", { by: "ada" });
   * ```
   */
  readonly signal: Handler["signal"];
  /**
   * Stops the server. It accepts no new connections, lets calls and turns finish within the grace, and then ends the remaining
   * streams, so that their clients continue elsewhere. It always resolves. Further calls return the same promise.
   */
  close(options?: CloseOptions): Promise<void>;
}

/** Time beyond the grace for the handler to stop, and for the last answers to reach their readers, in milliseconds. */
const closeTimeout = 1_000;

/**
 * Serves one agent at the root, or several agents by path and by tenant. Everything is on one port, over HTTP/1.1 and HTTP/2:
 * JSON-RPC, REST and, where `@parley/grpc` is installed, gRPC. Rejects where an option is missing or wrong, and where the server
 * cannot listen.
 */
export async function serve(agents: Agent | readonly AgentMount[], options: ServeOptions = {}): Promise<Server> {
  const logger = defaultLogger(options);
  const { host = "127.0.0.1", signals = true, grace: usualGrace = 10_000 } = options;
  const address = await addressOf(host);
  refuseOpenDoor(host, address, options);
  refuseHostUser(options);
  const security = await securityOf(options, address, logger);
  const tls = security?.tls;
  const own = options.routes && (await import("./routes.ts"));
  const push = pushOn(options.push, isLoopback(address));

  const bindings = options.bindings ?? (await defaultBindings());
  const newPort = (): Port => new Port({ ...(tls !== undefined && { tls }) });
  const main = newPort();
  const others = bindings.filter(hasOwnPort).map((each) => ({ ...each, own: newPort() }));
  const ports = [main, ...others.map(({ own }) => own)];
  const store = options.store ?? (await defaultStore(options, logger));
  const release = async (): Promise<void> => {
    if (options.store === undefined) await store.close();
  };

  let port: number;
  const bound: Record<string, number> = {};
  let handler: Handler;
  let publicUrl: string;
  try {
    port = await main.bind(address, options.port ?? 4000);
    for (const other of others) bound[other.binding.name] = await other.own.bind(address, other.port);
    publicUrl = options.publicUrl ?? urlOf(host, port, tls !== undefined);
    const onCards = bindings.map((each) => (hasOwnPort(each) ? elsewhere(each.binding, bound) : each));
    const authorization = authorizationOn(options.authorization, push);
    const known = { bindings: onCards, logger, store, publicUrl, ...(push !== undefined && { push }) };
    handler = createHandler(agents, {
      ...handlerOptions(options, host, address),
      ...known,
      ...(authorization !== undefined && { authorization }),
    });
  } catch (error) {
    for (const each of ports) each.drain();
    await release();
    throw error;
  }
  // No `await` between here and `answer()`: a request that came before would have no handler.
  const upgrades = new Upgrades(handler, bindings, logger, security);
  const responder = (handle: UniversalHandler): Responder =>
    new Responder(
      security?.around(handle, handler.isProbe) ?? handle,
      { ...options, logger },
      security?.proxies,
      () => main.connections.last,
    );
  const answers = options.routes && own?.withRoutes(options.routes, { handler, publicUrl });
  main.answer(dispatch(main, responder(answers ?? handler.handle), upgrades), logger);
  const endpoints = others.map(({ binding, own }) => {
    const endpoint = binding.openAnyPath(handler.host);
    own.answer(dispatch(own, responder(beforeRouter([endpoint], nothingElse))), logger);
    return endpoint;
  });

  const forgetCertificates = security?.watch(ports);
  let closing: Promise<void> | undefined;
  const close = ({ grace = usualGrace, leavePort = false }: CloseOptions = {}): Promise<void> => {
    if (closing === undefined) {
      forgetSignals();
      forgetCertificates?.();
    }
    if (leavePort) for (const each of ports) each.leave();
    return (closing ??= closeAll({ ports, endpoints, handler, upgrades, logger, release }, grace));
  };
  const forgetSignals = signals ? onStopSignal(close) : () => {};
  return {
    url: urlOf(host, port, tls !== undefined),
    port,
    ports: bound,
    agents: handler.agents,
    signal: handler.signal,
    close,
  };
}

/** TLS and the trust in proxies. A server without options for them loads nothing of it. */
async function securityOf(
  options: ServeOptions,
  address: string,
  logger: Logger,
): Promise<TransportSecurity | undefined> {
  warnOfMutualTls(options, logger);
  if (options.tls === undefined && options.trustProxy === undefined) return undefined;
  const { transportSecurity } = await import("./transport-security.ts");
  return transportSecurity(options, address, logger);
}

/** What a running server consists of. */
interface Parts {
  readonly ports: readonly Port[];
  readonly endpoints: readonly AnyPathEndpoint[];
  readonly handler: Handler;
  readonly upgrades: Upgrades;
  readonly logger: Logger;
  /** Closes the store, where this server has opened it. */
  release(): Promise<void>;
}

async function closeAll(parts: Parts, grace: number): Promise<void> {
  const { ports, endpoints, handler, upgrades, logger } = parts;
  for (const port of ports) port.retire();
  for (const endpoint of endpoints) endpoint.close?.();
  await within(grace + closeTimeout, handler.close({ grace }), logger);
  for (const port of ports) port.drain();
  upgrades.close();
  await Promise.all(ports.map((port) => port.end(closeTimeout)));
  await parts.release();
}

/** How often an address may fail to authenticate where other machines reach the server. */
const usualFailures = { requests: 100, per: 60_000 };

/** The options of the handler that do not depend on the port. */
function handlerOptions(
  { bindings: _, logger: __, routes: ___, ...options }: ServeOptions,
  host: string,
  address: string,
): Omit<HandlerOptions, "publicUrl" | "store"> {
  const { allowedHosts, authenticator } = options;
  const isOpen = allowedHosts === undefined && (!isLoopback(address) || authenticator !== undefined);
  // On loopback all clients of a proxy that is not named have one address.
  const limitsGuesses = authenticator !== undefined && (!isLoopback(address) || options.trustProxy !== undefined);
  const rate = { ...(limitsGuesses && { failures: usualFailures }), ...options.limits?.rate };
  return {
    ...options,
    health: options.health ?? true,
    limits: {
      totalBytes: heapShare(),
      answerBytes: heapShare(),
      ...options.limits,
      ...(Object.keys(rate).length > 0 && { rate }),
    },
    lease: { ...processLease(), ...options.lease },
    ...(!isOpen && { allowedHosts: [bracketed(host), ...(allowedHosts ?? [])] }),
  };
}

/** Waits for work that should end by itself, but no longer than `ms` milliseconds. */
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
