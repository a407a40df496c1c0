import { silentLogger, type Logger } from "@parley/a2a/internal/base/index";
import type { StoreCondition } from "@parley/server/internal/store/index";
import type { Wakeup, WakeupListener } from "@parley/server/internal/store/wakeup";
import type { Queries } from "./driver.ts";
import { isOutage, isReadOnly } from "./errors.ts";
import { int, type Schema } from "./schema.ts";

/** Factor of the poll interval while wake-ups arrive. */
const calmer = 10;
/** The maximum duration of another node's write, in milliseconds, which is the sum of all its timeouts. */
const longestWrite = 60_000;
/** The maximum number of own places remembered between two polls. Further places count as places of other nodes. */
const maxPlaces = 100_000;

/**
 * The number of write transactions so far, the oldest running transaction, and the next transaction id. The statement reads them in this
 * order, so that every counted transaction has a lower id than the next. Reading the sequence needs USAGE or SELECT.
 */
const look = `WITH places AS MATERIALIZED (SELECT coalesce(pg_sequence_last_value('parley.places'), 0) AS last),
    snapshot AS MATERIALIZED (SELECT last, pg_current_snapshot() AS now FROM places)
  SELECT last, pg_snapshot_xmin(now)::text, pg_snapshot_xmax(now)::text, age(pg_snapshot_xmax(now)::xid) FROM snapshot`;

/** The result of a poll. Transaction ids have 64 bits. */
interface Seen {
  readonly last: number;
  /** Every transaction with a lower id has ended. */
  readonly over: bigint;
  /** No transaction with this id or a higher one had begun. */
  readonly next: bigint;
}

export interface WatchOptions {
  readonly wakeup: Wakeup;
  /** Milliseconds between two polls while wake-ups do not arrive. */
  readonly interval: number;
  readonly logger?: Logger;
}

/**
 * Calls listeners after other nodes have written: immediately after a wake-up, otherwise by polling the number of all write transactions.
 * A transaction takes its number before it commits, so each poll calls the listeners until all transactions that had begun have ended.
 */
export class Watch {
  readonly #driver: Queries;
  readonly #text: string;
  readonly #options: WatchOptions;
  readonly #logger: Logger;
  readonly #listeners = new Set<{ readonly tell: WakeupListener }>();
  #timer: NodeJS.Timeout | undefined;
  #unsubscribe: (() => void) | undefined;
  #seen: Seen | undefined;
  /** Numbers that this node has taken since the last poll. */
  #own = new Set<number>();
  /** Transactions with ids less than `below` may still commit, up to the time `until`. */
  #open: { readonly below: bigint; readonly until: number } | undefined;
  #looks = 0;
  #looking: Promise<boolean> | undefined;
  #fails = false;

  constructor(driver: Queries, schema: Schema, options: WatchOptions) {
    this.#driver = driver;
    this.#text = schema.text(look);
    this.#options = options;
    this.#logger = options.logger ?? silentLogger;
  }

  /** Rejects if polling is impossible, such as without the right to read the sequence. */
  async open(queries: Queries): Promise<void> {
    await queries.query(this.#text);
  }

  /** How this node learns of writes by other nodes. `unseen` means not at all, because neither wake-ups nor polls work. */
  get hearing(): NonNullable<StoreCondition["changes"]> {
    if (this.#options.wakeup.isConnected) return "told";
    return this.#fails ? "unseen" : "polled";
  }

  /** Notes a number taken by a transaction of this node. */
  took(places: number): void {
    if (this.#timer !== undefined && this.#own.size < maxPlaces) this.#own.add(places);
  }

  /** Returns a function that removes the listener. */
  add(listener: WakeupListener): () => void {
    // The same function may be added twice.
    const entry = { tell: listener };
    this.#listeners.add(entry);
    if (this.#unsubscribe === undefined) {
      this.#seen = undefined;
      this.#looks = 0;
      this.#unsubscribe = this.#options.wakeup.subscribe((taskId) => this.#tell(taskId));
      this.#timer = setInterval(() => void this.#turn(), this.#options.interval);
      this.#timer.unref(); // Polling must not keep the process alive.
    }
    return () => {
      this.#listeners.delete(entry);
      if (this.#listeners.size === 0) this.end();
    };
  }

  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
    this.#own.clear();
  }

  async #turn(): Promise<void> {
    const turn = this.#looks++;
    // The first poll must run, because it is the baseline of later polls.
    if (this.#options.wakeup.isConnected && turn % calmer !== 0 && this.#seen !== undefined) return;
    // Only one poll runs at a time.
    if (this.#looking !== undefined) return;
    this.#looking = this.#look();
    const mayHaveChanged = await this.#looking;
    this.#looking = undefined;
    if (mayHaveChanged) this.#tell(undefined);
  }

  /** Whether others may have committed since the last poll. */
  async #look(): Promise<boolean> {
    let seen: Seen;
    try {
      const { rows } = await this.#driver.query(this.#text);
      const [row] = rows;
      const most = BigInt(String(row?.[2]));
      seen = { last: int(row, 0), over: BigInt(String(row?.[1])), next: most + BigInt(int(row, 3)) };
    } catch (thrown) {
      this.#fail(thrown);
      // The first poll that succeeds reports the changes.
      return false;
    }
    this.#fails = false;
    const before = this.#seen;
    this.#seen = seen;
    const now = performance.now();
    if (before === undefined || this.#hasMoved(before, seen)) {
      this.#open = { below: seen.next, until: now + longestWrite };
      return true;
    }
    if (this.#open === undefined) return false;
    // Transactions that have ended by now are visible to reads after this poll.
    if (seen.over >= this.#open.below || now > this.#open.until) this.#open = undefined;
    return true;
  }

  /** Whether other nodes took a number between two polls. A number of this node whose answer is pending counts as another node's. */
  #hasMoved(before: Seen, { last }: Seen): boolean {
    let own = 0;
    for (const places of this.#own) {
      if (places > last) continue;
      this.#own.delete(places);
      if (places > before.last) own += 1;
    }
    return last - before.last !== own;
  }

  /** Logs only the first of several failures. During an outage, the failing calls report it. */
  #fail(cause: unknown): void {
    if (!this.#fails && this.#timer !== undefined && !isOutage(cause) && !isReadOnly(cause)) {
      this.#logger.warn("PostgreSQL: failed to poll for changes by other nodes; retrying", { cause });
    }
    this.#fails = true;
  }

  #tell(taskId: string | undefined): void {
    for (const { tell } of this.#listeners) tell(taskId);
  }
}
