import type { Clock, Logger } from "../base/index.ts";
import type { Authenticate, LimitsHost, Rate, RateLimits } from "../limits/index.ts";
import type { AgentService } from "../protocol/index.ts";
import { cannotServe } from "../transport/server/binding.ts";

/* The limits of callers. What counts is loaded with the first request, and only where there is a limit. */

/** Refuses a rate that would limit nothing, or everything. JavaScript callers can pass anything. */
export function checkRates(limits: RateLimits = {}): void {
  for (const [name, limit] of Object.entries(limits) as [string, Partial<Rate> | false | undefined][]) {
    if (limit === undefined || limit === false || "take" in limit) continue;
    for (const field of ["requests", "per"] as const) {
      const value: unknown = limit[field];
      if (typeof value === "number" && value >= 1 && value < Infinity) continue;
      throw cannotServe(`limits.rate.${name}.${field}`, "must be a number of at least 1");
    }
  }
}

/** The same authentication, within the limits of requests. */
export function withinRates(
  authenticate: Authenticate,
  limits: RateLimits | undefined,
  clock: Clock,
  logger: Logger,
): Authenticate {
  if (limits === undefined) return authenticate;
  const host: LimitsHost = { clock, logger };
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
