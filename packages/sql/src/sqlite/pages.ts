import type { Task } from "@parley/a2a";
import {
  assemble,
  assembleText,
  defaultPageBytes,
  fitting,
  PageBudget,
  PageRoom,
  type ListedTask,
  type ListQuery,
  utf8Length,
} from "@parley/a2a/store";
import type { Bounds } from "./bounds.ts";
import type { Driver } from "./driver.ts";
import { eventText, joinOf, listOf, storedEvent } from "./joined.ts";
import { keyOf, type KeptTasks, type Place } from "./kept-tasks.ts";
import { maxSeq, text } from "./rows.ts";
import { readPieces, sizeOf, taskOf } from "./task.ts";

/*
 * The tasks of a page, as one text: of 50 tasks that were read one by one, three statements and 25 values each, what came
 * out of the library was three quarters of the time. See `joined.ts`.
 */

const [unit, record] = ["\u001f", "\u001e"];

const ofTask = `key > (t.number << 24) AND key <= (t.number << 24) + ${maxSeq}`;
const history = joinOf(
  eventText,
  `SELECT kind, json FROM log INDEXED BY log_history WHERE place IS NOT NULL AND ${ofTask} ORDER BY key DESC LIMIT ?2`,
);
const artifacts = joinOf("json", `SELECT json FROM log NOT INDEXED WHERE kind = 3 AND ${ofTask} ORDER BY key`);
const metadata = joinOf(
  "json",
  `SELECT json FROM log INDEXED BY log_metadata WHERE has_metadata = 1 AND ${ofTask} ORDER BY key`,
);

function select(withArtifacts: boolean): string {
  const fields = [
    "t.number",
    "b.base",
    "coalesce(s.json, '')",
    `coalesce((${history}), '')`,
    withArtifacts ? `coalesce((${artifacts}), '')` : "''",
    `CASE WHEN t.has_metadata = 1 THEN coalesce((${metadata}), '') ELSE '' END`,
  ];
  return `SELECT group_concat(${fields.join(" || char(31) || ")}, char(30))
    FROM json_each(?1) p JOIN tasks t JOIN log b ON b.key = (t.number << 24) + 1
    LEFT JOIN log s ON t.status_seq > 0 AND s.key = (t.number << 24) + t.status_seq
    WHERE t.number = p.value`;
}

/**
 * As many tasks as fit into the page. Most of what lists show has not changed since they were asked for last, and is
 * kept; the rest is read in groups that are small together, and what is large alone.
 */
export function readPage(
  driver: Driver,
  kept: KeptTasks,
  bounds: Bounds,
  places: readonly Place[],
  query: ListQuery,
  most: number,
): readonly ListedTask[] {
  const { bytes = defaultPageBytes } = query;
  const held = new PageRoom(
    places.map((place) => place.bytes),
    query,
    most,
  );
  const whole = places.reduce((sum, place) => sum + place.bytes, 0) <= bytes;
  const budget = new PageBudget(bytes);
  const tasks: ListedTask[] = [];
  for (let at = 0; at < places.length;) {
    const group = fitting(places.slice(at), bounds.join, (place) => place.bytes);
    const [first] = group;
    if (first !== undefined && first.bytes > bounds.join) {
      const task = taskOf(driver, first.number);
      const size = held.counts || !whole ? sizeOf(driver, task, query) : 0;
      if (!whole && !budget.take(size)) return tasks;
      held.take(size);
      tasks.push(assemble(readPieces(driver, bounds, first.number, query), query));
    } else {
      for (const json of readGroup(driver, kept, group, query)) {
        if (!whole && !budget.take(utf8Length(json))) return tasks;
        held.take(json.length);
        tasks.push(new Listed(json));
      }
    }
    at += group.length;
  }
  return tasks;
}

function readGroup(driver: Driver, kept: KeptTasks, places: readonly Place[], query: ListQuery): readonly string[] {
  const keys = places.map((place) => keyOf(place, query));
  const missing = places.filter((_place, at) => kept.find(keys[at] as string) === undefined);
  const found = readTasks(driver, missing, query);
  return places.map(({ number }, at) => {
    const key = keys[at] as string;
    const json = found.get(number) ?? kept.find(key);
    if (json === undefined) throw new RangeError(`There is no task of number ${number}`);
    kept.keep(key, json);
    return json;
  });
}

class Listed implements ListedTask {
  readonly json: string;

  constructor(json: string) {
    this.json = json;
  }

  get task(): Task {
    return JSON.parse(this.json) as Task;
  }
}

function readTasks(driver: Driver, places: readonly Place[], query: ListQuery): ReadonlyMap<number, string> {
  if (places.length === 0) return new Map();
  const numbers = JSON.stringify(places.map(({ number }) => number));
  const row = driver.prepare(select(query.artifacts)).get(numbers, query.history ?? maxSeq);
  const tasks = text(row, 0).split(record);
  return new Map(tasks.map((task) => jsonOf(task.split(unit), query)));
}

function jsonOf(parts: readonly string[], query: ListQuery): readonly [number, string] {
  const [number = "", base = "", status = "", events = "", updates = "", changes = ""] = parts;
  const pieces = {
    base,
    status: status === "" ? undefined : status,
    metadata: listOf(changes),
    history: listOf(events).map(storedEvent).reverse(),
    artifacts: listOf(updates),
  };
  return [Number(number), assembleText(pieces, query)];
}
