import type { TaskState } from "@parley/a2a/internal/model/index";
import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { TaskHead } from "@parley/server/internal/store/index";
import type { Driver, Row } from "./driver.ts";
import {
  count,
  decodeName,
  encodeName,
  insertInto,
  int,
  ManyRows,
  stateNumber,
  states,
  text,
  type TaskRow,
} from "./rows.ts";

/** The parent of agents. */
const root = 0;

/** Bytes of memory. */
const maxBytes = 4 << 20;

/**
 * Ids of agents, owners and contexts. Caches the ids of agents and owners. Ids of deleted owners are never reused. Call `forget` after a
 * rollback, which may have removed cached ids, and before a write if another connection may have deleted an owner.
 */
export class ScopeIds {
  readonly #driver: Driver;
  readonly #known = new BoundedMap<number>({ bytes: maxBytes, bytesOf: (path) => memoryOf(path) });

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  find(...names: readonly string[]): number | undefined {
    let id: number | undefined = root;
    for (const [depth, name] of names.entries()) {
      id = this.#find(id, name, depth < 2);
      if (id === undefined) return undefined;
    }
    return id;
  }

  agents(): readonly string[] {
    const rows = this.#driver.prepare("SELECT name FROM scopes WHERE parent = ?").all(root);
    return rows.map((row) => decodeName(text(row, 0)));
  }

  /** The id of an agent or owner, created if it is missing. `ScopeChanges` creates contexts. */
  ensure(agent: string, owner?: string): number {
    let id = root;
    for (const name of owner === undefined ? [agent] : [agent, owner]) {
      id = this.#find(id, name, true) ?? this.#insert(id, name);
    }
    return id;
  }

  forget(): void {
    this.#known.clear();
  }

  /** Whether the owner has a new id, because another process deleted and recreated it. Call this if a read finds nothing. */
  hasMoved(agent: string, owner: string | undefined): boolean {
    const parent = this.find(agent);
    if (parent === undefined || owner === undefined) return false;
    const before = this.#known.get(`${parent}/${owner}`);
    const now = this.#select(parent, owner);
    if (before === undefined || now === undefined || now === before) return false;
    this.#known.set(`${parent}/${owner}`, now);
    return true;
  }

  #find(parent: number, name: string, isPermanent: boolean): number | undefined {
    const path = `${parent}/${name}`;
    const known = this.#known.get(path);
    if (known !== undefined) return known;
    const id = this.#select(parent, name);
    if (isPermanent && id !== undefined) this.#known.set(path, id);
    return id;
  }

  #select(parent: number, name: string): number | undefined {
    const row = this.#driver
      .prepare("SELECT id FROM scopes WHERE parent = ? AND name = ?")
      .get(parent, encodeName(name));
    return row && count(row);
  }

  #insert(parent: number, name: string): number {
    return this.#driver
      .prepare("INSERT INTO scopes (parent, name, is_context) VALUES (?, ?, 0)")
      .run(parent, encodeName(name)).lastId;
  }
}

/** The ids of all contexts with this name, across the owners of an agent. */
export function findContexts(driver: Driver, agent: number, contextId: string): readonly number[] {
  return driver
    .prepare("SELECT c.id FROM scopes o JOIN scopes c ON c.parent = o.id AND c.name = ? WHERE o.parent = ?")
    .all(encodeName(contextId), agent)
    .map(count);
}

/** A status is late if it is more than this many milliseconds older than the newest status of its agent or owner. */
const tolerance = 500;

export interface Tally {
  /** Tasks by state, in the order of `states`. */
  readonly held: readonly number[];
  /** As long as `late` is unchanged, the lists of an agent or owner are stable before this time. */
  readonly settled: number;
  readonly late: number;
}

export function tallyOf(driver: Driver, scope: number): Tally {
  const row =
    driver.prepare("SELECT n0, n1, n2, n3, n4, n5, n6, n7, touched, late FROM scopes WHERE id = ?").get(scope) ??
    noTasks;
  return { held: states.map((_, index) => int(row, index)), settled: int(row, 8) - tolerance, late: int(row, 9) };
}

const noTasks: Row = Array.from({ length: 10 }, () => 0);

/** Later than any time. */
const none = Number.MAX_SAFE_INTEGER;

type Scopes = Pick<TaskRow, "agent" | "owner" | "context">;
type Listed = Pick<TaskHead, "state" | "statusTime">;

interface Change {
  /** Present if these changes create the context. */
  readonly made: { readonly parent: number; readonly name: string } | undefined;
  readonly tally: number[];
  tasks: number;
  touched: number;
  /** The time of the oldest new status. */
  oldest: number;
  /** The last place in use, if known. */
  places: number | null;
}

const tallies = states.map((_, index) => `n${index}`);
const insertContexts = insertInto("scopes", [
  "id",
  "parent",
  "name",
  "is_context",
  ...tallies,
  "tasks",
  "touched",
  "places",
]);

/** Collects the scope changes of a transaction, and writes them at its end, because the items of a batch share few scopes. */
export class ScopeChanges {
  readonly #driver: Driver;
  readonly #changes = new Map<number, Change>();
  readonly #made = new Map<string, number>();
  /** Agents and owners whose tasks got a new status with the same state, and the oldest of the new times. */
  readonly #moved = new Map<number, number>();
  /** The id of the next context. */
  #next: number | undefined;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** A context that was created since the last `write`. */
  madeHere(parent: number, name: string): number | undefined {
    return this.#made.get(`${parent}/${name}`);
  }

  /** Creates a context. Its row is inserted by `write`. */
  make(parent: number, name: string): number {
    this.#next ??= 1 + count(this.#driver.prepare("SELECT max(id) FROM scopes").get());
    const id = this.#next;
    this.#next += 1;
    this.#made.set(`${parent}/${name}`, id);
    this.#changes.set(id, newChange({ parent, name }));
    return id;
  }

  /** The next place in a conversation, in the order of arrival. */
  place(context: number): number {
    const change = this.#change(context);
    change.places ??= count(this.#driver.prepare("SELECT places FROM scopes WHERE id = ?").get(context));
    change.places += 1;
    return change.places;
  }

  touch(context: number, time: number): void {
    const change = this.#change(context);
    change.touched = Math.max(change.touched, time);
  }

  /** Adds a task to the lists of its scopes, removes it, or changes its place in them. */
  move({ agent, owner, context }: Scopes, from: Listed | undefined, to: Listed | undefined): void {
    if (to !== undefined && from?.state === to.state) {
      if (from.statusTime === to.statusTime) return;
      this.touch(context, to.statusTime);
      // The counts do not change. The rows change only for a late status.
      for (const scope of [agent, owner])
        this.#moved.set(scope, Math.min(to.statusTime, this.#moved.get(scope) ?? none));
      return;
    }
    for (const scope of [agent, owner, context]) {
      const change = this.#change(scope);
      if (from === undefined) change.tasks += 1;
      else this.#add(change, from.state, -1);
      if (to === undefined) change.tasks -= 1;
      else {
        this.#add(change, to.state, 1);
        change.touched = Math.max(change.touched, to.statusTime);
        change.oldest = Math.min(change.oldest, to.statusTime);
      }
    }
  }

  write(): void {
    const contexts = new ManyRows(this.#driver, insertContexts);
    const update = this.#driver.prepare(
      `UPDATE scopes SET n0 = n0 + ?, n1 = n1 + ?, n2 = n2 + ?, n3 = n3 + ?, n4 = n4 + ?, n5 = n5 + ?, n6 = n6 + ?, n7 = n7 + ?,
         tasks = tasks + ?, late = late + (? < touched - ${tolerance}), touched = max(touched, ?), places = coalesce(?, places)
       WHERE id = ?`,
    );
    for (const [scope, oldest] of this.#moved) {
      this.#driver
        .prepare(`UPDATE scopes SET late = late + 1 WHERE id = ? AND ? < touched - ${tolerance}`)
        .run(scope, oldest);
    }
    for (const [id, { made, tally, tasks, touched, oldest, places }] of this.#changes) {
      if (made === undefined) update.run(...tally, tasks, oldest, touched, places, id);
      else contexts.add(id, made.parent, encodeName(made.name), 1, ...tally, tasks, touched, places);
    }
    contexts.write();
    this.#moved.clear();
    this.#changes.clear();
    this.#made.clear();
    this.#next = undefined;
  }

  #change(scope: number): Change {
    let change = this.#changes.get(scope);
    if (change === undefined) {
      change = newChange(undefined);
      this.#changes.set(scope, change);
    }
    return change;
  }

  #add({ tally }: Change, state: TaskState, by: number): void {
    const index = stateNumber(state);
    tally[index] = (tally[index] ?? 0) + by;
  }
}

function newChange(made: Change["made"]): Change {
  const places = made === undefined ? null : 0;
  return { made, tally: states.map(() => 0), tasks: 0, touched: 0, oldest: none, places };
}
