import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { Clock, Logger } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { Principal, UniversalRequest } from "@parley/a2a/internal/protocol/index";
import type { StoreRates } from "../store/port.ts";
import { addressBlock, callerKey } from "./callers.ts";
import { Guesses, ownFailures } from "./guesses.ts";
import type { Rate, RateAnswer, RateLimiter, RateLimits } from "./port.ts";
import { Reports, sharedFailures, sharedRateLimiter } from "./shared.ts";

/** Finds the caller of a request. */
export type Authenticate = (request: UniversalRequest) => Principal | Promise<Principal>;

/** What the limits of requests need of the server. */
export interface LimitsHost {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Budgets that processes share. Absent: this process counts by itself. */
  readonly rates?: StoreRates | undefined;
  /** The server is closed, and its store may be. */
  isClosed(): boolean;
}

/**
 * The same authentication within the limits. Where a host does not tell addresses
 * (`UniversalRequest.facts`), those of addresses do not count.
 */
export function limitRequests(authenticate: Authenticate, limits: RateLimits, host: LimitsHost): Authenticate {
  const { failures = false } = limits;
  const { clock, rates } = host;
  const reports = rates === undefined || limits.shared === false ? undefined : new Reports({ ...host, rates });
  const address = limiterOf(limits.address, "address", host, reports);
  const principal = limiterOf(limits.principal, "principal", host, reports);
  const guesses =
    failures === false
      ? undefined
      : new Guesses(failures, (onReport) =>
          reports === undefined ? ownFailures(failures, clock) : sharedFailures(failures, reports, clock, onReport),
        );

  const guarded: Authenticate =
    guesses === undefined
      ? authenticate
      : (request) =>
          request.facts === undefined
            ? authenticate(request)
            : guesses.attempt(addressOf(request), request, () => authenticate(request));
  const known: Authenticate =
    principal === undefined
      ? guarded
      : (request) =>
          then(guarded(request), (caller) =>
            then(principal(callerKey(caller, request.facts && (request.facts.remoteAddress ?? gone))), () => caller),
          );
  if (address === undefined) return known;
  return (request) =>
    request.facts === undefined ? known(request) : then(address(`address ${addressOf(request)}`), () => known(request));
}

/** The address of connections that are closed already. All of them count together. */
const gone = "unknown";

function addressOf({ facts }: UniversalRequest): string {
  return addressBlock(facts?.remoteAddress ?? gone);
}

/** Takes a request of somebody. Throws, or rejects, where none is left. */
type Take = (key: string) => void | Promise<void>;

function limiterOf(
  limit: Rate | RateLimiter | undefined,
  name: string,
  { clock, logger }: LimitsHost,
  reports: Reports | undefined,
): Take | undefined {
  if (limit === undefined) return undefined;
  const limiter =
    "take" in limit
      ? limit
      : reports === undefined
        ? memoryRateLimiter(limit, clock)
        : sharedRateLimiter(name, limit, reports, clock);
  /** When a failure of the limiter is logged again, on the monotonic clock. */
  let quietUntil = -Infinity;
  const failed = (cause: unknown): void => {
    if (clock.elapsed() < quietUntil) return;
    quietUntil = clock.elapsed() + 60_000;
    logger.error("A rate limiter failed, and requests are not limited", { limit: `limits.rate.${name}`, cause });
  };
  return (key) => {
    let answer: RateAnswer | Promise<RateAnswer>;
    try {
      answer = limiter.take(key, 1);
    } catch (cause) {
      return failed(cause);
    }
    return answer instanceof Promise ? answer.then(check, failed) : check(answer);
  };
}

function check({ ok, retryAfter }: RateAnswer): void {
  if (!ok) throw new A2AError("TooManyRequests", undefined, { retryAfter: Math.max(1, Math.ceil(retryAfter / 1000)) });
}

/** Goes on with a value, at once where it is no promise. */
function then<From, To>(value: From | Promise<From>, next: (value: From) => To | Promise<To>): To | Promise<To> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/**
 * Memory for callers, in bytes: for about 60,000 of them at a time. When it is full, those that came first are forgotten, and begin
 * with all of their requests again.
 */
const memory = 16 << 20;

/** A rate limiter in memory, which answers at once. */
export interface MemoryRateLimiter extends RateLimiter {
  take(key: string, cost: number): RateAnswer;
}

const enough: RateAnswer = { ok: true, retryAfter: 0 };

/**
 * A rate limiter in the memory of this process. It keeps one number for each caller (the generic cell rate algorithm), on the
 * monotonic clock, so that a change of the wall time gives nothing back.
 */
export function memoryRateLimiter({ requests, per }: Rate, clock: Clock, bytes: number = memory): MemoryRateLimiter {
  /** The time at which a caller has all of its requests again. */
  const full = new BoundedMap<number>({ bytes, bytesOf: (key) => memoryOf(key) });
  const interval = per / requests;
  return {
    take(key, cost) {
      const now = clock.elapsed();
      const next = Math.max(full.get(key) ?? now, now) + cost * interval;
      // Less than a microsecond is an error of rounding.
      const wait = next - now - per;
      if (wait > 0.001) return { ok: false, retryAfter: wait };
      full.set(key, next);
      return enough;
    },
  };
}
