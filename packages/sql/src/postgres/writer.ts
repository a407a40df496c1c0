import { A2AError } from "@parley/a2a";
import { readItem, type AppendItem, type AppendOutcome } from "@parley/a2a/store";
import { applyItems } from "./append.ts";
import { resolveNames, type ReadAppend } from "./batch-reads.ts";
import type { Database } from "./database.ts";
import { sqlState } from "./driver.ts";
import { ensurePartitions } from "./partitions.ts";
import type { Schema } from "./schema.ts";
import type { ScopeIds } from "./scopes.ts";

/** Items of one transaction, and about how many characters their texts have: more waits for the next one. */
const mostItems = 1000;
const mostText = 16 << 20;

/** SQLSTATE of a row that fits into no partition (PostgreSQL, Appendix A: check_violation). */
const noPartition = "23514";

interface Call {
  readonly items: readonly ReadAppend[];
  readonly size: number;
  resolve(outcomes: readonly AppendOutcome[]): void;
  reject(error: unknown): void;
}

/**
 * Appends in the order of the calls, one transaction at a time. Calls that are made meanwhile share the next one: under load a commit
 * serves many of them (group commit).
 */
export class Writer {
  readonly #database: Database;
  readonly #schema: Schema;
  readonly #scopes: ScopeIds;
  readonly #onCommit: (taskIds: readonly string[]) => void;
  #waiting: Call[] = [];
  #working: Promise<void> | undefined;
  /** How many transactions it has begun, with those that were repeated. */
  begun = 0;

  /** `onCommit`: is told which tasks have changed. */
  constructor(database: Database, schema: Schema, scopes: ScopeIds, onCommit: (taskIds: readonly string[]) => void) {
    this.#onCommit = onCommit;
    this.#database = database;
    this.#schema = schema;
    this.#scopes = scopes;
  }

  /** Parses every item before it waits. */
  async append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]> {
    const read = items.map((item) => ("task" in item ? readItem(item) : item));
    if (read.length === 0) return [];
    return new Promise((resolve, reject) => {
      this.#waiting.push({ items: read, size: sizeOf(items), resolve, reject });
      this.#working ??= this.#work();
    });
  }

  /** Resolves when every call that was made before is over. */
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
      if (count > 0 && (items > mostItems || size > mostText)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #commit(calls: readonly Call[]): Promise<void> {
    try {
      const items = calls.flatMap((call) => call.items);
      const outcomes = await this.#apply(items);
      this.#onCommit(changedBy(items, outcomes));
      let from = 0;
      for (const { items, resolve } of calls) resolve(outcomes.slice(from, (from += items.length)));
    } catch (thrown) {
      const [only, ...more] = calls;
      if (more.length === 0) return only?.reject(thrown);
      // The server refuses what one call stores: the others must not fail because of it.
      if (!(thrown instanceof A2AError)) for (const call of calls) await this.#commit([call]);
      else for (const { reject } of calls) reject(thrown);
    }
  }

  async #apply(items: readonly ReadAppend[]): Promise<readonly AppendOutcome[]> {
    const names = await resolveNames(this.#schema.over(this.#database), this.#scopes, items);
    const attempt = (): Promise<readonly AppendOutcome[]> =>
      this.#database.transaction({ mode: "write" }, (transaction) => {
        this.begun += 1;
        return applyItems(this.#schema.over(transaction), names, items);
      });
    try {
      return await attempt();
    } catch (thrown) {
      // Nobody has swept for some weeks: the log has no partition for new tasks.
      if (sqlState(thrown) !== noPartition) throw thrown;
    }
    await this.#database.transaction({ mode: "write" }, (transaction) => ensurePartitions(transaction, this.#schema));
    return attempt();
  }
}

/** The tasks whose items were stored. */
function changedBy(items: readonly ReadAppend[], outcomes: readonly AppendOutcome[]): readonly string[] {
  const changed = new Set<string>();
  for (const [at, each] of items.entries()) {
    if ("item" in each && outcomes[at]?.ok === true) changed.add(each.item.task.taskId);
  }
  return [...changed];
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
