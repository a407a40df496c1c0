import { auditedAuthentication, auditedService, refusedCall } from "@parley/a2a/internal/auth/audited";
import { authorized, skillInMetadata, type Authorization } from "@parley/a2a/internal/auth/guarded";
import { intercept, observeCalls, type AgentService, type Interceptor } from "@parley/a2a/internal/protocol/index";
import type { RateLimits } from "../limits/port.ts";
import type { Authenticate, LimitsHost } from "../limits/requests.ts";
import { authenticationOf, type Authentication } from "./authentication.ts";
import type { MountedAgent } from "./mounted.ts";
import type { HostSettings } from "./settings.ts";

/* The stage between hosts and services: authenticates callers, and wraps the services of agents in checks. */

/** Authentication of a host's callers, with rate limits. */
export interface Callers extends Authentication {
  /** Authenticates the caller of a request, within the rate limits. Audits rejections. */
  readonly admitted: Authenticate;
}

/** Makes the authentication of a host. `rates`: the budgets that processes share. */
export function callersOf(settings: HostSettings, rates?: LimitsHost["rates"]): Callers {
  const { options, publicUrl, basePath, limits, onRefused, clock, logger, closing } = settings;
  const { authenticator, skillOf, cardReaders } = options;
  const authentication = authenticationOf(authenticator, { publicUrl, basePath }, skillOf, cardReaders);
  const limiting: LimitsHost = { clock, logger, rates, isClosed: () => closing.signal.aborted };
  const within = (inner: Authenticate): Authenticate => withinRates(inner, limits.rate, limiting);
  const authenticate: Authenticate = (request) => authentication.authenticate(request);
  const admitted =
    onRefused === undefined ? within(authenticate) : auditedAuthentication(authenticate, within, onRefused, clock);
  return { ...authentication, admitted };
}

/** Wraps the authentication with rate limits, whose code is loaded with the first request. */
function withinRates(authenticate: Authenticate, limits: RateLimits | undefined, host: LimitsHost): Authenticate {
  if (limits === undefined) return authenticate;
  let limited: Authenticate | undefined;
  const load = async (): Promise<Authenticate> => {
    const { limitRequests } = await import("../limits/requests.ts");
    return (limited ??= limitRequests(authenticate, limits, host));
  };
  return (request) => (limited === undefined ? load().then((loaded) => loaded(request)) : limited(request));
}

/** Wraps services in the checks of a host. */
export interface Services {
  /** The service for callers. */
  served(service: AgentService, agent: MountedAgent): AgentService;
  /** The service for methods of extensions, behind the same checks, but without interceptors. */
  guarded(service: AgentService, agent: MountedAgent): AgentService;
}

/** The stage of services: the interceptors, the authorizer, the checks of the card, the limit of streams, the audit. */
export function servicesOf(settings: HostSettings, callers: Callers): Services {
  const { options, onRefused, clock, observer, limits } = settings;
  const { authorizer, interceptors = [], skillOf = skillInMetadata } = options;
  const within = withinStreams(limits.streamsPerCaller);
  const behind = (service: AgentService, agent: MountedAgent): AgentService => {
    const { id, card } = agent;
    const onHidden: Authorization["onHidden"] = (...call) =>
      onRefused?.({ event: "authorization", ...refusedCall(id, ...call, clock) });
    const allowed =
      authorizer === undefined
        ? service
        : authorized(service, { authorizer, agent: id, skills: card.skills, skillOf, onHidden });
    const checked = within(callers.guard(allowed, agent));
    return onRefused === undefined ? checked : auditedService(checked, id, onRefused, clock);
  };
  return {
    served(service, agent) {
      const served = behind(intercept(service, interceptors), agent);
      return observer?.call === undefined ? served : observeCalls(observer, agent.id, agent.card)(served);
    },
    guarded: behind,
  };
}

/** Wraps services so that a caller has at most `max` open streams, at all services together. */
function withinStreams(max: number | undefined): Interceptor {
  if (max === undefined) return (service) => service;
  const streams = import("../limits/requests.ts").then(({ OpenStreams }) => new OpenStreams(max));
  // If the code cannot be loaded, each stream fails with the reason.
  streams.catch(() => {});
  return (service) => ({
    call: (operation, request, context) => service.call(operation, request, context),
    stream: async (operation, request, context) =>
      (await streams).enter(context, () => service.stream(operation, request, context)),
  });
}
