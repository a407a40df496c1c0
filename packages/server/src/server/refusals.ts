import { silentLogger, type Clock, type LogFields, type Logger } from "@parley/a2a/internal/base/index";
import {
  isOfOtherPage,
  longestName,
  type Audit,
  type AuditRecord,
  type UniversalRequest,
} from "@parley/a2a/internal/protocol/index";
import { defined } from "@parley/a2a/internal/base/defined";

/* The log of refused requests. Anyone can be refused as often as they like: a flood is one line a minute. */

/** Minimum time between two lines, in milliseconds. */
const interval = 60_000;
/** Callers that are told apart between two lines. Others are counted together, so that no sender makes the log or the memory grow. */
const maxCallers = 16;
/** Callers of one line, those with the most requests first. */
const maxListed = 5;

/** Why a request was refused. `host`: it names a host that the server does not have. `origin`: CORS does not allow its page. */
type RefusalEvent = Extract<AuditRecord["event"], "authentication" | "authorization" | "limit"> | "host" | "origin";

/** A refused request. It has no credentials. */
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

/** Logs refused requests at `warn`: the first one at once, then at most one line a minute with counts. */
export class RefusalLog {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #publicUrl: string;
  readonly #counts = new Map<RefusalEvent, number>();
  readonly #callers = new Map<string, Caller>();
  #others = 0;
  /** Monotonic time of the first refusal that is not logged. */
  #since = 0;
  /** Until then nothing is logged; monotonic time. */
  #quietUntil = -Infinity;
  #cancel: (() => void) | undefined;

  constructor(logger: Logger, clock: Clock, publicUrl: string) {
    this.#logger = logger;
    this.#clock = clock;
    this.#publicUrl = publicUrl;
  }

  /** Takes audit records. Those of refused callers count. */
  readonly audit: Audit = ({ event, outcome, time: _, ...about }) => {
    if (outcome !== "refused") return;
    if (event === "authentication" || event === "authorization" || event === "limit") this.#add({ ...about, event });
  };

  /** A request that names a host, or comes from a page, that is not in `allowedHosts`. */
  host(request: UniversalRequest): void {
    this.#add({ ...fromOf(request), event: "host", option: "allowedHosts" });
  }

  /** A page whose origin CORS does not allow. Pages of the server itself send their origin, too. */
  origin(request: UniversalRequest): void {
    if (isOfOtherPage(request, this.#publicUrl))
      this.#add({ ...fromOf(request), event: "origin", option: "cors.origins" });
  }

  /** Logs what is not logged yet. */
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

  /** One caller is told with the fields of the line, several as a list. */
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

/** The log of refused requests; `undefined` if nothing is logged. */
export function refusalLog(logger: Logger, clock: Clock, publicUrl: string): RefusalLog | undefined {
  return logger === silentLogger ? undefined : new RefusalLog(logger, clock, publicUrl);
}

/** The counts of a line have the name of the event. */
function fieldsOf({ event: _, ...fields }: Refusal): LogFields {
  return fields;
}

/** Where a request comes from. Its headers may have any text. */
function fromOf(request: UniversalRequest): Pick<Refusal, "address" | "origin"> {
  const origin = originOf(request.header("origin"));
  const address = request.facts?.remoteAddress;
  return defined({ address, origin });
}

/** An origin as browsers send it (RFC 6454 §6.2). A program may send anything else, credentials among it, which is not logged. */
function originOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (!URL.canParse(text)) return "null";
  const { protocol, host } = new URL(text);
  return `${protocol}//${host}`.slice(0, longestName);
}
