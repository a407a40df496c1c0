import { meantBy } from "@parley/a2a/internal/model/options";
import { checkOptions, type OptionNames } from "@parley/a2a/internal/model/index";
import type { Agent } from "@parley/a2a/internal/protocol/index";
import { cannotServe } from "@parley/a2a/internal/transport/server/binding";
import type { CorsOptions } from "@parley/a2a/internal/transport/server/origins";
import type { BlobOptions } from "../blobs/port.ts";
import type { DedupeOptions, EngineOptions, LeaseOptions, RetentionOptions, TaskTimes } from "../engine/index.ts";
import type { InTaskOptions } from "../intask/index.ts";
import type { RateLimits } from "../limits/port.ts";
import type { PushOptions } from "../push/index.ts";
import type { HealthOptions } from "./health.ts";
import type {
  AgentMount,
  HandlerLimits,
  HandlerOptions,
  HostedService,
  HostOptions,
  RouteMount,
  SignCards,
} from "./options.ts";
import { isArray, isObject } from "@parley/a2a/internal/model/schema";

/* Checks options, for callers without types. The names of options are data, which the compiler compares with the types. */

const ofHost = {
  allowedHosts: 1,
  audit: 1,
  authenticator: 1,
  authorizer: 1,
  basePath: 1,
  bindings: 1,
  cardMaxAge: 1,
  cardReaders: 1,
  clock: 1,
  cors: 1,
  extensions: 1,
  facts: 1,
  health: 1,
  interceptors: 1,
  keepAlive: 1,
  limits: 1,
  logger: 1,
  observer: 1,
  page: 1,
  publicUrl: 1,
  routes: 1,
  signCards: 1,
  skillOf: 1,
  strictVersion: 1,
  versions: 1,
} satisfies OptionNames<HostOptions>;

const ofHandler = {
  ...ofHost,
  authorization: 1,
  blobs: 1,
  conversations: 1,
  dedupe: 1,
  directReplyWithin: 1,
  ids: 1,
  lease: 1,
  longPoll: 1,
  mergeTextParts: 1,
  operators: 1,
  ownerOf: 1,
  pollInterval: 1,
  push: 1,
  retention: 1,
  store: 1,
  waitUntil: 1,
} satisfies OptionNames<HandlerOptions>;

const taskTimes = {
  terminal: 1,
  completed: 1,
  failed: 1,
  canceled: 1,
  rejected: 1,
  inputRequired: 1,
  authRequired: 1,
} satisfies OptionNames<TaskTimes>;

/** The names in options that are objects. `limits` has its own check. */
const nested = {
  authorization: { keys: 1, identify: 1 } satisfies OptionNames<InTaskOptions>,
  blobs: {
    store: 1,
    inlineBytes: 1,
    fileBytes: 1,
    taskBytes: 1,
    uploadBytes: 1,
    messageBytes: 1,
    unfinishedBytes: 1,
    linkTime: 1,
    links: 1,
    keys: 1,
    keepUnused: 1,
    interval: 1,
  } satisfies OptionNames<BlobOptions>,
  cors: { origins: 1, headers: 1, maxAge: 1 } satisfies OptionNames<CorsOptions>,
  dedupe: { window: 1, onConflict: 1, replies: 1, replyBytes: 1 } satisfies OptionNames<DedupeOptions>,
  health: { live: 1, ready: 1 } satisfies OptionNames<HealthOptions>,
  lease: {
    ttl: 1,
    maxAttempts: 1,
    maxDeaths: 1,
    holder: 1,
    isGone: 1,
    wasKilled: 1,
  } satisfies OptionNames<LeaseOptions>,
  push: {
    keys: 1,
    net: 1,
    dialer: 1,
    mutualTls: 1,
    challenge: 1,
    events: 1,
    bodyBytes: 1,
    configsPerTask: 1,
    retryAfter: 1,
    timeout: 1,
    concurrency: 1,
    concurrencyPerOrigin: 1,
  } satisfies OptionNames<PushOptions>,
  retention: { ...taskTimes, agents: 1, replay: 1, interval: 1 } satisfies OptionNames<RetentionOptions>,
  signCards: { keys: 1, retired: 1, reduced: 1 } satisfies OptionNames<SignCards>,
};

const ofNet = {
  protocols: 1,
  ports: 1,
  allowPrivate: 1,
  allowLoopback: 1,
  allow: 1,
  maxBytes: 1,
  timeout: 1,
} satisfies OptionNames<NonNullable<PushOptions["net"]>>;

const address = { path: 1, interfaces: 1, cardPaths: 1, tenant: 1, id: 1 } as const;
const ofMount = { ...address, agent: 1, extendedCard: 1 } satisfies OptionNames<AgentMount>;
const ofService = { ...address, service: 1, card: 1 } satisfies OptionNames<HostedService>;
const ofRoute = { path: 1, access: 1, answer: 1, link: 1 } satisfies OptionNames<RouteMount>;

/**
 * Rejects options that neither a handler nor the host around it has.
 *
 * @param of - The function with these options: `serve()`.
 * @param own - The names of the host's own options.
 * @throws A2AError `InvalidParams`, which suggests the option that was probably meant.
 */
export function checkHandlerOptions(
  of: string,
  options: Pick<HandlerOptions, "push" | "retention">,
  own: Readonly<Record<string, 1>> = {},
): void {
  checkNames(of, options, { ...ofHandler, ...own });
  const { push, retention } = options;
  if (isObject(push)) checkNested("push.net", push["net"], ofNet);
  for (const [id, times] of Object.entries(retention?.agents ?? {}))
    checkNested(`retention.agents[${JSON.stringify(id)}]`, times, taskTimes);
}

/** Rejects options that need an engine, for a host without one. */
export function checkHostOptions(of: string, options: object): void {
  checkNames(of, options, ofHost);
}

function checkNames(of: string, options: object, known: Readonly<Record<string, 1>>): void {
  checkOptions(of, options, known, meantBy);
  const given = new Map(Object.entries<unknown>({ ...options }));
  for (const [name, members] of Object.entries(nested)) checkNested(name, given.get(name), members);
}

function checkNested(of: string, given: unknown, known: Readonly<Record<string, 1>>): void {
  // These options may also be `true` or `false`.
  if (typeof (given ?? false) !== "boolean") checkOptions(of, given, known, meantBy);
}

/** The routes of a list. JavaScript callers can pass anything. */
export function checkRoutes(routes: readonly RouteMount[]): void {
  if (!isArray(routes))
    throw cannotServe("routes", 'must be a function, or a list such as [{ path: "/status", answer }]');
  for (const [at, route] of routes.entries()) {
    if (!isObject(route) || typeof route.path !== "string" || typeof route.answer !== "function") {
      throw cannotServe(`routes[${at}]`, 'must have a path such as "/console", and a function answer()');
    }
    checkOptions(`routes[${at}]`, route, ofRoute, meantBy);
    if (!["anyone", "authenticated", undefined].includes(route.access)) {
      throw cannotServe(`routes[${at}].access`, 'must be "anyone" or "authenticated"');
    }
  }
}

/** The mounts of the agents. JavaScript callers can pass anything, such as a name that a module does not export. */
export function mountsOf<Mount extends AgentMount | HostedService>(
  agents: Agent | Mount | readonly Mount[],
): readonly (Mount | AgentMount)[] {
  if (isAgent(agents)) return [{ agent: agents }];
  const isList = (given: Mount | readonly Mount[]): given is readonly Mount[] => Array.isArray(given);
  const mounts = isList(agents) ? agents : [agents];
  for (const mount of mounts) checkMount(mount);
  return mounts;
}

function checkMount(mount: Partial<AgentMount & HostedService> | null | undefined): void {
  if (isAgent(mount?.agent)) return checkOptions("a mount", mount ?? {}, ofMount, meantBy);
  const { service, card } = mount ?? {};
  if (service === undefined) {
    throw cannotServe(
      "agent",
      'must be an agent, as defineAgent() returns it, or a list of mounts: [{ agent, path: "/weather" }]',
    );
  }
  if (typeof service?.call !== "function" || typeof service.stream !== "function") {
    throw cannotServe("service", "must have the functions call() and stream() of an AgentService");
  }
  if (!isObject(card) || !Array.isArray(card.skills)) {
    throw cannotServe("card", "must have a name, a description, a version and a list of skills");
  }
  checkOptions("a mount", mount ?? {}, ofService, meantBy);
}

function isAgent(value: unknown): value is Agent {
  return typeof value === "object" && value !== null && "execute" in value;
}

/**
 * Rejects options for authentication that have a wrong type, which JavaScript can pass. Each call would fail with them.
 *
 * @throws A2AError `InvalidParams`.
 */
export function checkCallers(
  options: Partial<Pick<HandlerOptions, "authenticator" | "authorizer" | "ownerOf" | "skillOf">>,
): void {
  const { authenticator } = options;
  if (authenticator !== undefined && typeof authenticator?.authenticate !== "function") {
    const several = Array.isArray(authenticator) ? ". Several go together by anyOf() or allOf()" : "";
    throw cannotServe("authenticator", `must be an authenticator, such as apiKey(keys)${several}`);
  }
  for (const name of ["authorizer", "ownerOf", "skillOf"] as const) {
    if (options[name] !== undefined && typeof options[name] !== "function")
      throw cannotServe(name, "must be a function");
  }
}

type Store = EngineOptions["store"];

const storeMethods = [
  "append",
  "head",
  "load",
  "read",
  "list",
  "once",
  "conversation",
  "claimable",
  "stranded",
  "features",
  "dueFeatures",
  "sweep",
  "close",
] as const satisfies readonly (keyof Store)[];

/** Rejects a value that is not a store, such as `{ ...store }`, which lacks the methods of the class. */
export function checkStore(store: Partial<Store> | undefined): void {
  if (store === undefined)
    throw cannotServe("store", "is required. Pass memoryStore(), or sqliteStore() of @parley/sql");
  const missing = storeMethods.find((name) => typeof store[name] !== "function");
  if (missing === undefined) return;
  const reason = "A copy of a store by { ...store } has none of the methods of its class";
  throw cannotServe("store", `has no method ${missing}(). ${reason}`);
}

/* The names of limits. An unknown limit would limit nothing. The compiler reports missing names. */

const limitNames: Readonly<Record<keyof HandlerLimits, true>> = {
  rate: true,
  pendingEvents: true,
  pendingBytes: true,
  liveRecords: true,
  liveBytes: true,
  eventBytes: true,
  stateBytes: true,
  taskBytes: true,
  totalBytes: true,
  pageBytes: true,
  messageParts: true,
  metadataBytes: true,
  tasksPerCaller: true,
  runs: true,
  queuedPerCaller: true,
  hookTimeout: true,
  bodyBytes: true,
  unfinishedBytes: true,
  answerBytes: true,
  depth: true,
  streamsPerCaller: true,
};

const rateNames: Readonly<Record<keyof RateLimits, true>> = {
  principal: true,
  address: true,
  failures: true,
  shared: true,
};

/**
 * Rejects a limit that is unknown or not a number, which would limit nothing, and one below 1, which would reject everything.
 * JavaScript callers can pass anything.
 */
export function checkLimits({ rate, ...limits }: HandlerLimits = {}): void {
  checkLimitNames("limits", limits, limitNames);
  for (const [name, value] of Object.entries<unknown>(limits)) {
    if (value === undefined || (typeof value === "number" && value >= 1)) continue;
    // `JSON.stringify` writes NaN as null, and throws for a bigint.
    const given =
      typeof value === "number" ? value : typeof value === "string" ? JSON.stringify(value) : `of type ${typeof value}`;
    throw cannotServe(`limits.${name}`, `must be a number of at least 1; got ${given}`);
  }
  checkRates(rate);
}

function checkRates({ shared, ...limits }: RateLimits = {}): void {
  checkLimitNames("limits.rate", limits, rateNames);
  if (shared !== undefined && typeof shared !== "boolean")
    throw cannotServe("limits.rate.shared", "must be true or false");
  for (const [name, limit] of Object.entries<unknown>(limits)) {
    if (limit === undefined || limit === false) continue;
    if (!isObject(limit))
      throw cannotServe(`limits.rate.${name}`, "must be { requests, per }, or an object with a function take()");
    if ("take" in limit) continue;
    for (const field of ["requests", "per"] as const) {
      const value = limit[field];
      if (typeof value === "number" && value >= 1 && value < Infinity) continue;
      throw cannotServe(`limits.rate.${name}.${field}`, "must be a number of at least 1");
    }
  }
}

function checkLimitNames(field: string, given: object, known: Readonly<Record<string, true>>): void {
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  throw cannotServe(
    `${field}.${unknown}`,
    `is not a limit. The limits are ${Object.keys(known).toSorted().join(", ")}`,
  );
}
