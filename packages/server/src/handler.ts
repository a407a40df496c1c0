import type { AgentCard } from "@parley/a2a/internal/model/index";
import type {
  Agent,
  AgentService,
  Interceptor,
  Principal,
  UniversalHandler,
} from "@parley/a2a/internal/protocol/index";
import { jsonRpcBinding } from "@parley/a2a/internal/transport/jsonrpc/handler";
import { restBinding } from "@parley/a2a/internal/transport/rest/handler";
import type { InterfacePaths } from "@parley/a2a/internal/transport/router/claims";
import type { ServerBinding } from "@parley/a2a/internal/transport/server/binding";
import type { CorsOptions } from "@parley/a2a/internal/transport/server/origins";
import { codecV03, codecV1, draftsOf, wires, type ProtocolVersion } from "@parley/a2a/internal/wires";
import { createEngine, type Engine, type EngineOptions } from "./engine/index.ts";
import { checkHandlerOptions, checkHostOptions, checkStore, mountsOf } from "./server/checks.ts";
import {
  blobsOf,
  callbackEndpoint,
  fileEndpoint,
  fileReceiver,
  inTaskSettingsOf,
  keySetDocument,
  pushOutbox,
  pushSettingsOf,
  unfinishedBytesOf,
  webhooksParams,
} from "./server/features.ts";
import { attendant, startedBy, wakeEngine } from "./server/fetch.ts";
import { ReadinessCheck } from "./server/health.ts";
import { openHost, type SharedMemory } from "./server/host.ts";
import { methodRoutes } from "./server/methods.ts";
import { isRun, mountedAgent, type AnyMount, type MountedAgent } from "./server/mounted.ts";
import { operatorEndpoints } from "./server/operators.ts";
import type { Backing } from "./server/mounts.ts";
import type {
  AgentMount,
  HandlerLimits,
  HandlerOptions as Options,
  HostedCard,
  HostedService,
  HostOptions as OptionsOfHost,
  MountAddress,
  RouteContext,
  RouteMount,
  Routes,
  ServedAgent,
} from "./server/options.ts";
import type { Handler, Host, Mounts } from "./server/port.ts";
import { callersOf, servicesOf, type Callers, type Services } from "./server/services.ts";
import { hostSettings, type HostSettings, type Spoken } from "./server/settings.ts";

export { checkHandlerOptions, jsonRpcBinding, restBinding };
export type {
  AgentMount,
  CorsOptions,
  Handler,
  HandlerLimits,
  Host,
  HostedCard,
  HostedService,
  InterfacePaths,
  MountAddress,
  Mounts,
  ProtocolVersion,
  RouteContext,
  RouteMount,
  Routes,
  ServedAgent,
  ServerBinding,
};

/** Options of `createHost`. */
export type HostOptions = OptionsOfHost<ProtocolVersion>;

/** The bindings and versions of this project. */
const spoken: Spoken = { bindings: [jsonRpcBinding(), restBinding()], wires, draftsOf };

/**
 * Serves your own services over all bindings, without an engine or a store: for gateways and proxies. It has the same cards,
 * authentication, limits, probes and routes as `createHandler`.
 *
 * @throws A2AError `InvalidParams` if an option is missing or wrong, or if two agents or two bindings have the same
 * address or name.
 *
 * @example
 * ```ts
 * const upstream = await connect("https://weather.internal");
 * const card = { name: "Weather", description: "Knows the weather.", version: "1.0.0", skills: [] };
 * const host = createHost({ service: upstream.service, card }, { publicUrl: "https://agents.example.com" });
 * ```
 */
export function createHost(mounts: HostedService | readonly HostedService[], options: HostOptions): Host {
  checkHostOptions("createHost()", options);
  const settings = hostSettings(options, spoken);
  const { publicUrl, bindings, codecs, clock, logger } = settings;
  const by = { publicUrl, bindings, codecs, authenticator: options.authenticator, extensions: settings.extensions };
  const callers = callersOf(settings);
  const mounted = (mount: AnyMount): MountedAgent => mountedAgent(mount, by);
  return openHost<HostedService>(mountsOf(mounts).map(mounted), {
    settings,
    callers,
    services: servicesOf(settings, callers),
    readiness: new ReadinessCheck(undefined, clock, logger),
    mounted,
  });
}

/** Options of `createHandler`. */
export type HandlerOptions = Options<ProtocolVersion>;

/**
 * Serves agents over all bindings, and runs them. The stages are settings, storage, runs, services and the host.
 *
 * @throws A2AError `InvalidParams` if an option is missing or wrong, or if two agents or two bindings have the same
 * address or name.
 */
export function createHandler(
  agents: Agent | AgentMount | HostedService | readonly (AgentMount | HostedService)[],
  options: HandlerOptions,
): Handler {
  checkHandlerOptions("createHandler()", options);
  const settings = settingsOf(options);
  const storage = storageOf(settings, options);
  const mounted = mounting(settings, storage, options);
  const served = mountsOf<AnyMount>(agents).map(mounted);
  const callers = callersOf(settings, options.store.rates);
  const services = servicesOf(settings, callers);
  const runs = runsOf(served, { settings, storage, callers, services, options });
  const { engine } = runs;
  storage.readiness.drainWhile(() => engine.isDraining());
  const host = openHost<AgentMount | HostedService>(served, {
    ...storage.published,
    settings,
    callers,
    services,
    readiness: storage.readiness,
    methods: runs.methods,
    unfinishedBytes: storage.unfinishedBytes,
    mounted,
    run: runs.backing,
    ...engineParts(engine, settings, storage, options),
    close: (closing) => engine.close(closing),
  });
  // Started last, so that nothing runs if an option is invalid.
  if (options.waitUntil === undefined) engine.start();
  return Object.assign(host, {
    signal: (...event: Parameters<Handler["signal"]>) => engine.signal(...event),
    deleteOwner: (...of: Parameters<Handler["deleteOwner"]>) => engine.deleteOwner(...of),
    exportOwner: (of: Parameters<Handler["exportOwner"]>[0]) => engine.exportOwner(of),
    wake: (waking?: Parameters<Handler["wake"]>[0]) =>
      wakeEngine(engine, settings.clock, waking, options.waitUntil === undefined),
  });
}

/** The first stage: checked options with defaults. Limits bodies to the store's limit. */
function settingsOf(options: HandlerOptions): HostSettings {
  checkStore(options.store);
  const settings = hostSettings(options, spoken);
  const bodyBytes = Math.min(settings.limits.bodyBytes, options.store.recordBytes ?? Infinity);
  return { ...settings, limits: { ...settings.limits, bodyBytes } };
}

type Storage = ReturnType<typeof storageOf>;

/** The storage stage: data other than tasks, and the keys that seal it. */
function storageOf(settings: HostSettings, options: HandlerOptions) {
  const { publicUrl, basePath, limits, clock, logger } = settings;
  const push = pushSettingsOf(options.push, publicUrl, logger);
  const pushKeys = push?.keys;
  return {
    push,
    files: blobsOf(options.blobs, { publicUrl, pushKeys }),
    readiness: new ReadinessCheck(options.store, clock, logger),
    unfinishedBytes: unfinishedBytesOf(options.blobs, limits.bodyBytes),
    published: { documents: push === undefined ? [] : [keySetDocument(basePath, push)] },
  };
}

/** Builds an agent with its card from a mount. */
function mounting(settings: HostSettings, { push }: Storage, options: HandlerOptions) {
  const { publicUrl, bindings, codecs, extensions } = settings;
  const by = {
    publicUrl,
    bindings,
    codecs,
    authenticator: options.authenticator,
    extensions,
    dedupes: options.dedupe !== false,
    blobs: options.blobs !== undefined,
    push: push && webhooksParams(push),
  };
  return (mount: AnyMount): MountedAgent => mountedAgent(mount, by);
}

interface RunsInit {
  readonly settings: HostSettings;
  readonly storage: Storage;
  readonly callers: Callers;
  readonly services: Services;
  readonly options: HandlerOptions;
}

/** The engine of a handler. */
interface Runs {
  readonly engine: Engine;
  readonly methods: ReturnType<typeof methodRoutes>;
  backing(agent: MountedAgent, mount: AgentMount): Backing;
}

/** The stage that runs agents: the engine. */
function runsOf(served: readonly MountedAgent[], init: RunsInit): Runs {
  const { settings, storage, callers, services, options } = init;
  const { publicUrl, logger, audit, known, extensions } = settings;
  const { bodyBytes, unfinishedBytes, answerBytes, depth, streamsPerCaller, rate, ...limits } = options.limits ?? {};
  const { push: _, audit: _audit, authorization, blobs: _blobs, operators: _operators, ...engineOptions } = options;
  const { push, files } = storage;
  const own = served.flatMap(({ mount }) => (isRun(mount) ? [[...(mount.agent.extensions ?? []), ...extensions]] : []));
  const methods = methodRoutes(own, known);
  const hosted = (agent: MountedAgent, mount: AgentMount) =>
    engineAgent(
      agent,
      mount,
      settings,
      methods.length === 0 ? undefined : (service: AgentService) => services.guarded(service, agent),
    );
  const engine = createEngine({
    ...engineOptions,
    ...(audit !== undefined && { audit }),
    inTask: inTaskSettingsOf(authorization, {
      publicUrl,
      logger,
      pushKeys: push?.keys,
      authenticator: options.authenticator,
      authenticate: callers.admitted,
    }),
    limits,
    ...(files !== undefined && { files }),
    agents: served.flatMap((agent) => (isRun(agent.mount) ? [hosted(agent, agent.mount)] : [])),
    ...(push !== undefined && { push, outbox: pushOutbox(push, [codecV1, codecV03, ...draftsOf([codecV1])]) }),
  });
  const first = new Set(served);
  return {
    engine,
    methods,
    backing: (agent, mount) => (first.has(agent) ? engine.hosting(agent.id) : engine.offer(hosted(agent, mount))),
  };
}

/** The agent for the engine. `guard`: authorizes callers before its service. */
function engineAgent(
  { id, card }: MountedAgent,
  { agent, extendedCard }: AgentMount,
  { signer }: HostSettings,
  guard: Interceptor | undefined,
): EngineOptions["agents"][number] {
  const extended = async (principal: Principal): Promise<AgentCard> => {
    const own = (await extendedCard?.(card, principal)) ?? card;
    return signer === undefined ? own : signer.sign(own);
  };
  return {
    id,
    agent,
    card,
    ...(guard !== undefined && { guard }),
    ...(extendedCard !== undefined && { extendedCard: extended }),
  };
}

/** The operators' service, loaded with the first request. */
async function operatorOf(engine: Engine, { clock, audit }: HostSettings, { store, ids }: HandlerOptions) {
  const { createOperator } = await import("./operate/operator.ts");
  return createOperator({ store, clock, host: engine.operating(), audit, ...(ids !== undefined && { ids }) });
}

/** The endpoints of the engine, and how the platform keeps it running. */
function engineParts(engine: Engine, settings: HostSettings, { files }: Storage, options: HandlerOptions) {
  const { basePath, clock } = settings;
  const { waitUntil, blobs } = options;
  const onDemand = waitUntil && attendant({ engine, clock, waitUntil });
  return {
    ...(blobs !== undefined && {
      receiver: (idsOf: (services: Iterable<AgentService>) => readonly string[]) =>
        fileReceiver(blobs, (sender) => engine.receive(idsOf(sender.services.values()), sender)),
    }),
    endpoints: ({ unfinished, answers }: SharedMemory) => [
      callbackEndpoint(basePath, unfinished, () => engine.authorizations),
      ...operatorEndpoints({ settings, options, operator: () => operatorOf(engine, settings, options) }),
      ...(files === undefined ? [] : [fileEndpoint(basePath, (request) => engine.file(request, answers))]),
    ],
    attend: onDemand,
    around: (handle: UniversalHandler) => startedBy(onDemand, engine, handle),
  };
}
