import type { TaskState } from "../model/index.ts";
import type { ListPosition, ListQuery } from "./port.ts";
import { SortedList } from "./sorted-list.ts";

interface Listed extends ListPosition {
  readonly state: TaskState;
}

interface StateList<Item extends Listed> {
  readonly state: TaskState;
  readonly list: SortedList<ListPosition, Item>;
}

/** The order of a list: newest status first, then newest task first. */
export function newestFirst(a: ListPosition, b: ListPosition): number {
  return b.statusTime - a.statusTime || b.number - a.number;
}

export function oldestFirst(a: ListPosition, b: ListPosition): number {
  return newestFirst(b, a);
}

/** Tasks by state and time: any page of any of them, and how many there are, without looking at the others. */
export class TaskIndex<Item extends Listed> {
  /** Those that were ever needed. No map: each context has an index, and most contexts know one state. */
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

  /** One item more than the limit, where there is one. */
  page({ state, since = -Infinity, after, limit }: Pick<ListQuery, "state" | "since" | "after" | "limit">): Item[] {
    return this.#lists(state)
      .flatMap((list) => list.after(after, limit + 1))
      .filter((item) => item.statusTime >= since)
      .sort(newestFirst)
      .slice(0, limit + 1);
  }

  count({ state, since }: Pick<ListQuery, "state" | "since">): number {
    const count = (list: SortedList<ListPosition, Item>): number =>
      since === undefined ? list.size : list.rank({ statusTime: since, number: -1 });
    return this.#lists(state).reduce((sum, list) => sum + count(list), 0);
  }

  #lists(state: TaskState | undefined): readonly SortedList<ListPosition, Item>[] {
    if (state === undefined) return this.#states.map(({ list }) => list);
    const found = this.#find(state);
    return found === undefined ? [] : [found.list];
  }

  #find(state: TaskState): StateList<Item> | undefined {
    return this.#states.find((each) => each.state === state);
  }
}
