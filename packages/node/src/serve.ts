import {
  createHandler,
  createHost,
  type AgentMount,
  type Handler,
  type Host,
  type HostedService,
  type ServerBinding,
} from "@parley/server/internal/handler";
import { isLoopback, systemClock, type Clock, type Logger } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { Agent, UniversalHandler } from "@parley/a2a/internal/protocol/index";
import { setTimeout as pause } from "node:timers/promises";
import type { Store } from "@parley/server/internal/store/index";
import { beforeRouter } from "@parley/a2a/internal/transport/router/router";
import type { AnyPathEndpoint } from "@parley/a2a/internal/transport/server/binding";
import {
  auditOn,
  authorizationOn,
  bindingsOf,
  blobsOn,
  defaultLogger,
  defaultStore,
  heapShare,
  pushOn,
  routesOn,
  withDevelopmentKey,
} from "./defaults.ts";
import { dispatch, Responder } from "./http/listener.ts";
import { Port } from "./http/port.ts";
import {
  addressOf,
  bracketed,
  elsewhere,
  hasOwnPort,
  nothingElse,
  refuseHostUser,
  refuseOpenConsole,
  refuseOpenDoor,
  urlOf,
  warnOfMutualTls,
  type BindingOnPort,
} from "./listen.ts";
import { checkServeOptions, forHandler, type CloseOptions, type ServeOptions, type Server } from "./serve-options.ts";
import { closeOnce, processLease } from "./process.ts";
import type { Member } from "./processes/member.ts";
import type { TransportSecurity } from "./http/tls.ts";
import { Upgrades } from "./http/upgrade.ts";

/** Time after the grace period for the handler to stop, and for the last answers to reach their readers, in milliseconds. */
const closeTimeout = 1_000;

/** How long to wait for requests in transit when the port closes, in milliseconds, so that they still get an answer. */
const settleTimeout = 1_000;

/**
 * Serves one agent at the root, or several agents and your own services by path and tenant. Everything is on one port, over HTTP/1.1 and HTTP/2:
 * JSON-RPC, REST and, with the option `grpc`, gRPC. Rejects if an option is missing or invalid, or the server cannot listen.
 */
export async function serve(agents: Served, options: ServeOptions = {}): Promise<Server> {
  checkServeOptions(options);
  if (options.processes === undefined || options.processes === 1) return serveHere(agents, options);
  const { serveProcesses } = await import("./processes/primary.ts");
  return serveProcesses(options, (own, member) => serveHere(agents, own, member));
}

/** Serves in this process: settings, then storage, ports, the handler, and the responders. `member`: set if it is one of several. */
async function serveHere(agents: Served, options: ServeOptions, member?: Member): Promise<Server> {
  const settings = await settingsOf(options, member);
  const ports = await portsOf(settings);
  const storage = await storageOf(agents, settings);
  try {
    const numbers = await listen(ports, settings);
    const handler = await handlerOf(agents, { settings, ports, storage, numbers });
    // No `await` from here on: a request that arrives meanwhile would have no handler.
    return running({ settings, ports, storage, numbers, handler });
  } catch (error) {
    for (const port of ports.all) port.drain();
    await storage.release();
    throw error;
  }
}

/** One agent, or agents and services at their addresses. */
type Served = Agent | readonly (AgentMount | HostedService)[];

type Settings = Awaited<ReturnType<typeof settingsOf>>;

/** The settings of a server: its address, its log, and the security of its connections. Rejects unsafe combinations. */
async function settingsOf(options: ServeOptions, member: Member | undefined) {
  const usual = defaultLogger(options);
  const logger = typeof options.logger === "object" ? usual : (member?.logger(usual) ?? usual);
  const { host = "127.0.0.1" } = options;
  const address = await addressOf(host);
  refuseOpenDoor(host, address, options);
  refuseOpenConsole(host, address, options);
  refuseHostUser(options);
  const security = await securityOf(options, address, logger);
  const push = pushOn(options.push, isLoopback(address));
  const routes = await routesOn(options);
  return { options, member, logger, host, address, security, push, routes };
}

/** The main port, and the ports of bindings that have their own. */
interface Ports {
  readonly main: Port;
  readonly others: readonly (BindingOnPort & { readonly own: Port })[];
  readonly all: readonly Port[];
  readonly bindings: readonly (ServerBinding | BindingOnPort)[];
}

async function portsOf({ options, security }: Settings): Promise<Ports> {
  const bindings = await bindingsOf(options);
  const newPort = (): Port => new Port({ ...(security?.tls !== undefined && { tls: security.tls }) });
  const main = newPort();
  const others = bindings.filter(hasOwnPort).map((each) => ({ ...each, own: newPort() }));
  return { main, others, all: [main, ...others.map(({ own }) => own)], bindings };
}

/** The storage of tasks. `store` is absent if every agent is a service and no store was passed. */
interface Storage {
  readonly store: Store | undefined;
  release(): Promise<void>;
}

async function storageOf(agents: Served, { options, logger }: Settings): Promise<Storage> {
  if (options.store !== undefined || servicesIn(agents).length === 0) return openStore(options, logger);
  return { store: undefined, release: async () => {} };
}

/** The mounts if all of them are services, which need no store; otherwise none. */
function servicesIn(agents: Served): readonly HostedService[] {
  const isService = (mount: AgentMount | HostedService): mount is HostedService => "service" in mount;
  return Array.isArray(agents) && agents.every(isService) ? agents : [];
}

/** A host without an engine as a handler. The engine's methods reject. */
function withoutEngine(host: Host): Handler {
  const refuse = (): Promise<never> =>
    Promise.reject(new A2AError("UnsupportedOperation", "This server runs no agents: it has no engine"));
  return Object.assign(host, {
    signal: refuse,
    deleteOwner: refuse,
    wake: async () => ({}),
    exportOwner: () => ({ [Symbol.asyncIterator]: () => ({ next: refuse }) }),
  });
}

/** The numbers of the ports, and the URLs that follow from them. */
interface Numbers {
  readonly port: number;
  /** Ports of bindings that have their own, by name of the binding. */
  readonly bound: Readonly<Record<string, number>>;
  /** The URL that the server listens on. */
  readonly url: string;
  readonly publicUrl: string;
}

async function listen(
  { main, others, all }: Ports,
  { options, member, host, address, security }: Settings,
): Promise<Numbers> {
  const wanted = [{ own: main, port: options.port ?? 4000 }, ...others];
  const [port = 0, ...found] = member?.join(all) ?? (await bindAll(wanted, address));
  const bound = Object.fromEntries(others.map(({ binding }, at) => [binding.name, found[at] ?? 0]));
  const url = urlOf(host, port, security?.tls !== undefined);
  return { port, bound, url, publicUrl: options.publicUrl ?? url };
}

interface HandlerParts {
  readonly settings: Settings;
  readonly ports: Ports;
  readonly storage: Storage;
  readonly numbers: Numbers;
}

/** The handler of the server: with an engine if it has a store. */
async function handlerOf(agents: Served, { settings, ports, storage, numbers }: HandlerParts): Promise<Handler> {
  const { options, member, logger, host, address } = settings;
  const { publicUrl, bound } = numbers;
  const bindings = ports.bindings.map((each) =>
    hasOwnPort(each) ? elsewhere(each.binding, bound[each.binding.name] ?? 0) : each,
  );
  const audit = auditOn(options, logger);
  const given = { ...hostOptions(options, host, address), ...settings.routes, bindings, logger, publicUrl };
  const known = { ...given, ...(audit !== undefined && { audit }) };
  const { store } = storage;
  if (store === undefined) return withoutEngine(createHost(servicesIn(agents), known));
  const push = await withDevelopmentKey(settings.push, options, { isLocal: isLoopback(address), store, logger });
  const isLocal = URL.canParse(publicUrl) && isLoopback(new URL(publicUrl).hostname);
  const authorization = authorizationOn(options.authorization, push);
  const blobs = blobsOn(options.blobs, push, isLocal ? member?.secret : undefined);
  return createHandler(agents, {
    ...known,
    limits: { totalBytes: heapShare(), ...known.limits },
    lease: { ...processLease(member), ...options.lease },
    store: member?.share(store) ?? store,
    ...(push !== undefined && { push }),
    ...(authorization !== undefined && { authorization }),
    ...(blobs !== undefined && { blobs }),
  });
}

interface RunningParts extends HandlerParts {
  readonly handler: Handler;
}

/** Answers the requests of the ports. */
function running({ settings, ports, storage, numbers, handler }: RunningParts): Server {
  const { options, member, logger, security } = settings;
  const { main, others, all } = ports;
  const { clock = systemClock } = options;
  const upgrades = new Upgrades(handler, ports.bindings, logger, security);
  const isLast = (): boolean => main.connections.last;
  const responder = (handle: UniversalHandler): Responder =>
    new Responder(
      security?.around(handle, handler.isProbe) ?? handle,
      { ...options, logger },
      security?.proxies,
      isLast,
    );
  const first = responder(handler.handle);
  main.answer(dispatch(main, first, upgrades), logger);
  const separate = others.map(({ binding, own }) => {
    const endpoint = binding.openAnyPath(handler.host);
    const answering = responder(beforeRouter([endpoint], nothingElse));
    own.answer(dispatch(own, answering), logger);
    return { endpoint, answering };
  });
  const responders = [first, ...separate.map(({ answering }) => answering)];
  const endpoints = separate.map(({ endpoint }) => endpoint);
  const forgetCertificates = security?.watch(all);
  const leave = async (): Promise<void> => member?.leave();
  const parts = {
    ports: all,
    responders,
    endpoints,
    handler,
    upgrades,
    logger,
    clock,
    leave,
    release: storage.release,
  };
  const close = closeOnce(options, ({ drainDelay, grace }) => {
    forgetCertificates?.();
    // If only one of several processes stops, it need not wait, because the others accept the connections.
    return closeAll(parts, { drainDelay: member === undefined ? drainDelay : 0, grace });
  });
  const { url, port, bound } = numbers;
  const { mounts, signal, deleteOwner, exportOwner } = handler;
  const server: Server = {
    url,
    port,
    ports: bound,
    mounts,
    get agents() {
      return mounts.agents;
    },
    signal,
    deleteOwner,
    exportOwner,
    close,
  };
  member?.begin(server, handler);
  return server;
}

/** Listens on each port. Resolves with their numbers. */
async function bindAll(
  wanted: readonly { readonly own: Port; readonly port: number }[],
  address: string,
): Promise<readonly number[]> {
  const found: number[] = [];
  for (const { own, port } of wanted) found.push(await own.bind(address, port));
  return found;
}

/** The store of the options. `release` closes it if this server has opened it. */
async function openStore(options: ServeOptions, logger: Logger): Promise<{ store: Store; release(): Promise<void> }> {
  const given = options.store;
  if (typeof given === "object" && given !== null) return { store: given, release: async () => {} };
  if (given !== undefined && typeof given !== "function") {
    // JavaScript callers may pass a URL. It may contain a password, so the error does not repeat it.
    throw new TypeError(
      "The option `store` must be a store, or a function that opens one: () => postgresStore({ database: url })",
    );
  }
  const store = await (given === undefined ? defaultStore(logger) : given());
  return { store, release: () => store.close() };
}

/** TLS and trusted proxies. Their code is loaded only if the options need it. */
async function securityOf(
  options: ServeOptions,
  address: string,
  logger: Logger,
): Promise<TransportSecurity | undefined> {
  warnOfMutualTls(options, logger);
  if (options.tls === undefined && options.trustProxy === undefined) return undefined;
  const { transportSecurity } = await import("./http/tls.ts");
  return transportSecurity(options, address, logger);
}

/** The parts of a running server. */
interface Parts {
  readonly ports: readonly Port[];
  readonly responders: readonly Responder[];
  readonly endpoints: readonly AnyPathEndpoint[];
  readonly handler: Handler;
  readonly upgrades: Upgrades;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Resolves when this process gets no more connections. Only if other processes share the port. */
  leave(): Promise<void>;
  /** Closes the store if this server has opened it. */
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

/** Number of times that an address may fail to authenticate if other machines can reach the server. */
const usualFailures = { requests: 100, per: 60_000 };

/** The options of the handler that do not depend on the port. */
function hostOptions({ bindings: _, logger: __, store: ___, ...options }: ServeOptions, host: string, address: string) {
  const { allowedHosts, authenticator } = options;
  const isOpen = allowedHosts === undefined && (!isLoopback(address) || authenticator !== undefined);
  // On loopback, all clients behind an undeclared proxy share one address.
  const limitsGuesses = authenticator !== undefined && (!isLoopback(address) || options.trustProxy !== undefined);
  const rate = { ...(limitsGuesses && { failures: usualFailures }), ...options.limits?.rate };
  return {
    ...forHandler(options),
    health: options.health ?? true,
    limits: { answerBytes: heapShare(), ...options.limits, ...(Object.keys(rate).length > 0 && { rate }) },
    ...(!isOpen && { allowedHosts: [bracketed(host), ...(allowedHosts ?? [])] }),
  };
}

/** Waits for work, but at most `ms` milliseconds. */
async function within(ms: number, work: Promise<void>, logger: Logger): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      logger.warn("Agents did not stop in time");
      resolve();
    }, ms);
  });
  await Promise.race([late, work.catch((cause: unknown) => logger.error("Failed to stop agents", { cause }))]);
  clearTimeout(timer);
}
