import { assemble, type ListedTask, type ListQuery, type TaskPieces } from "@parley/a2a/store";
import type { Task } from "@parley/a2a";
import type { Driver, Row } from "./driver.ts";
import { eventText, joinOf, listOf, storedEvent } from "./joined.ts";
import { maxSeq, taskColumns, taskRow, taskTables, text } from "./rows.ts";

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
    `json_array(${taskColumns})`,
    "b.base",
    "coalesce(s.json, '')",
    `coalesce((${history}), '')`,
    withArtifacts ? `coalesce((${artifacts}), '')` : "''",
    `CASE WHEN t.has_metadata = 1 THEN coalesce((${metadata}), '') ELSE '' END`,
  ];
  return `SELECT group_concat(${fields.join(" || char(31) || ")}, char(30))
    FROM json_each(?1) p JOIN ${taskTables} JOIN log b ON b.key = (t.number << 24) + 1
    LEFT JOIN log s ON t.status_seq > 0 AND s.key = (t.number << 24) + t.status_seq
    WHERE t.number = p.value`;
}

/** A task as the index of a page tells it. */
export interface Place {
  readonly number: number;
  readonly id: string;
  readonly seq: number;
}

/** So many characters of tasks are kept; up to as many again of older ones. */
const mostKept = 4 << 20;

/**
 * Tasks of pages as JSON text. Lists are asked for again and again, and most of what they show has not changed since: a
 * task is read anew when its log has grown. A number can be given again to another task, so the id counts too.
 */
export class Pages {
  #young = new Map<string, string>();
  #old = new Map<string, string>();
  #kept = 0;

  read(driver: Driver, places: readonly Place[], query: ListQuery): readonly ListedTask[] {
    const options = `${query.history ?? ""}/${query.artifacts}`;
    const keys = places.map(({ number, seq, id }) => `${number}/${seq}/${options}/${id}`);
    const missing = places.filter((_place, at) => this.#find(keys[at] as string) === undefined);
    const found = readTasks(driver, missing, query);
    return places.map(({ number }, at) => {
      const key = keys[at] as string;
      const json = found.get(number) ?? this.#find(key);
      if (json === undefined) throw new RangeError(`There is no task of number ${number}`);
      this.#keep(key, json);
      return new Listed(json);
    });
  }

  #find(key: string): string | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  #keep(key: string, json: string): void {
    if (this.#young.has(key)) return;
    this.#young.set(key, json);
    this.#kept += json.length;
    if (this.#kept < mostKept) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#kept = 0;
  }
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
  const [number = "", head = "", base = "", status = "", events = "", updates = "", changes = ""] = parts;
  const pieces: TaskPieces = {
    get head() {
      return taskRow(JSON.parse(head) as Row).head;
    },
    base,
    status: status === "" ? undefined : status,
    metadata: listOf(changes),
    history: listOf(events).map(storedEvent).reverse(),
    artifacts: listOf(updates),
  };
  return [Number(number), assemble(pieces, query).json];
}
