import type { Clock, Logger } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { Principal, UniversalRequest } from "@parley/a2a/internal/protocol/index";
import type { StoreRates } from "../store/port.ts";
import { addressBlock, callerKey } from "./callers.ts";
import { Guesses } from "./guesses.ts";
import { memoryFailures, memoryRateLimiter } from "./memory.ts";
import type { Rate, RateAnswer, RateLimiter, RateLimits } from "./port.ts";
import { Reports, sharedFailures, sharedRateLimiter } from "./shared.ts";

/** Finds the caller of a request. */
export type Authenticate = (request: UniversalRequest) => Principal | Promise<Principal>;

/** Server dependencies of the limits of requests. */
export interface LimitsHost {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Budgets that processes share. Absent: this process counts alone. */
  readonly rates?: StoreRates | undefined;
  /** The server is closed, and its store may be. */
  isClosed(): boolean;
}

/** The same authentication within the limits. If a host does not tell addresses (`UniversalRequest.facts`), those of addresses do not count. */
export function limitRequests(authenticate: Authenticate, limits: RateLimits, host: LimitsHost): Authenticate {
  const { rates } = host;
  const reports = rates === undefined || limits.shared === false ? undefined : new Reports({ ...host, rates });
  const guarded = withinFailures(authenticate, limits.failures, host, reports);
  const principal = limiterOf(limits.principal, "principal", host, reports);
  const known: Authenticate =
    principal === undefined
      ? guarded
      : (request) =>
          then(guarded(request), (caller) =>
            then(principal(callerKey(caller, request.facts && (request.facts.remoteAddress ?? gone))), () => caller),
          );
  const address = limiterOf(limits.address, "address", host, reports);
  if (address === undefined) return known;
  return (request) =>
    request.facts === undefined ? known(request) : then(address(`address ${addressOf(request)}`), () => known(request));
}

function withinFailures(
  authenticate: Authenticate,
  failures: RateLimits["failures"] = false,
  { clock }: LimitsHost,
  reports: Reports | undefined,
): Authenticate {
  if (failures === false) return authenticate;
  const guesses = new Guesses(failures, (onReport) =>
    reports === undefined ? memoryFailures(failures, clock) : sharedFailures(failures, reports, clock, onReport),
  );
  return (request) =>
    request.facts === undefined
      ? authenticate(request)
      : guesses.attempt(addressOf(request), request, () => authenticate(request));
}

/** The address of connections that are already closed. All of them count together. */
const gone = "unknown";

function addressOf({ facts }: UniversalRequest): string {
  return addressBlock(facts?.remoteAddress ?? gone);
}

/** Takes a request from a budget. Throws, or rejects, if none is left. */
type Take = (key: string) => void | Promise<void>;

function limiterOf(
  limit: Rate | RateLimiter | undefined,
  name: string,
  { clock, logger }: LimitsHost,
  reports: Reports | undefined,
): Take | undefined {
  if (limit === undefined) return undefined;
  const ownLimiter = (rate: Rate): RateLimiter =>
    reports === undefined ? memoryRateLimiter(rate, clock) : sharedRateLimiter(name, rate, reports, clock);
  const limiter = "take" in limit ? limit : ownLimiter(limit);
  /** When the next failure of the limiter is logged, on the monotonic clock. */
  let quietUntil = -Infinity;
  const failed = (cause: unknown): void => {
    if (clock.elapsed() < quietUntil) return;
    quietUntil = clock.elapsed() + 60_000;
    logger.error("Rate limiter failed; requests are not limited", { limit: `limits.rate.${name}`, cause });
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

/** Continues with a value, synchronously if it is not a promise. */
function then<From, To>(value: From | Promise<From>, next: (value: From) => To | Promise<To>): To | Promise<To> {
  return value instanceof Promise ? value.then(next) : next(value);
}
