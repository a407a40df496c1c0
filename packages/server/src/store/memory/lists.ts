import type { TaskState } from "@parley/a2a/internal/model/index";
import type { ListQuery, OperatorQuery } from "../port.ts";

/** Maximum items of a chunk. Inserting shifts at most this many items, and the number of chunks stays small. */
const chunkSize = 512;

/**
 * Items in the order of `compare`. Finding, adding and removing an item takes logarithmic time and one small shift. The members that `compare`
 * reads (`Key`) must not change while an item is in a list.
 */
export class SortedList<Key, Item extends Key> {
  readonly #compare: (a: Key, b: Key) => number;
  #chunks: Item[][] = [];
  #size = 0;

  constructor(compare: (a: Key, b: Key) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#size;
  }

  add(item: Item): void {
    const { chunk, index } = this.#find(item);
    const items = this.#chunks[chunk];
    this.#size += 1;
    if (items === undefined) {
      // The item comes after all others, so add it to the last chunk, if that chunk is not full.
      const last = this.#chunks.at(-1);
      if (last !== undefined && last.length < chunkSize) last.push(item);
      // `concat` allocates exactly one slot, `push` more. Each context has several lists, and most lists have only one item.
      else this.#chunks = this.#chunks.concat([[item]]);
      return;
    }
    items.splice(index, 0, item);
    if (items.length > chunkSize) this.#chunks.splice(chunk + 1, 0, items.splice(chunkSize / 2));
  }

  /** Removes the item that compares equal. */
  delete(key: Key): boolean {
    const { chunk, index } = this.#find(key);
    const items = this.#chunks[chunk];
    const found = items?.[index];
    if (items === undefined || found === undefined || this.#compare(found, key) !== 0) return false;
    items.splice(index, 1);
    if (items.length === 0) this.#chunks.splice(chunk, 1);
    this.#size -= 1;
    return true;
  }

  /** The number of items before `key`. */
  rank(key: Key): number {
    const { chunk, index } = this.#find(key);
    let before = index;
    for (let i = 0; i < chunk; i += 1) before += this.#chunks[i]?.length ?? 0;
    return before;
  }

  first(): Item | undefined {
    return this.#chunks[0]?.[0];
  }

  /** At most `limit` items after `key`, in order. Without a key: from the start. */
  after(key: Key | undefined, limit: number): Item[] {
    let { chunk, index } = key === undefined ? { chunk: 0, index: 0 } : this.#find(key);
    const found: Item[] = [];
    for (; chunk < this.#chunks.length && found.length < limit; chunk += 1, index = 0) {
      const items = this.#chunks[chunk] ?? [];
      const first = items[index];
      // Items are unique, so only the first item found can be equal to the key.
      if (found.length === 0 && key !== undefined && first !== undefined && this.#compare(first, key) === 0) index += 1;
      found.push(...items.slice(index, index + limit - found.length));
    }
    return found;
  }

  /** The last `limit` items before `key`, in order. */
  before(key: Key, limit: number): Item[] {
    const { chunk: at, index } = this.#find(key);
    const found: Item[][] = [];
    let missing = limit;
    for (let chunk = at; chunk >= 0 && missing > 0; chunk -= 1) {
      const items = this.#chunks[chunk] ?? [];
      const own = chunk === at ? items.slice(Math.max(0, index - missing), index) : items.slice(-missing);
      found.push(own);
      missing -= own.length;
    }
    return found.reverse().flat();
  }

  /** The last `limit` items, in order. */
  last(limit: number): Item[] {
    const found: Item[][] = [];
    let missing = limit;
    for (let chunk = this.#chunks.length - 1; chunk >= 0 && missing > 0; chunk -= 1) {
      const items = (this.#chunks[chunk] ?? []).slice(-missing);
      found.push(items);
      missing -= items.length;
    }
    return found.reverse().flat();
  }

  /** The position of the first item that is not before `key`. If every item is before `key`, the position after the last chunk. */
  #find(key: Key): { chunk: number; index: number } {
    const chunk = firstFalse(this.#chunks.length, (i) => this.#before(this.#chunks[i]?.at(-1), key));
    const items = this.#chunks[chunk] ?? [];
    return { chunk, index: firstFalse(items.length, (i) => this.#before(items[i], key)) };
  }

  #before(item: Item | undefined, key: Key): boolean {
    return item !== undefined && this.#compare(item, key) < 0;
  }
}

/** The first number from 0 to `count` for which `test` is false. It must be true for all smaller numbers. */
function firstFalse(count: number, test: (index: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (test(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A position in a list. */
export interface Place {
  /** Time of the last status, in milliseconds since the Unix epoch. */
  readonly statusTime: number;
  /** The number of the task: tasks are numbered in the order of creation. */
  readonly number: number;
}

/** Selects the items of a page. `after`: the position of the last item of the previous page. */
type PageQuery = Pick<ListQuery, "state" | "since" | "limit"> & { readonly after?: Place | undefined };

/** The part of an operator's query that an index answers. `after`: the last item of the previous page. */
export type StretchQuery = Omit<OperatorQuery, "agent" | "owner">;

/** The later of two places in the given order. */
function later(one: Place, other: Place | undefined, order: (a: Place, b: Place) => number): Place {
  return other === undefined || order(one, other) > 0 ? one : other;
}

interface Listed extends Place {
  readonly state: TaskState;
}

interface StateList<Item extends Listed> {
  readonly state: TaskState;
  readonly list: SortedList<Place, Item>;
}

/** Newest status first, then newest task first. */
export function newestFirst(a: Place, b: Place): number {
  return b.statusTime - a.statusTime || b.number - a.number;
}

export function oldestFirst(a: Place, b: Place): number {
  return newestFirst(b, a);
}

/** Tasks by state and status time. A page and a count of one state cost nothing for the other states. */
export class TaskIndex<Item extends Listed> {
  /** A list for each state that occurred. An array is enough: each context has an index, and most contexts have tasks in only one state. */
  #states: readonly StateList<Item>[] = [];

  add(item: Item): void {
    let found = this.#find(item.state);
    if (found === undefined) {
      found = { state: item.state, list: new SortedList(newestFirst) };
      this.#states = this.#states.concat([found]);
    }
    found.list.add(item);
  }

  delete(item: Item): void {
    this.#find(item.state)?.list.delete(item);
  }

  /** A page, plus one more item if there is one. */
  page({ state, since = -Infinity, after, limit }: PageQuery): Item[] {
    return this.#lists(state)
      .flatMap((list) => list.after(after, limit + 1))
      .filter((item) => item.statusTime >= since)
      .sort(newestFirst)
      .slice(0, limit + 1);
  }

  /** A page for operators: tasks in some states, in either order. Has at most one item more than the limit for each state. */
  stretch({ states, since = -Infinity, before = Infinity, order, after, limit }: StretchQuery): Item[] {
    const wanted = this.#states.filter(({ state }) => states?.includes(state) ?? true);
    const oldestStart = { statusTime: since, number: -1 };
    const newestStart = { statusTime: before, number: -1 };
    return wanted
      .flatMap(({ list }) =>
        order === "newest"
          ? list.after(later(newestStart, after, newestFirst), limit + 1)
          : list.before(later(oldestStart, after, oldestFirst), limit + 1),
      )
      .filter(({ statusTime }) => statusTime >= since && statusTime < before);
  }

  count({ state, since }: Pick<ListQuery, "state" | "since">): number {
    const count = (list: SortedList<Place, Item>): number =>
      since === undefined ? list.size : list.rank({ statusTime: since, number: -1 });
    return this.#lists(state).reduce((sum, list) => sum + count(list), 0);
  }

  /** The number of items by state. States without items are left out. */
  counts(): Readonly<Partial<Record<TaskState, number>>> {
    return Object.fromEntries(this.#states.flatMap(({ state, list }) => (list.size > 0 ? [[state, list.size]] : [])));
  }

  /** The oldest matching items, in all or in some states. At most `limit` for each state. */
  oldest(
    states: readonly TaskState[] | undefined,
    before: number,
    limit: number,
    fits: (item: Item) => boolean,
  ): Item[] {
    const wanted = this.#states.filter(({ state }) => states?.includes(state) ?? true);
    return wanted.flatMap(({ list }) => {
      for (let many = limit; ; many *= 2) {
        const items = list.last(many);
        const found = items.filter((item) => item.statusTime < before && fits(item));
        if (found.length >= limit || items.length < many || (items[0]?.statusTime ?? 0) >= before) {
          return found.slice(-limit);
        }
      }
    });
  }

  #lists(state: TaskState | undefined): readonly SortedList<Place, Item>[] {
    if (state === undefined) return this.#states.map(({ list }) => list);
    const found = this.#find(state);
    return found === undefined ? [] : [found.list];
  }

  #find(state: TaskState): StateList<Item> | undefined {
    return this.#states.find((each) => each.state === state);
  }
}

/**
 * A page of several indexes, plus one more item if there is one.
 *
 * @param before - Number of the task before the page. Absent: this task was deleted, and the page has all items with its time.
 */
export function pageOf<Item extends Listed>(
  indexes: readonly TaskIndex<Item>[],
  { after, ...query }: Pick<ListQuery, "state" | "since" | "after" | "limit">,
  before: number = Infinity,
): Item[] {
  const place = after && { statusTime: after.statusTime, number: before };
  return indexes
    .flatMap((index) => index.page({ ...query, after: place }))
    .sort(newestFirst)
    .slice(0, query.limit + 1);
}
