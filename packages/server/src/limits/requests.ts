import type { Clock, Logger } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import {
  type Principal,
  type UniversalRequest,
  anonymous,
  finishing,
  type CallContext,
  type StreamReply,
} from "@parley/a2a/internal/protocol/index";
import type { StoreRates } from "../store/port.ts";
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
  /** Budgets that processes share. Absent: this process counts separately. */
  readonly rates?: StoreRates | undefined;
  /** Whether the server is closed, and perhaps its store. */
  isClosed(): boolean;
}

/** Wraps the authentication with the limits. Limits by address need a host that knows addresses (`UniversalRequest.facts`). */
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

/** The address of all connections that are already closed, which share a limit. */
const gone = "unknown";

function addressOf({ facts }: UniversalRequest): string {
  return addressBlock(facts?.remoteAddress ?? gone);
}

/** Takes a request from a budget. Throws or rejects if the budget is used up. */
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

/* The callers that limits count, and the limit of streams per caller. */

/**
 * A caller: its name, or its address if it has no name.
 *
 * @param address - Its IP address. `undefined`: the host does not know the address, so all anonymous callers share one limit.
 */
export function callerKey({ organization, subject }: Principal, address: string | undefined): string {
  return subject === anonymous.subject && organization === undefined && address !== undefined
    ? `address ${addressBlock(address)}`
    : `principal ${JSON.stringify([organization ?? null, subject])}`;
}

/** The longest text that counts as an address. */
const maxLength = 64;

/**
 * The key of an address for limits: an IPv4 address as a whole, even if mapped into IPv6, and an IPv6 address by its first 64 bits, because a
 * host can use any address in this block (RFC 6177 §2). Truncates any other text.
 */
export function addressBlock(address: string): string {
  if (!address.includes(":")) return address.slice(0, maxLength);
  const zone = address.indexOf("%");
  const url = `http://[${zone < 0 ? address : address.slice(0, zone)}]`;
  if (address.length > maxLength || !URL.canParse(url)) return address.slice(0, maxLength);
  // The canonical form, without brackets.
  const [head = "", tail = ""] = new URL(url).hostname.slice(1, -1).split("::", 2);
  const groupsOf = (text: string): readonly string[] => (text === "" ? [] : text.split(":"));
  const [first, last] = [groupsOf(head), groupsOf(tail)];
  const zeros: string[] = Array.from({ length: 8 - first.length - last.length }, () => "0");
  const groups = [...first, ...zeros, ...last];
  if (groups.slice(0, 6).join(":") !== "0:0:0:0:0:ffff") return `${groups.slice(0, 4).join(":")}::/64`;
  const bits = groups.slice(6).map((group) => Number.parseInt(group, 16));
  return bits.flatMap((each) => [each >> 8, each & 255]).join(".");
}

/** After how many seconds a caller with too many streams may retry. */
const retryAfter = 5;

/** How many streams each caller has open, at all agents of a server. */
export class OpenStreams {
  readonly #maxStreams: number;
  readonly #open = new Map<string, number>();

  /** @param maxStreams - Of one caller. */
  constructor(maxStreams: number) {
    this.#maxStreams = maxStreams;
  }

  /**
   * Opens a stream of a caller, and counts it until it has ended.
   *
   * @throws A2AError `TooManyRequests` if the caller has too many of them.
   */
  async enter({ principal, address }: CallContext, begin: () => Promise<StreamReply>): Promise<StreamReply> {
    const caller = callerKey(principal, address);
    const open = this.#open.get(caller) ?? 0;
    if (open >= this.#maxStreams) {
      throw new A2AError("TooManyRequests", `A caller may have at most ${this.#maxStreams} concurrent streams`, {
        retryAfter,
      });
    }
    this.#open.set(caller, open + 1);
    let isOpen = true;
    const leave = (): void => {
      if (isOpen) this.#leave(caller);
      isOpen = false;
    };
    try {
      const reply = await begin();
      return { ...reply, batches: finishing(reply.batches, leave) };
    } catch (thrown) {
      leave();
      throw thrown;
    }
  }

  #leave(caller: string): void {
    const open = this.#open.get(caller) ?? 0;
    if (open > 1) this.#open.set(caller, open - 1);
    else this.#open.delete(caller);
  }
}
