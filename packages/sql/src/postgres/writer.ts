import { A2AError } from "@parley/a2a/internal/model/index";
import type { Logger } from "@parley/a2a/internal/base/index";
import { changedBy, type Wakeup } from "@parley/server/internal/store/wakeup";
import { readItems, type AppendItem, type AppendOutcome } from "@parley/server/internal/store/index";
import { applyItems } from "./append.ts";
import type { ReadAppend } from "../shared/batch.ts";
import { resolveNames } from "./batch-reads.ts";
import type { Database } from "./database.ts";
import { sqlState, type Queries } from "./driver.ts";
import { isConflict, isLocked, isOutage, isReadOnly } from "./errors.ts";
import { ensurePartitions } from "./retention.ts";
import type { Schema } from "./schema.ts";
import { ScopeGone, ScopeIds } from "./scopes.ts";

/** Maximum items of a transaction, and the approximate maximum of their characters. Further items wait for the next transaction. */
const maxItems = 1000;
const maxText = 16 << 20;

/** SQLSTATE of a row that fits into no partition (PostgreSQL, Appendix A: check_violation). */
const noPartition = "23514";

interface Call {
  readonly items: readonly ReadAppend[];
  readonly size: number;
  /** The deadline of its retries. */
  readonly until: number;
  resolve(outcomes: readonly AppendOutcome[]): void;
  reject(error: unknown): void;
}

interface WriterOptions {
  readonly logger: Logger;
  /** Wakes other nodes after each commit. */
  readonly wakeup: Pick<Wakeup, "publish">;
  /** Called with each value that a transaction takes from the sequence `places`. */
  readonly onPlaces: (places: number) => void;
}

/** Maximum retries of items whose owner is being deleted, because the recreated owner could be deleted again. */
const maxRepeatCount = 5;

/** Appends in the order of the calls, one transaction at a time. Calls made meanwhile share the next transaction (group commit). */
export class Writer {
  readonly #database: Database;
  readonly #schema: Schema;
  readonly #scopes = new ScopeIds();
  readonly #options: WriterOptions;
  #waiting: Call[] = [];
  #working: Promise<void> | undefined;

  constructor(database: Database, schema: Schema, options: WriterOptions) {
    this.#options = options;
    this.#database = database;
    this.#schema = schema;
  }

  /** Parses every item before it waits. */
  async append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]> {
    const read = readItems(items);
    if (read.length === 0) return [];
    return new Promise((resolve, reject) => {
      this.#waiting.push({ items: read, size: sizeOf(items), until: this.#database.deadline(), resolve, reject });
      this.#working ??= this.#work();
    });
  }

  /** Resolves when all earlier calls have ended. */
  async settled(): Promise<void> {
    await this.#working;
  }

  async #work(): Promise<void> {
    // Calls of the same tick share the first transaction too.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const calls = this.#take();
      await this.#commit(calls);
    }
    this.#working = undefined;
  }

  #take(): readonly Call[] {
    let [items, size, count] = [0, 0, 0];
    for (const call of this.#waiting) {
      items += call.items.length;
      size += call.size;
      if (count > 0 && (items > maxItems || size > maxText)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #commit(calls: readonly Call[]): Promise<void> {
    try {
      const items = calls.flatMap((call) => call.items);
      const outcomes = await this.#apply(items, calls[0]?.until);
      this.#wake(items, outcomes);
      let from = 0;
      for (const { items, resolve } of calls) resolve(outcomes.slice(from, (from += items.length)));
    } catch (thrown) {
      // Nothing is stored. Only calls past their deadline must fail.
      if (thrown instanceof A2AError && (isOutage(thrown.cause) || isReadOnly(thrown.cause))) {
        const [oldest, ...others] = calls;
        oldest?.reject(thrown);
        this.#waiting.unshift(...others);
        return this.#rejectLate(thrown);
      }
      const [only, ...more] = calls;
      if (more.length === 0) return only?.reject(thrown);
      if (isOfOne(thrown)) return this.#commitEach(calls, thrown);
      for (const { reject } of calls) reject(thrown);
    }
  }

  #wake(items: readonly ReadAppend[], outcomes: readonly AppendOutcome[]): void {
    const { wakeup, logger } = this.#options;
    const changes = items.map((each) => ("item" in each ? each.item : each));
    try {
      wakeup.publish(changedBy(changes, outcomes));
    } catch (cause) {
      // The items are stored, and the readers of other nodes find them by polling.
      logger.error("PostgreSQL: failed to publish wake-up", { cause });
    }
  }

  /** Commits each call separately, because an item that the server rejects must not fail other calls. Calls past their deadline fail. */
  async #commitEach(calls: readonly Call[], thrown: unknown): Promise<void> {
    const isRefused = !(thrown instanceof A2AError);
    for (const call of calls) {
      if (isRefused || performance.now() < call.until) await this.#commit([call]);
      else call.reject(thrown);
    }
  }

  /** Rejects calls past their deadline, instead of trying an unreachable database for each call. */
  #rejectLate(thrown: A2AError): void {
    const now = performance.now();
    const late = this.#waiting.filter(({ until }) => until <= now);
    this.#waiting = this.#waiting.filter(({ until }) => until > now);
    for (const { reject } of late) reject(thrown);
  }

  async #apply(items: readonly ReadAppend[], until = this.#database.deadline()): Promise<readonly AppendOutcome[]> {
    const reading: Queries = { query: (text, values) => this.#database.query(text, values, { until }) };
    const attempt = async (): Promise<readonly AppendOutcome[]> => {
      const names = await resolveNames(this.#schema.over(reading), this.#scopes, items);
      return this.#database.transaction({ mode: "write", until }, (transaction) =>
        applyItems(this.#schema.over(transaction), names, items, this.#options.onPlaces),
      );
    };
    for (let again = maxRepeatCount; again > 0; again -= 1) {
      try {
        return await attempt();
      } catch (thrown) {
        if (thrown instanceof ScopeGone) this.#scopes.forget();
        else if (sqlState(thrown) === noPartition) {
          // No sweep has run for weeks, so the log has no partition for new tasks.
          await this.#database.transaction({ mode: "write" }, (transaction) =>
            ensurePartitions(transaction, this.#schema),
          );
        } else throw thrown;
      }
    }
    return attempt();
  }
}

/** Whether a single call may have caused an error, by its data or by a lock that it waits for. */
function isOfOne(thrown: unknown): boolean {
  return !(thrown instanceof A2AError) || isLocked(thrown.cause) || isConflict(thrown.cause);
}

function sizeOf(items: readonly AppendItem[]): number {
  let size = 0;
  for (const item of items) {
    if ("task" in item) for (const { json, call } of item.records) size += json.length + (call?.length ?? 0);
    for (const effect of item.effects ?? []) {
      if ("value" in effect) size += effect.value?.length ?? 0;
      else if ("json" in effect) size += effect.json.length;
    }
  }
  return size;
}
