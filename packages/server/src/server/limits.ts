import type { Authenticate, LimitsHost, Rate, RateLimits } from "../limits/index.ts";
import type { AgentService } from "@parley/a2a/internal/protocol/index";
import { cannotServe } from "@parley/a2a/internal/transport/server/binding";
import type { HandlerLimits } from "./options.ts";

/* The limits of callers. What counts is loaded with the first request, and only where there is a limit. */

/* A limit that is not known would limit nothing. The compiler says which names are missing here. */

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
 * Refuses a limit that is not known or not a number, which would limit nothing, and one below 1, which would refuse everything.
 * JavaScript callers can pass anything.
 */
export function checkLimits({ rate, ...limits }: HandlerLimits = {}): void {
  checkNames("limits", limits, limitNames);
  for (const [name, value] of Object.entries(limits) as [string, unknown][]) {
    if (value === undefined || (typeof value === "number" && value >= 1)) continue;
    // `JSON.stringify` writes NaN as null, and throws for a bigint.
    const given =
      typeof value === "number" ? value : typeof value === "string" ? JSON.stringify(value) : `of type ${typeof value}`;
    throw cannotServe(`limits.${name}`, `must be a number of at least 1, but is ${given}`);
  }
  checkRates(rate);
}

function checkRates({ shared, ...limits }: RateLimits = {}): void {
  checkNames("limits.rate", limits, rateNames);
  if (shared !== undefined && typeof shared !== "boolean")
    throw cannotServe("limits.rate.shared", "must be true or false");
  for (const [name, limit] of Object.entries(limits) as [string, Partial<Rate> | false | undefined][]) {
    if (limit === undefined || limit === false) continue;
    if (typeof limit !== "object" || limit === null)
      throw cannotServe(`limits.rate.${name}`, "must be { requests, per }, or an object with a function take()");
    if ("take" in limit) continue;
    for (const field of ["requests", "per"] as const) {
      const value: unknown = limit[field];
      if (typeof value === "number" && value >= 1 && value < Infinity) continue;
      throw cannotServe(`limits.rate.${name}.${field}`, "must be a number of at least 1");
    }
  }
}

function checkNames(field: string, given: object, known: Readonly<Record<string, true>>): void {
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  throw cannotServe(`${field}.${unknown}`, `is no limit. There are ${Object.keys(known).toSorted().join(", ")}`);
}

/** The same authentication, within the limits of requests. */
export function withinRates(
  authenticate: Authenticate,
  limits: RateLimits | undefined,
  host: LimitsHost,
): Authenticate {
  if (limits === undefined) return authenticate;
  let limited: Authenticate | undefined;
  const load = async (): Promise<Authenticate> => {
    const { limitRequests } = await import("../limits/index.ts");
    return (limited ??= limitRequests(authenticate, limits, host));
  };
  return (request) => (limited === undefined ? load().then((loaded) => loaded(request)) : limited(request));
}

/** Wraps services, so that one caller has no more than `most` streams open at all of them. */
export function withinStreams(most: number | undefined): (service: AgentService) => AgentService {
  if (most === undefined) return (service) => service;
  const streams = import("../limits/index.ts").then(({ OpenStreams }) => new OpenStreams(most));
  // Where it cannot be loaded, each stream is refused with the reason.
  streams.catch(() => {});
  return (service) => ({
    call: (operation, request, context) => service.call(operation, request, context),
    stream: async (operation, request, context) =>
      (await streams).enter(context, () => service.stream(operation, request, context)),
  });
}
