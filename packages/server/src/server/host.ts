import { withoutQuery } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import {
  ByteBudget,
  type AgentService,
  type FileReceiver,
  type MethodRoute,
  type UniversalHandler,
  type UniversalRequest,
} from "@parley/a2a/internal/protocol/index";
import type { CardGate, PublicDocument } from "@parley/a2a/internal/transport/discovery/handler";
import { OpenCalls } from "@parley/a2a/internal/transport/server/context";
import { admission, type Admission } from "@parley/a2a/internal/transport/server/origins";
import type { ServiceMount } from "@parley/a2a/internal/transport/router/claims";
import {
  type Pages,
  beforeRouter,
  createRouter,
  type PublicEndpoint,
} from "@parley/a2a/internal/transport/router/router";
import {
  cannotServe,
  isAnyPath,
  openAnyPath,
  type RequestLimits,
  type ServerHost,
} from "@parley/a2a/internal/transport/server/binding";
import {
  answerWith,
  tagged,
  type Document,
  errorResponse,
  failureOf,
} from "@parley/a2a/internal/transport/server/response";
import { KeepAlive } from "@parley/a2a/internal/transport/server/event-stream";
import { toFetch, type Attend } from "@parley/a2a/internal/transport/server/fetch";
import { unfinishedBodies } from "@parley/a2a/internal/transport/server/unfinished";
import { cardGates } from "./cards.ts";
import { probesOf, type ReadinessCheck } from "./health.ts";
import { operationsWith } from "./methods.ts";
import { isRun, type AnyMount, type MountedAgent } from "./mounted.ts";
import { checkIds, HostMounts, servedAgent, withCards, type Backing, type MountsInit, type Served } from "./mounts.ts";
import { ForeignCalls } from "./open-work.ts";
import type { AgentMount, PageLink, ServedAgent } from "./options.ts";
import type { Host } from "./port.ts";
import { besideRoutes, routesOf } from "./routes.ts";
import type { Callers, Services } from "./services.ts";
import { originsOf, type HostSettings } from "./settings.ts";

/* The last stage: services behind bindings, cards, routes and probes. This module does not use the engine. */

export interface HostParts extends Pick<MountsInit, "mounted"> {
  readonly settings: HostSettings;
  readonly callers: Callers;
  readonly services: Services;
  readonly readiness: ReadinessCheck;
  /** Runs an agent. Absent: every agent is a service. */
  run?(agent: MountedAgent, mount: AgentMount): Backing;
  readonly methods?: readonly MethodRoute[];
  /** Memory of bodies that are being received. Default: by the option. */
  readonly unfinishedBytes?: number | undefined;
  /** Extracts large files from messages. `idsOf`: the agents with these services. */
  receiver?(idsOf: (services: Iterable<AgentService>) => readonly string[]): FileReceiver | undefined;
  /** The server's documents. */
  readonly documents?: readonly PublicDocument[];
  /** The server's own endpoints. */
  endpoints?(memory: SharedMemory): readonly PublicEndpoint[];
  /** Called for each request, if the platform runs code only during requests. */
  readonly attend?: Attend | undefined;
  /** Wraps the function that answers requests. */
  around?(handle: UniversalHandler): UniversalHandler;
  /** Stops the agents that `run` has started, within `grace` milliseconds. */
  close?(closing?: { readonly grace?: number }): Promise<void>;
}

/** The memory that all requests of a host share, and the memory that all its answers share. */
export type SharedMemory = Required<Pick<RequestLimits, "answers" | "unfinished">>;

/**
 * Serves agents.
 *
 * @throws A2AError `InvalidParams` if two agents or two bindings have the same address or name.
 */
export function openHost<Mount extends AnyMount>(agents: readonly MountedAgent[], parts: HostParts): Host<Mount> {
  const { settings, callers, readiness, services, attend } = parts;
  const { options, bindings, clock, onRefused } = settings;
  const gateOf = cardGates(options, callers, callers.admitted, { audit: onRefused, clock });
  const foreign = new ForeignCalls(settings.closing.signal, settings.open);
  const init: MountsInit = { settings, gateOf, mounted: parts.mounted, backing: backingOf(parts, foreign), services };
  const all = agents.map((agent) => servedAgent(agent, init));
  checkIds(all.map(({ agent }) => agent.id));
  const live = new LiveAgents(settings);
  const host = serverHost(parts, live);
  const probes = probesOf(options.health, readiness);
  const router = routerOf(all, parts, { host, live, probes });
  const anyPath = bindings.filter(isAnyPath).map((binding) => openAnyPath(binding, host));
  const claims = (request: UniversalRequest): boolean => anyPath.some((endpoint) => endpoint.claims(request));
  const { answers, find } = router;
  const routed = beforeRouter(anyPath, router.handle);
  const beside = besideRoutes(routed, settings, { answers, claims, admit: host.admit });
  const handle = parts.around?.(beside) ?? beside;
  const mounts = new HostMounts<Mount>(all, init, host.calls, router.change);
  return {
    handle,
    fetch: toFetch(handle, options.facts, host.logger, attend),
    find,
    answers,
    claims,
    isProbe: (url) => probes.some(({ path }) => path === withoutQuery(url)),
    host: attend === undefined ? host : { ...host, attend },
    mounts,
    get agents() {
      return mounts.agents;
    },
    drain: () => readiness.close(),
    async close(closing) {
      settings.closing.abort();
      readiness.close();
      for (const endpoint of anyPath) endpoint.close?.();
      host.limits.answers.close(new A2AError("Unavailable", "The server is stopping", { retryAfter: 1 }));
      settings.refusals?.close();
      await Promise.all([settings.open.ended(closing?.grace ?? 0).then(() => foreign.cut()), parts.close?.(closing)]);
    },
  };
}

/** The service for the calls of an agent: its own, or the engine's. */
function backingOf({ run }: HostParts, foreign: ForeignCalls): MountsInit["backing"] {
  return (agent) => {
    const { mount } = agent;
    if (!isRun(mount)) return { service: foreign.of(mount.service) };
    if (run === undefined) throw cannotServe("agent", "needs an engine: use createHandler() or serve() with a store");
    return run(agent, mount);
  };
}

interface RouterParts {
  readonly host: OwnHost;
  readonly live: LiveAgents;
  readonly probes: readonly PublicEndpoint[];
}

/** The router of a host. `change` replaces the agents. */
function routerOf(first: readonly Served[], parts: HostParts, { host, live, probes }: RouterParts) {
  const { settings, callers } = parts;
  const { options, bindings, signer } = settings;
  const published = [...(parts.documents ?? []), ...(signer === undefined ? [] : [signer.document])];
  const prepared = (all: readonly Served[]) => {
    const { documents, commit } = callers.prepare(all.map(({ agent }) => agent));
    return { mounts: all.map(({ mount }) => mount), documents: [...documents, ...published], commit };
  };
  const agentsFor = (request: UniversalRequest) => readableAgents(request, live);
  const routes = routesOf(settings, callers, agentsFor);
  const { mounts, documents, commit } = prepared(first);
  const router = createRouter(
    mounts,
    {
      ...host,
      bindings,
      maxAge: options.cardMaxAge ?? 300,
      ...(options.page !== false && { pages: pagesOf(settings, live) }),
      ...(routes !== undefined && { routes }),
      endpoints: [...(parts.endpoints?.(host.limits) ?? []), ...probes],
    },
    documents,
  );
  commit();
  live.set(first);
  const change = (all: readonly Served[]): void => {
    const next = prepared(all);
    const serve = router.prepare(next.mounts, next.documents);
    serve();
    next.commit();
    live.set(all);
  };
  return { ...router, change };
}

/** The data that changes with the agents of a host, for use on each request. */
class LiveAgents {
  /** Services by their labels, for bindings without paths. */
  readonly services = new Map<string | undefined, AgentService>();
  readonly #ids = new Map<AgentService, string>();
  readonly #settings: HostSettings;
  #admit: Admission | undefined;
  all: readonly MountedAgent[] = [];
  mounts: readonly ServiceMount[] = [];

  constructor(settings: HostSettings) {
    this.#settings = settings;
  }

  set(all: readonly Served[]): void {
    const { publicUrl, options } = this.#settings;
    const { allowedHosts, cors = false } = options;
    this.all = all.map(({ agent }) => agent);
    this.mounts = all.map(({ mount }) => mount);
    this.services.clear();
    this.#ids.clear();
    for (const { agent, service } of all) {
      this.services.set(agent.label, service);
      this.#ids.set(service, agent.id);
    }
    const hosts = new Set([new URL(publicUrl).host, ...all.flatMap((each) => each.hosts), ...(allowedHosts ?? [])]);
    this.#admit = allowedHosts && admission([...hosts], originsOf(cors));
  }

  /** Checks the host name of a request, and its origin. Logs rejected requests. */
  readonly admit: Admission = (request) => {
    try {
      this.#admit?.(request);
    } catch (thrown) {
      this.#settings.refusals?.host(request);
      throw thrown;
    }
  };

  readonly idsOf = (services: Iterable<AgentService>): readonly string[] =>
    Array.from(services, (service) => this.#ids.get(service) ?? []).flat();
}

/** The host's dependencies for bindings. Counts calls, and limits their memory. */
interface OwnHost extends ServerHost {
  readonly calls: OpenCalls;
  readonly limits: RequestLimits & SharedMemory;
}

/** The dependencies for bindings. */
function serverHost(parts: HostParts, live: LiveAgents): OwnHost {
  const { settings, callers, readiness, methods = [], unfinishedBytes } = parts;
  const { options, limits, clock, logger, refusals, spoken } = settings;
  const { cors = false, allowedHosts, strictVersion = false, keepAlive = 15_000 } = options;
  const { bodyBytes, depth, answerBytes } = limits;
  const receiver = parts.receiver?.(live.idsOf);
  const checksHosts = allowedHosts !== undefined && !allowedHosts.includes("*");
  return {
    readiness: () => readiness.check(),
    authenticate: callers.admitted,
    codecs: spoken,
    operations: operationsWith(methods),
    services: live.services,
    calls: new OpenCalls(),
    limits: {
      bodyBytes,
      depth,
      unfinished: unfinishedBodies(bodyBytes, limits.unfinishedBytes ?? unfinishedBytes, clock),
      answers: new ByteBudget(answerBytes, clock, "The server is busy with other large answers"),
    },
    ...(methods.length > 0 && { methods }),
    ...(receiver !== undefined && { receiver }),
    ...(refusals !== undefined && { refusedOrigin: (request) => refusals.origin(request) }),
    ...(checksHosts && { admit: live.admit }),
    ...(cors !== false && { cors }),
    strictVersion,
    keepAlive: new KeepAlive(clock, keepAlive),
    clock,
    logger,
  };
}

/** The pages for browsers. Their code is loaded with the first request of a browser. Pages that anyone may read are rendered once. */
function pagesOf({ options, basePath, publicUrl, codecs, logger }: HostSettings, live: LiveAgents): Pages {
  const written = new WeakMap<readonly ServiceMount[], Promise<Document>>();
  const write = async (mounts: readonly ServiceMount[], gate: CardGate | undefined): Promise<Document> => {
    const { agentPage, listPage, pageHeaders } = await import("../page/index.ts");
    const agents = withCards(live.all, new Set(mounts.map(({ card }) => card)));
    const [only, ...others] = agents;
    const isOne = only !== undefined && others.length === 0;
    const links = pageLinks(options, publicUrl, isOne ? only.id : undefined);
    const text = isOne ? agentPage(only, links) : listPage(agents, publicUrl, links);
    const headers = await pageHeaders();
    if (gate === undefined) return tagged(text, headers);
    const vary = [headers["vary"], ...gate.vary].join(", ");
    return tagged(text, { ...headers, "cache-control": "private, no-cache", vary });
  };
  return {
    root: basePath,
    async answer(request, mounts) {
      const gate = mounts.find((mount) => mount.gate !== undefined)?.gate;
      if (gate !== undefined) {
        try {
          return answerWith(await write(await readable(request, mounts), gate), request);
        } catch (thrown) {
          const fields = { url: withoutQuery(request.url) };
          return errorResponse(
            codecs[0],
            failureOf(thrown, logger, fields, () => false),
          );
        }
      }
      const page = written.get(mounts) ?? write(mounts, gate);
      written.set(mounts, page);
      return answerWith(await page, request);
    },
  };
}

/** The links of routes, with the URLs that browsers reach them by. */
function pageLinks(
  { routes }: HostSettings["options"],
  publicUrl: string,
  agent: string | undefined,
): readonly PageLink[] {
  if (routes === undefined || typeof routes === "function") return [];
  return routes.flatMap(({ link }) => {
    if (link === undefined) return [];
    const { text, href } = link(agent);
    return [{ text, href: publicUrl.replace(/\/$/, "") + href }];
  });
}

/** The currently served agents whose cards the sender of a request may read. */
async function readableAgents(request: UniversalRequest, live: LiveAgents): Promise<readonly ServedAgent[]> {
  const { all, mounts } = live;
  const known = await Promise.all(
    mounts.map(async ({ gate }) => {
      try {
        await gate?.check(request, true);
        return true;
      } catch {
        return false;
      }
    }),
  );
  return all.filter((_, at) => known[at]);
}

/**
 * The agents whose cards the sender of a request may read.
 *
 * @throws A2AError The error for the first agent, if the sender may read no card.
 */
async function readable(request: UniversalRequest, mounts: readonly ServiceMount[]): Promise<readonly ServiceMount[]> {
  const found: ServiceMount[] = [];
  let refusal: unknown;
  for (const mount of mounts) {
    try {
      await mount.gate?.check(request, mounts.length > 1);
      found.push(mount);
    } catch (thrown) {
      refusal ??= thrown;
    }
  }
  if (found.length === 0) throw refusal;
  return found;
}
