import { createHandler, type AgentMount, type Handler, type HandlerOptions } from "@parley/server/internal/handler";
import { isLoopback, systemClock, type Clock, type Logger } from "@parley/a2a/internal/base/index";
import type { Agent, UniversalHandler } from "@parley/a2a/internal/protocol/index";
import { setTimeout as pause } from "node:timers/promises";
import type { Store } from "@parley/server/internal/store/index";
import { beforeRouter } from "@parley/a2a/internal/transport/router/router";
import type { AnyPathEndpoint } from "@parley/a2a/internal/transport/server/binding";
import { bindingsOf, defaultLogger, defaultStore, heapShare } from "./defaults.ts";
import { dispatch, Responder } from "./http.ts";
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
} from "./listen.ts";
import { authorizationOn, blobsOn, pushOn, withDevelopmentKey } from "./push.ts";
import { checkServeOptions, forHandler } from "./option-names.ts";
import { closingTimes, onStopSignal, processLease } from "./process.ts";
import type { Member } from "./processes/member.ts";
import type { CloseOptions, ServeOptions, Server } from "./serve-options.ts";
import type { TransportSecurity } from "./transport-security.ts";
import { Upgrades } from "./upgrade.ts";

/** Time beyond the grace for the handler to stop, and for the last answers to reach their readers, in milliseconds. */
const closeTimeout = 1_000;

/** How long requests that are on the way when the port closes are waited for, in milliseconds: they are answered, not refused. */
const settleTimeout = 1_000;

/**
 * Serves one agent at the root, or several agents by path and by tenant. Everything is on one port, over HTTP/1.1 and HTTP/2:
 * JSON-RPC, REST and, with the option `grpc`, gRPC. Rejects where an option is missing or wrong, and where the server cannot listen.
 */
export async function serve(agents: Agent | readonly AgentMount[], options: ServeOptions = {}): Promise<Server> {
  checkServeOptions(options);
  if (options.processes === undefined || options.processes === 1) return serveHere(agents, options);
  const { serveProcesses } = await import("./processes/index.ts");
  return serveProcesses(options, (own, member) => serveHere(agents, own, member));
}

/** Serves in this process. `member`: it is one of several. */
async function serveHere(
  agents: Agent | readonly AgentMount[],
  options: ServeOptions,
  member?: Member,
): Promise<Server> {
  const usual = defaultLogger(options);
  const logger = options.logger === undefined ? (member?.logger(usual) ?? usual) : usual;
  const { host = "127.0.0.1", signals = true } = options;
  const address = await addressOf(host);
  refuseOpenDoor(host, address, options);
  refuseHostUser(options);
  const security = await securityOf(options, address, logger);
  const tls = security?.tls;
  const own = options.routes && (await import("./routes.ts"));
  const pushing = pushOn(options.push, isLoopback(address));

  const bindings = await bindingsOf(options);
  const newPort = (): Port => new Port({ ...(tls !== undefined && { tls }) });
  const main = newPort();
  const others = bindings.filter(hasOwnPort).map((each) => ({ ...each, own: newPort() }));
  const ports = [main, ...others.map(({ own }) => own)];
  const { store, release } = await openStore(options, logger);

  let port: number;
  const bound: Record<string, number> = {};
  let handler: Handler;
  let publicUrl: string;
  try {
    const push = await withDevelopmentKey(pushing, options, { isLocal: isLoopback(address), store, logger });
    const numbers = [options.port ?? 4000, ...others.map((other) => other.port)];
    const found = await (member?.join(ports) ?? bindAll(ports, address, numbers));
    port = found[0] as number;
    for (const [at, { binding }] of others.entries()) bound[binding.name] = found[at + 1] as number;
    publicUrl = options.publicUrl ?? urlOf(host, port, tls !== undefined);
    const onCards = bindings.map((each) => (hasOwnPort(each) ? elsewhere(each.binding, bound) : each));
    const isLocal = URL.canParse(publicUrl) && isLoopback(new URL(publicUrl).hostname);
    const authorization = authorizationOn(options.authorization, push);
    const blobs = blobsOn(options.blobs, push, isLocal ? member?.secret : undefined);
    const shared = member?.share(store) ?? store;
    const known = { bindings: onCards, logger, store: shared, publicUrl, ...(push !== undefined && { push }) };
    handler = createHandler(agents, {
      ...handlerOptions(options, host, address, member),
      ...known,
      ...(authorization !== undefined && { authorization }),
      ...(blobs !== undefined && { blobs }),
    });
  } catch (error) {
    for (const each of ports) each.drain();
    await release();
    throw error;
  }
  // No `await` between here and `answer()`: a request that came before would have no handler.
  const upgrades = new Upgrades(handler, bindings, logger, security);
  const responders: Responder[] = [];
  const responder = (handle: UniversalHandler): Responder => {
    const guarded = security?.around(handle, handler.isProbe) ?? handle;
    const isLast = (): boolean => main.connections.last;
    const created = new Responder(guarded, { ...options, logger }, security?.proxies, isLast);
    responders.push(created);
    return created;
  };
  const answers = options.routes && own?.withRoutes(options.routes, { handler, publicUrl });
  main.answer(dispatch(main, responder(answers ?? handler.handle), upgrades), logger);
  const endpoints = others.map(({ binding, own }) => {
    const endpoint = binding.openAnyPath(handler.host);
    own.answer(dispatch(own, responder(beforeRouter([endpoint], nothingElse))), logger);
    return endpoint;
  });

  const forgetCertificates = security?.watch(ports);
  let closing: Promise<void> | undefined;
  const close = (closeOptions: CloseOptions = {}): Promise<void> => {
    if (closing !== undefined) return closing;
    forgetSignals();
    forgetCertificates?.();
    const leave = async (): Promise<void> => member?.leave();
    const { clock = systemClock } = options;
    const parts = { ports, responders, endpoints, handler, upgrades, logger, clock, leave, release };
    const { drainDelay, grace } = closingTimes(options, closeOptions);
    // One of several processes that stops alone need not wait: the others have taken over its connections already.
    closing = closeAll(parts, { drainDelay: member === undefined ? drainDelay : 0, grace });
    return closing;
  };
  const forgetSignals = signals ? onStopSignal(close) : () => {};
  const server: Server = {
    url: urlOf(host, port, tls !== undefined),
    port,
    ports: bound,
    agents: handler.agents,
    signal: handler.signal,
    deleteOwner: handler.deleteOwner,
    exportOwner: handler.exportOwner,
    close,
  };
  member?.begin(server, handler);
  return server;
}

/** Listens on each port. Resolves with their numbers. */
async function bindAll(
  ports: readonly Port[],
  address: string,
  numbers: readonly number[],
): Promise<readonly number[]> {
  const found: number[] = [];
  for (const [at, port] of ports.entries()) found.push(await port.bind(address, numbers[at] as number));
  return found;
}

/** The store of the options. `release` closes it where this server has opened it. */
async function openStore(options: ServeOptions, logger: Logger): Promise<{ store: Store; release(): Promise<void> }> {
  const given = options.store;
  if (typeof given === "object") return { store: given, release: async () => {} };
  if (given !== undefined && typeof given !== "function") {
    // A URL, in JavaScript. It may have a password, and is not repeated.
    throw new TypeError(
      "The option `store` must be a store, or a function that opens one: () => postgresStore({ database: url })",
    );
  }
  const store = await (given === undefined ? defaultStore(logger) : given());
  return { store, release: () => store.close() };
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
  readonly responders: readonly Responder[];
  readonly endpoints: readonly AnyPathEndpoint[];
  readonly handler: Handler;
  readonly upgrades: Upgrades;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Where other processes have the port, too: resolves when no more connections come to this one. */
  leave(): Promise<void>;
  /** Closes the store, where this server has opened it. */
  release(): Promise<void>;
}

async function closeAll(parts: Parts, { drainDelay, grace }: Required<CloseOptions>): Promise<void> {
  const { ports, endpoints, handler, upgrades, logger, clock } = parts;
  handler.drain();
  for (const port of ports) port.connections.tell();
  if (drainDelay > 0) await new Promise<void>((resolve) => clock.after(drainDelay, resolve));
  await parts.leave();
  await Promise.all(ports.map((port) => port.leave()));
  for (const { connections } of ports) connections.retire();
  const since = performance.now();
  await settled(parts, Math.min(settleTimeout, grace));
  const left = Math.max(0, grace - (performance.now() - since));
  for (const endpoint of endpoints) endpoint.close?.();
  await within(left + closeTimeout, handler.close({ grace: left }), logger);
  for (const port of ports) port.drain();
  upgrades.close();
  await Promise.all(ports.map((port) => port.end(closeTimeout)));
  await parts.release();
}

/** Waits up to `timeout` milliseconds until every accepted connection has made a request, and every request has an answer. */
async function settled({ ports, responders }: Parts, timeout: number): Promise<void> {
  const since = performance.now();
  const isExpected = (): boolean =>
    ports.some(({ connections }) => connections.expectsRequest) ||
    responders.some(({ unansweredCount }) => unansweredCount > 0);
  while (performance.now() - since < timeout && isExpected()) await pause(10);
}

/** How often an address may fail to authenticate where other machines reach the server. */
const usualFailures = { requests: 100, per: 60_000 };

/** The options of the handler that do not depend on the port. */
function handlerOptions(
  { bindings: _, logger: __, store: ___, ...options }: ServeOptions,
  host: string,
  address: string,
  member: Member | undefined,
): Omit<HandlerOptions, "publicUrl" | "store"> {
  const { allowedHosts, authenticator } = options;
  const isOpen = allowedHosts === undefined && (!isLoopback(address) || authenticator !== undefined);
  // On loopback all clients of a proxy that is not named have one address.
  const limitsGuesses = authenticator !== undefined && (!isLoopback(address) || options.trustProxy !== undefined);
  const rate = { ...(limitsGuesses && { failures: usualFailures }), ...options.limits?.rate };
  return {
    ...forHandler(options),
    health: options.health ?? true,
    limits: {
      totalBytes: heapShare(),
      answerBytes: heapShare(),
      ...options.limits,
      ...(Object.keys(rate).length > 0 && { rate }),
    },
    lease: { ...processLease(member), ...options.lease },
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
