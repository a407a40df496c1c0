import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { utf8Length } from "@parley/a2a/internal/base/index";
import type { Task } from "@parley/a2a/internal/model/index";
import {
  assemble,
  assembleText,
  defaultPageBytes,
  defaultStoreBounds,
  fitting,
  NeedsRoom,
  PageBudget,
  PageRoom,
  snapshotOf,
  tooLarge,
  type ListedTask,
  type ListQuery,
  type FeatureRow,
  type LoadOptions,
  type LogPage,
  type ReadOptions,
  type Scope,
  type Snapshot,
  type TaskHead,
  type TaskPage,
  type TaskPieces,
} from "@parley/server/internal/store/index";
import {
  all,
  first,
  query,
  selectNumber,
  selectTask,
  type Bounds,
  type Dialect,
  type LogRange,
  type Pieces,
  type PiecesOf,
  type Steps,
} from "./dialect.ts";
import {
  count,
  decodeName,
  encodeName,
  featureRow,
  kindNumber,
  maxSeq,
  optional,
  recordRow,
  taskRow,
  taskWidth,
  type TaskRow,
} from "./rows.ts";

// Reads tasks: heads, pages of their logs, whole tasks, and pages of lists.

/** A task of a list. */
export interface Place extends PiecesOf {
  /** The id in its stored form. */
  readonly id: string;
  readonly seq: number;
  readonly statusTime: number;
}

/** Maximum bytes of cached tasks. */
const maxBytes = 16 << 20;

/** Caches the JSON text of tasks, because most are terminal, and are read again. Omits large tasks. */
export class KeptTasks {
  readonly #tasks = new BoundedMap<string>({ bytes: maxBytes, bytesOf: memoryOf });

  find(key: string): string | undefined {
    return this.#tasks.get(key);
  }

  keep(key: string, json: string): void {
    if (memoryOf(key, json) <= maxBytes / 16) this.#tasks.set(key, json);
  }

  forget(): void {
    this.#tasks.clear();
  }
}

/**
 * The key of a task in `KeptTasks`, which changes with each record. The key includes the time of the status, because another process may delete
 * the task and create a newer one with the same id and number.
 */
function keyOf(
  { number, seq, statusTime, id }: Pick<Place, "number" | "seq" | "statusTime" | "id">,
  { history, artifacts, mergeTextParts = false }: LoadOptions,
): string {
  return `${number}/${seq}/${statusTime}/${history ?? ""}/${artifacts}/${mergeTextParts}/${id}`;
}

export const defaultBounds: Bounds = { ...defaultStoreBounds, join: 1 << 20 };

/** Dependencies of readers. */
export interface Reads {
  readonly dialect: Dialect;
  readonly kept: KeptTasks;
  readonly bounds: Bounds;
}

export function* readHead(dialect: Dialect, scope: Scope, taskId: string): Steps<TaskHead | undefined> {
  const columns = `${dialect.taskColumns}, p.value, s.value`;
  const joins =
    "LEFT JOIN parley.checkpoints p ON p.task = t.number LEFT JOIN parley.task_states s ON s.task = t.number";
  const row = yield* first(selectTask(dialect, scope, taskId, { columns, joins }));
  if (row === undefined) return undefined;
  const { head } = taskRow(row);
  const [checkpoint, taskState] = [optional(row, taskWidth), optional(row, taskWidth + 1)];
  if (checkpoint === undefined && taskState === undefined) return head;
  return {
    ...head,
    ...(typeof checkpoint === "string" && { checkpoint }),
    ...(typeof taskState === "string" && { taskState }),
  };
}

export function* readFeatures(
  { name, featureKey }: Dialect,
  { agent, owner }: Scope,
  taskId: string,
  feature: string,
): Steps<readonly FeatureRow[]> {
  const rows = yield* all(
    query(
      `SELECT ${featureKey}, f.value, f.due
       FROM parley.scopes a JOIN parley.tasks t ON t.agent = a.id JOIN parley.scopes o ON o.id = t.owner
         JOIN parley.features f ON f.task = t.number
       WHERE a.parent = 0 AND a.name = $1 AND t.id = $2 AND f.feature = $3 ${owner === undefined ? "" : "AND o.name = $4"}
       ORDER BY f.id`,
      name(agent),
      name(taskId),
      encodeName(feature),
      ...(owner === undefined ? [] : [name(owner)]),
    ),
  );
  return rows.map(featureRow);
}

/** Call this in a transaction. */
export function* readLog(
  { dialect, bounds }: Omit<Reads, "kept">,
  scope: Scope,
  taskId: string,
  options: ReadOptions,
  most: number,
): Steps<LogPage | undefined> {
  const row = yield* first(selectTask(dialect, scope, taskId));
  if (row === undefined) return undefined;
  const { number, head } = taskRow(row);
  const { limit, kinds, bytes = defaultPageBytes } = options;
  const after = Math.min(maxSeq, Math.max(options.after, head.firstSeq - 1));
  if (after >= head.seq) return { records: [], head };
  // SQL does not allow an empty list, so add -1, which is not a kind.
  const and = kinds === undefined ? {} : { and: `kind IN (${[-1, ...kinds.map(kindNumber)].join(", ")})` };
  const range: LogRange = { task: number, after, limit, ...and };
  if (head.bytes <= Math.min(bytes, most)) {
    return { records: (yield* all(dialect.log(dialect.recordColumns, range))).map(recordRow), head };
  }
  // Databases know the length of a text without reading it, so this reads no large values.
  const selectSizes = dialect.log("octet_length(json) + coalesce(octet_length(extra), 0)", range);
  const sizes = (yield* all(selectSizes)).map(count);
  const [largest = 0] = sizes;
  if (largest > bounds.text) throw tooLarge(head.task.taskId, largest, bounds.text);
  const page = fitting(sizes, bytes, (size) => size);
  const sum = page.reduce((total, size) => total + size, 0);
  if (sum > most) throw new NeedsRoom(sum);
  const rows = yield* all(dialect.log(dialect.recordColumns, { ...range, limit: page.length }));
  return { records: rows.map(recordRow), head };
}

/** The cached task, or only the row of a task that is not cached. Throws `NeedsRoom` for a task of more than `most` bytes. */
export function* readKept(
  { dialect, kept }: Reads,
  scope: Scope,
  taskId: string,
  options: LoadOptions,
  most: number,
): Steps<{ readonly snapshot?: Snapshot; readonly task?: TaskRow }> {
  const row = yield* first(selectTask(dialect, scope, taskId));
  if (row === undefined) return {};
  const task = taskRow(row);
  if (task.head.bytes > most) throw new NeedsRoom(task.head.bytes);
  const json = kept.find(keyOf({ number: task.number, id: encodeName(taskId), ...task.head }, options));
  return json === undefined ? { task } : { snapshot: snapshotOf(task.head, json) };
}

/** Call this in a transaction. Reading an unchanged task again, as in polling, only reads its row. */
export function* readTask(
  reads: Reads,
  scope: Scope,
  taskId: string,
  options: LoadOptions,
  most: number,
): Steps<Snapshot | undefined> {
  const { task, snapshot } = yield* readKept(reads, scope, taskId, options, most);
  if (task === undefined) return snapshot;
  const read = assemble(yield* readPieces(reads, task, options), options);
  if (read.pieces === undefined) {
    reads.kept.keep(keyOf({ number: task.number, id: encodeName(taskId), ...task.head }, options), read.json);
  }
  return read;
}

/** Call this in a transaction. Throws, without reading it, if a task exceeds the maximum length of a text. */
export function* readPieces(
  { dialect, bounds }: Omit<Reads, "kept">,
  { head, ...task }: TaskRow,
  options: LoadOptions,
): Steps<TaskPieces> {
  const of = { ...task, bytes: head.bytes };
  if (head.bytes > bounds.text) {
    const bytes = yield* sizeOf(dialect, of, options);
    if (bytes > bounds.text) throw tooLarge(head.task.taskId, bytes, bounds.text);
  }
  const pieces = (yield* dialect.pieces([of], options, bounds)).get(task.number);
  if (pieces === undefined) throw new RangeError(`Task ${task.number} has no log`);
  return { head, ...pieces };
}

/** An upper bound of the requested bytes. Computed without reading large values. */
function* sizeOf(
  dialect: Dialect,
  { number, statusSeq, hasMetadata }: PiecesOf,
  { history, artifacts }: LoadOptions,
): Steps<number> {
  const sum = (column: string, range: Omit<LogRange, "task">): ReturnType<Dialect["log"]> => {
    const { sql, values } = dialect.log(`octet_length(${column}) AS bytes`, { task: number, ...range });
    return { sql: `SELECT coalesce(sum(bytes), 0) FROM (${sql}) s`, values };
  };
  const sums = [sum("base", { upTo: 1 }), sum("json", { after: statusSeq - 1, upTo: statusSeq })];
  if (history !== 0) {
    sums.push(sum("json", { part: "history", newestFirst: true, ...(history !== undefined && { limit: history }) }));
  }
  if (artifacts) sums.push(sum("json", { part: "artifacts" }));
  if (hasMetadata) sums.push(sum("json", { part: "metadata" }));
  const found = yield sums;
  return found.reduce((total, [row]) => total + count(row), 0);
}

/** The page of a list. `found` has the tasks of the page in order, at most one task more than the limit. Call this in a transaction. */
export function* readPage(
  reads: Reads,
  { found, total }: { readonly found: readonly Place[]; readonly total: number },
  query: ListQuery,
  most: number,
): Steps<TaskPage> {
  const tasks = yield* readListed(reads, found.slice(0, query.limit), query, most);
  const last = found[tasks.length - 1];
  if (found.length <= tasks.length || last === undefined) return { tasks, total };
  return { tasks, total, next: { statusTime: last.statusTime, taskId: decodeName(last.id) } };
}

/**
 * As many tasks as fit into the page. Most tasks are unchanged and cached. Other tasks are read in groups, and large tasks one by one.
 */
function* readListed(
  reads: Reads,
  places: readonly Place[],
  query: ListQuery,
  most: number,
): Steps<readonly ListedTask[]> {
  const { dialect, bounds } = reads;
  const { bytes = defaultPageBytes } = query;
  const sizes = places.map((place) => place.bytes);
  const held = new PageRoom(sizes, query, most);
  const isWhole = sizes.reduce((sum, size) => sum + size, 0) <= bytes;
  const budget = new PageBudget(bytes);
  const tasks: ListedTask[] = [];
  for (let at = 0; at < places.length;) {
    const group = fitting(places.slice(at), bounds.join, (place) => place.bytes);
    const [large] = group;
    if (large !== undefined && large.bytes > bounds.join) {
      const size = held.counts || !isWhole ? yield* sizeOf(dialect, large, query) : 0;
      if (!isWhole && !budget.take(size)) return tasks;
      held.take(size);
      const row = yield* first(selectNumber(dialect, large.number));
      if (row === undefined) throw new RangeError(`Task ${large.number} does not exist`);
      tasks.push(assemble(yield* readPieces(reads, taskRow(row), query), query));
    } else {
      for (const json of yield* readGroup(reads, group, query)) {
        if (!isWhole && !budget.take(utf8Length(json))) return tasks;
        held.take(json.length);
        tasks.push(new Listed(json));
      }
    }
    at += group.length;
  }
  return tasks;
}

function* readGroup(
  { dialect, kept, bounds }: Reads,
  places: readonly Place[],
  query: ListQuery,
): Steps<readonly string[]> {
  const known = places.map((place) => kept.find(keyOf(place, query)));
  const missing = places.filter((_place, at) => known[at] === undefined);
  const found = missing.length === 0 ? new Map<number, Pieces>() : yield* dialect.pieces(missing, query, bounds);
  return places.map((place, at) => {
    const pieces = found.get(place.number);
    const json = known[at] ?? (pieces && assembleText(pieces, query));
    if (json === undefined) throw new RangeError(`Task ${place.number} has no log`);
    kept.keep(keyOf(place, query), json);
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
