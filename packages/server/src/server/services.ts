import { auditedAuthentication, auditedService, refusedCall } from "@parley/a2a/internal/auth/audited";
import { authorized, skillInMetadata, type Authorization } from "@parley/a2a/internal/auth/guarded";
import type { Deferred } from "@parley/a2a/internal/base/async";
import { deferred, type Clock } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import {
  finishing,
  intercept,
  observeCalls,
  type AgentService,
  type Interceptor,
  type StreamReply,
} from "@parley/a2a/internal/protocol/index";
import type { Authenticate, LimitsHost, RateLimits } from "../limits/index.ts";
import { authenticationOf, type Authentication } from "./authentication.ts";
import type { MountedAgent } from "./mounted.ts";
import type { HostSettings } from "./settings.ts";

/* The stage between hosts and services: who calls, and what a call passes before it reaches the service of an agent. */

/** Who calls a host, and how often. */
export interface Callers extends Authentication {
  /** Finds the caller of a request, within the limits of requests. Who is refused is recorded. */
  readonly admitted: Authenticate;
}

/** Finds the callers of a host. `rates`: the budgets that processes share. */
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

/** The same authentication, within the limits of requests. What counts is loaded with the first request. */
function withinRates(authenticate: Authenticate, limits: RateLimits | undefined, host: LimitsHost): Authenticate {
  if (limits === undefined) return authenticate;
  let limited: Authenticate | undefined;
  const load = async (): Promise<Authenticate> => {
    const { limitRequests } = await import("../limits/index.ts");
    return (limited ??= limitRequests(authenticate, limits, host));
  };
  return (request) => (limited === undefined ? load().then((loaded) => loaded(request)) : limited(request));
}

/** Puts services behind what a host checks. */
export interface Services {
  /** The service as callers reach it. */
  served(service: AgentService, agent: MountedAgent): AgentService;
  /** The service for methods of extensions: behind the same checks, without interceptors. */
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
      return observer?.call === undefined ? served : observeCalls(observer, agent.id)(served);
    },
    guarded: behind,
  };
}

/** Wraps services, so that one caller has no more than `max` streams open at all of them. */
function withinStreams(max: number | undefined): Interceptor {
  if (max === undefined) return (service) => service;
  const streams = import("../limits/index.ts").then(({ OpenStreams }) => new OpenStreams(max));
  // Where it cannot be loaded, each stream is refused with the reason.
  streams.catch(() => {});
  return (service) => ({
    call: (operation, request, context) => service.call(operation, request, context),
    stream: async (operation, request, context) =>
      (await streams).enter(context, () => service.stream(operation, request, context)),
  });
}

/** Counts what is open, so that a host that closes can wait for it. */
export class OpenWork {
  readonly #clock: Clock;
  #count = 0;
  #idle: Deferred<void> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(): void {
    this.#count += 1;
  }

  end(): void {
    this.#count -= 1;
    if (this.#count === 0) this.#idle?.resolve();
  }

  /** Resolves when nothing is open, or after `ms` milliseconds. */
  async ended(ms: number): Promise<void> {
    if (this.#count === 0 || ms <= 0) return;
    this.#idle ??= deferred();
    const clear = this.#clock.after(ms, this.#idle.resolve);
    await this.#idle.promise;
    clear();
  }
}

/** The calls of services that no engine runs: a host refuses them when it closes, and ends their streams. */
export class ForeignCalls {
  readonly #streams = new Set<(error: A2AError) => void>();
  readonly #closing: AbortSignal;
  readonly #open: OpenWork;

  constructor({ closing, open }: Pick<HostSettings, "closing" | "open">) {
    this.#closing = closing.signal;
    this.#open = open;
  }

  /** The same service. It refuses calls once the host closes, and its streams end with `cut`. */
  readonly of: Interceptor = (service) => ({
    call: (operation, request, context) => this.#counted(() => service.call(operation, request, context)),
    stream: (operation, request, context) =>
      this.#counted(async () => {
        const reply = await service.stream(operation, request, context);
        return { ...reply, batches: { [Symbol.asyncIterator]: () => this.#opened(reply.batches) } };
      }),
  });

  /** Ends the streams, so that their clients subscribe again elsewhere. */
  cut(): void {
    for (const end of this.#streams) end(stopping());
  }

  async #counted<T>(call: () => Promise<T>): Promise<T> {
    if (this.#closing.aborted) throw stopping();
    this.#open.begin();
    try {
      return await call();
    } finally {
      this.#open.end();
    }
  }

  #opened(batches: StreamReply["batches"]): AsyncIterator<Batch, void, void> {
    let ended: A2AError | undefined;
    let reject: (error: A2AError) => void = () => {};
    const leave = (): void => {
      if (this.#streams.delete(end)) this.#open.end();
    };
    const end = (error: A2AError): void => {
      ended = error;
      leave();
      reject(error);
      void source.return?.().catch(() => {});
    };
    const source = finishing(batches, leave)[Symbol.asyncIterator]();
    this.#streams.add(end);
    this.#open.begin();
    return {
      next: () =>
        // Not `Promise.race`: it would keep each batch until the stream ends.
        new Promise((yes, no) => {
          reject = no;
          if (ended === undefined) source.next().then(yes, no);
          else no(ended);
        }),
      async return() {
        await source.return?.();
        return { done: true, value: undefined };
      },
    };
  }
}

type Batch = StreamReply["batches"] extends AsyncIterable<infer Item> ? Item : never;

function stopping(): A2AError {
  return new A2AError("Unavailable", "The server is stopping", { retryAfter: 1 });
}
