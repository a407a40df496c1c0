import type { TaskState } from "@parley/a2a";
import type { Driver } from "./driver.ts";
import { count, int, stateNumber, states } from "./rows.ts";
import { encodeName } from "./text.ts";

/** Agents have no parent. */
const root = 0;

/** Most ids of agents and owners that are remembered. */
const remembered = 10_000;

/**
 * Ids of agents, of the owners in them, of the contexts in those. Agents and owners stay for ever, so theirs are
 * remembered; `forget` after a transaction that was rolled back, which may have made some.
 */
export class ScopeIds {
  readonly #driver: Driver;
  readonly #known = new Map<string, number>();

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

  /** The same, made where there is none. */
  ensure(...names: readonly string[]): number {
    let id = root;
    for (const [depth, name] of names.entries()) {
      id = this.#find(id, name, depth < 2) ?? this.#insert(id, name, depth === 2);
    }
    return id;
  }

  forget(): void {
    this.#known.clear();
  }

  #find(parent: number, name: string, stays: boolean): number | undefined {
    const path = `${parent}/${name}`;
    const known = this.#known.get(path);
    if (known !== undefined) return known;
    const row = this.#driver
      .prepare("SELECT id FROM scopes WHERE parent = ? AND name = ?")
      .get(parent, encodeName(name));
    if (row === undefined) return undefined;
    if (stays) {
      if (this.#known.size >= remembered) this.#known.clear();
      this.#known.set(path, count(row));
    }
    return count(row);
  }

  #insert(parent: number, name: string, isContext: boolean): number {
    return this.#driver
      .prepare("INSERT INTO scopes (parent, name, is_context) VALUES (?, ?, ?)")
      .run(parent, encodeName(name), isContext ? 1 : 0).lastId;
  }
}

/** Contexts of one name at all owners of an agent. */
export function findContexts(driver: Driver, agent: number, contextId: string): readonly number[] {
  return driver
    .prepare("SELECT c.id FROM scopes o JOIN scopes c ON c.parent = o.id AND c.name = ? WHERE o.parent = ?")
    .all(encodeName(contextId), agent)
    .map(count);
}

/** Tasks of a scope by state, in the order of `states`. */
export function tallyOf(driver: Driver, scope: number): readonly number[] {
  const row = driver.prepare("SELECT n0, n1, n2, n3, n4, n5, n6, n7 FROM scopes WHERE id = ?").get(scope);
  return states.map((_, index) => (row === undefined ? 0 : int(row, index)));
}

interface Change {
  readonly tally: number[];
  tasks: number;
  touched: number;
  /** The last place that was given out, where it is known. */
  places: number | null;
}

/** What a transaction changes in scopes, written once at its end: many items of a batch meet in few scopes. */
export class ScopeChanges {
  readonly #driver: Driver;
  readonly #changes = new Map<number, Change>();

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** The next place in a conversation: its messages stand in the order in which they came. */
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

  /** A task of these scopes comes into a state, leaves one, or moves. */
  move(scopes: readonly number[], from: TaskState | undefined, to: TaskState | undefined): void {
    if (from === to) return;
    for (const scope of scopes) {
      const change = this.#change(scope);
      if (from === undefined) change.tasks += 1;
      else this.#add(change, from, -1);
      if (to === undefined) change.tasks -= 1;
      else this.#add(change, to, 1);
    }
  }

  write(): void {
    const update = this.#driver.prepare(
      `UPDATE scopes SET n0 = n0 + ?, n1 = n1 + ?, n2 = n2 + ?, n3 = n3 + ?, n4 = n4 + ?, n5 = n5 + ?, n6 = n6 + ?, n7 = n7 + ?,
         tasks = tasks + ?, touched = max(touched, ?), places = coalesce(?, places)
       WHERE id = ?`,
    );
    for (const [id, { tally, tasks, touched, places }] of this.#changes) {
      update.run(...tally, tasks, touched, places, id);
    }
    this.#changes.clear();
  }

  #change(scope: number): Change {
    let change = this.#changes.get(scope);
    if (change === undefined) {
      change = { tally: states.map(() => 0), tasks: 0, touched: 0, places: null };
      this.#changes.set(scope, change);
    }
    return change;
  }

  #add({ tally }: Change, state: TaskState, by: number): void {
    const index = stateNumber(state);
    tally[index] = (tally[index] ?? 0) + by;
  }
}
