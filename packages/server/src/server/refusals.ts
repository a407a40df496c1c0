import { silentLogger, type Clock, type LogFields, type Logger } from "@parley/a2a/internal/base/index";
import {
  isOfOtherPage,
  longestName,
  type Audit,
  type AuditRecord,
  type UniversalRequest,
} from "@parley/a2a/internal/protocol/index";
import { defined } from "@parley/a2a/internal/base/defined";

/* The log of rejected requests: at most one line a minute, because anyone can send requests that are rejected. */

/** Minimum time between two lines, in milliseconds. */
const interval = 60_000;
/** Maximum callers that are distinguished between two lines. Further callers count together, so that memory and log stay bounded. */
const maxCallers = 16;
/** Maximum callers per line, those with the most requests first. */
const maxListed = 5;

/** Why a request was rejected. `host`: unknown host name. `origin`: CORS does not allow its page. */
type RefusalEvent = Extract<AuditRecord["event"], "authentication" | "authorization" | "limit"> | "host" | "origin";

/** A rejected request, without credentials. */
interface Refusal extends Omit<Partial<AuditRecord>, "event" | "time" | "outcome"> {
  readonly event: RefusalEvent;
  /** The origin of a page. */
  readonly origin?: string;
  /** The option that allows it. */
  readonly option?: string;
}

interface Caller {
  last: Refusal;
  count: number;
}

/** Logs rejected requests at `warn`: the first one immediately, then at most one line a minute with counts. */
export class RefusalLog {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #publicUrl: string;
  readonly #counts = new Map<RefusalEvent, number>();
  readonly #callers = new Map<string, Caller>();
  #others = 0;
  /** Monotonic time of the first rejection that is not logged yet. */
  #since = 0;
  /** No logging before this monotonic time. */
  #quietUntil = -Infinity;
  #cancel: (() => void) | undefined;

  constructor(logger: Logger, clock: Clock, publicUrl: string) {
    this.#logger = logger;
    this.#clock = clock;
    this.#publicUrl = publicUrl;
  }

  /** Receives audit records, and counts those of rejected callers. */
  readonly audit: Audit = ({ event, outcome, time: _, ...about }) => {
    if (outcome !== "refused") return;
    if (event === "authentication" || event === "authorization" || event === "limit") this.#add({ ...about, event });
  };

  /** Counts a request with a host name, or from a page, that is not in `allowedHosts`. */
  host(request: UniversalRequest): void {
    this.#add({ ...fromOf(request), event: "host", option: "allowedHosts" });
  }

  /** Counts a request of a page whose origin CORS does not allow. Pages of the server itself send their origin, too. */
  origin(request: UniversalRequest): void {
    if (isOfOtherPage(request, this.#publicUrl))
      this.#add({ ...fromOf(request), event: "origin", option: "cors.origins" });
  }

  /** Logs the rejections that are not logged yet. */
  close(): void {
    this.#flush();
  }

  #add(refusal: Refusal): void {
    const now = this.#clock.elapsed();
    if (this.#counts.size === 0) this.#since = now;
    this.#counts.set(refusal.event, (this.#counts.get(refusal.event) ?? 0) + 1);
    this.#note(refusal);
    if (now >= this.#quietUntil) this.#flush();
    else this.#cancel ??= this.#clock.after(this.#quietUntil - now, () => this.#flush());
  }

  #note(last: Refusal): void {
    const { event, code, agent, operation, subject, organization, address, origin } = last;
    const key = JSON.stringify([event, code, agent, operation, subject, organization, address, origin]);
    const known = this.#callers.get(key);
    if (known !== undefined) {
      known.last = last;
      known.count += 1;
    } else if (this.#callers.size < maxCallers) this.#callers.set(key, { last, count: 1 });
    else this.#others += 1;
  }

  #flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (this.#counts.size === 0) return;
    const now = this.#clock.elapsed();
    const count = [...this.#counts.values()].reduce((sum, one) => sum + one, 0);
    const seconds = Math.round((now - this.#since) / 1000);
    this.#quietUntil = now + interval;
    const counted = Object.fromEntries(this.#counts);
    const fields = { count, ...(seconds > 0 && { seconds }), ...counted, ...this.#listed(count) };
    this.#logger.warn("Refused requests", fields);
    this.#counts.clear();
    this.#callers.clear();
    this.#others = 0;
  }

  /** The callers of a line: one caller as fields, several as a list. */
  #listed(count: number): LogFields {
    const callers = [...this.#callers.values()].toSorted((one, other) => other.count - one.count);
    const [only, ...more] = callers;
    if (only !== undefined && more.length === 0 && this.#others === 0) return fieldsOf(only.last);
    const listed = callers.slice(0, maxListed);
    const others = count - listed.reduce((sum, one) => sum + one.count, 0);
    return {
      callers: listed.map((one) => ({ count: one.count, event: one.last.event, ...fieldsOf(one.last) })),
      ...(others > 0 && { others }),
    };
  }
}

/** The log of rejected requests; `undefined` if nothing is logged. */
export function refusalLog(logger: Logger, clock: Clock, publicUrl: string): RefusalLog | undefined {
  return logger === silentLogger ? undefined : new RefusalLog(logger, clock, publicUrl);
}

/** Omits the event, because the counts of a line already name it. */
function fieldsOf({ event: _, ...fields }: Refusal): LogFields {
  return fields;
}

/** The sender of a request. Its headers may contain any text. */
function fromOf(request: UniversalRequest): Pick<Refusal, "address" | "origin"> {
  const origin = originOf(request.header("origin"));
  const address = request.facts?.remoteAddress;
  return defined({ address, origin });
}

/** An origin in the form of browsers (RFC 6454 §6.2). Programs may send other texts, even credentials, which are not logged. */
function originOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (!URL.canParse(text)) return "null";
  const { protocol, host } = new URL(text);
  return `${protocol}//${host}`.slice(0, longestName);
}
