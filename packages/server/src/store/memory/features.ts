import type { FeatureLookup } from "../transition.ts";
import type { DueFeature, FeatureEffect, FeatureQuery, FeatureRow } from "../port.ts";
import { SortedList } from "./lists.ts";
import { getOrMake, type StoredTask } from "./rows.ts";

interface StoredFeature {
  readonly serial: number;
  readonly task: StoredTask;
  readonly feature: string;
  readonly key: string;
  value: string;
  due: number | undefined;
}

type Due = Pick<StoredFeature, "due" | "serial">;

function byDue(a: Due, b: Due): number {
  return (a.due ?? 0) - (b.due ?? 0) || a.serial - b.serial;
}

const noRows: ReadonlyMap<string, StoredFeature> = new Map();

/** The rows that features keep with tasks. A task without rows costs nothing here. */
export class MemoryFeatures {
  readonly #tasks = new Map<StoredTask, Map<string, StoredFeature>>();
  /** Due rows by feature and agent. */
  readonly #due = new Map<string, Map<string, SortedList<Due, StoredFeature>>>();
  #serial = 0;

  /** The rows of a task. `task`: absent if the item creates the task. */
  lookup(task: StoredTask | undefined): FeatureLookup {
    const rows = (task && this.#tasks.get(task)) ?? noRows;
    const find = (feature: string, key: string): FeatureRow | undefined => {
      const row = rows.get(nameOf(feature, key));
      return row && rowOf(row);
    };
    return { find, count: () => rows.size };
  }

  apply(task: StoredTask, effect: FeatureEffect): void {
    if (effect.op === "set") this.#set(task, effect);
    else if (effect.op === "delete") this.#delete(task, nameOf(effect.feature, effect.key));
    else this.#wake(task, effect.feature, effect.due);
  }

  of(task: StoredTask, feature: string): readonly FeatureRow[] {
    const rows = this.#tasks.get(task) ?? noRows;
    return [...rows.values()].filter((row) => row.feature === feature).map(rowOf);
  }

  due({ feature, agents, now, after, limit }: FeatureQuery): readonly DueFeature[] {
    // No row has this number, so this position comes after all rows with the same time.
    const from = after === undefined ? undefined : { due: after, serial: Infinity };
    const lists = this.#due.get(feature);
    return [...new Set(agents ?? lists?.keys())]
      .flatMap((agent) => lists?.get(agent)?.after(from, limit) ?? [])
      .filter(({ due = Infinity }) => due <= now)
      .sort(byDue)
      .slice(0, limit)
      .map((row) => ({ ...rowOf(row), due: row.due ?? 0, task: row.task.head.task }));
  }

  /** Deletes the rows of a deleted task. */
  drop(task: StoredTask): void {
    for (const row of this.#tasks.get(task)?.values() ?? []) this.#schedule(row, undefined);
    this.#tasks.delete(task);
  }

  #set(task: StoredTask, { feature, key, value, due }: Extract<FeatureEffect, { readonly op: "set" }>): void {
    const rows = getOrMake(this.#tasks, task, () => new Map<string, StoredFeature>());
    const made = { task, feature, key, value, due: undefined };
    const row = getOrMake(rows, nameOf(feature, key), () => ({ serial: (this.#serial += 1), ...made }));
    row.value = value;
    this.#schedule(row, due);
  }

  #delete(task: StoredTask, name: string): void {
    const rows = this.#tasks.get(task);
    const row = rows?.get(name);
    if (rows === undefined || row === undefined) return;
    this.#schedule(row, undefined);
    rows.delete(name);
    if (rows.size === 0) this.#tasks.delete(task);
  }

  #wake(task: StoredTask, feature: string, due: number): void {
    for (const row of this.#tasks.get(task)?.values() ?? []) {
      if (row.feature === feature && row.due === undefined) this.#schedule(row, due);
    }
  }

  #schedule(row: StoredFeature, due: number | undefined): void {
    const { agent } = row.task.head.task;
    const lists = getOrMake(this.#due, row.feature, () => new Map<string, SortedList<Due, StoredFeature>>());
    const list = getOrMake(lists, agent, () => new SortedList<Due, StoredFeature>(byDue));
    if (row.due !== undefined) list.delete(row);
    row.due = due;
    if (due !== undefined) list.add(row);
  }
}

/** Joins two names uniquely. */
function nameOf(first: string, second: string): string {
  return `${first.length}:${first}${second}`;
}

function rowOf({ key, value, due }: StoredFeature): FeatureRow {
  return due === undefined ? { key, value } : { key, value, due };
}
