import type { LoadOptions, StoredEvent } from "@parley/server/internal/store/index";
import {
  all,
  change,
  query,
  type Dialect,
  type LogRange,
  type Pieces,
  type PiecesOf,
  type Query,
  type Row,
  type Steps,
} from "../shared/dialect.ts";
import { eventOf, int, optional, taskColumns, text } from "../shared/rows.ts";
import type { Driver, Value } from "./driver.ts";
import { encodeName, logKey, maxSeq, recordColumns, taskTables } from "./rows.ts";

export function run<T>(driver: Driver, steps: Steps<T>): T {
  for (let step = steps.next(); ;) {
    if (step.done === true) return step.value;
    step = steps.next(step.value.map((asked) => ask(driver, asked)));
  }
}

export function ask(driver: Driver, { sql, values, writes, one }: Query): readonly Row[] {
  const statement = driver.prepare(translated(sql));
  // The driver rejects values without an SQLite type, such as arrays.
  const plain = values as readonly Value[];
  if (one === true) {
    const row = statement.get(...plain);
    return row === undefined ? [] : [row];
  }
  if (writes !== true) return statement.all(...plain);
  statement.run(...plain);
  return [];
}

const texts = new Map<string, string>();

/** A shared statement in SQLite's dialect. Texts can be cached because statements are constants, and few statements are derived from them. */
function translated(sql: string): string {
  let text = texts.get(sql);
  if (text === undefined) texts.set(sql, (text = sql.replaceAll("parley.", "").replaceAll(/\$(?=\d)/g, "?")));
  return text;
}

const parts = {
  all: "log WHERE",
  history: "log INDEXED BY log_history WHERE place IS NOT NULL AND",
  // Artifacts and messages of agents have no index, because most records of a log are of these kinds.
  artifacts: "log NOT INDEXED WHERE kind = 3 AND",
  agent: "log NOT INDEXED WHERE actor > 0 AND",
  metadata: "log INDEXED BY log_metadata WHERE has_metadata = 1 AND",
} as const;

function log(
  columns: string,
  { task, after = 0, upTo = maxSeq, part, and, newestFirst = false, limit = maxSeq }: LogRange,
): Query {
  const order = newestFirst ? "DESC" : "";
  const where = `${parts[part ?? "all"]} key > ? AND key <= ? ${and === undefined ? "" : `AND ${and}`}`;
  const range = [logKey(task, after), logKey(task, upTo)];
  return query(`SELECT ${columns} FROM ${where} ORDER BY key ${order} LIMIT ?`, ...range, limit);
}

export const dialect: Dialect = {
  name: encodeName,
  taskColumns,
  taskTables,
  // Excludes deleted owners, which keep their row (`forgetOwner`).
  ownerTables: "scopes a CROSS JOIN scopes o ON o.parent = a.id AND o.name NOT LIKE char(1) || '%'",
  ownerNames: "a.name, o.name",
  tasksBy: (level) => `tasks INDEXED BY tasks_${level}`,
  agentCounts:
    "SELECT name, n0, n1, n2, n3, n4, n5, n6, n7 FROM scopes WHERE parent = 0 AND is_context = 0 ORDER BY name LIMIT $1",
  contextTables: `scopes a CROSS JOIN scopes o ON o.parent = a.id CROSS JOIN scopes c ON c.parent = o.id
    WHERE a.parent = 0 AND a.name = $1 AND o.name = $2`,
  contextName: "c.name",
  featureKey: "f.key",
  logOfContext: "log INDEXED BY log_context WHERE place IS NOT NULL AND context = $1",
  recordTask: "key >> 24",
  recordSeq: `(key & ${maxSeq})`,
  seq: "key",
  recordColumns,
  log,
  compact(task, seq, base, artifacts) {
    const [before, last] = [logKey(task, 0), logKey(task, seq)];
    const starts = artifacts.map((artifact) => logKey(task, artifact.seq));
    return [
      change("UPDATE log SET base = ? WHERE key = ?", base, logKey(task, 1)),
      ...artifacts.map(({ json }, at) => change("UPDATE log SET json = ? WHERE key = ?", json, starts[at] ?? 0)),
      ...[before, ...starts].map((start, at) =>
        change("DELETE FROM log WHERE kind = 3 AND key > ? AND key < ?", start, starts[at] ?? last),
      ),
      change("DELETE FROM log WHERE kind = 2 AND place IS NULL AND key > ? AND key < ?", before, last),
      change("UPDATE log SET has_metadata = 0 WHERE has_metadata = 1 AND key > ? AND key <= ?", before, last),
      change(
        `UPDATE tasks SET bytes = min(bytes, (SELECT sum(octet_length(json)) FROM log WHERE key > ? AND key <= ?))
         WHERE number = ?`,
        before,
        last,
        task,
      ),
    ];
  },
  *pieces(tasks, options, bounds) {
    const [only] = tasks;
    if (tasks.length === 1 && only !== undefined && only.bytes > bounds.join) return yield* largePieces(only, options);
    return yield* joinedPieces(tasks, options);
  },
};

/** Reads texts one by one, because joined texts would take twice the memory and could exceed the maximum length of a string. */
function* largePieces(
  { number, statusSeq, hasMetadata }: PiecesOf,
  { history, artifacts }: LoadOptions,
): Steps<ReadonlyMap<number, Pieces>> {
  const texts = function* (part: "artifacts" | "metadata"): Steps<readonly string[]> {
    return (yield* all(log("json", { task: number, part }))).map((row) => text(row, 0));
  };
  const [[base] = [], [status] = []] = yield [
    log("base", { task: number, upTo: 1 }),
    log("json", { task: number, after: statusSeq - 1, upTo: statusSeq }),
  ];
  const limit = history === undefined ? {} : { limit: history };
  const newest =
    history === 0 ? [] : yield* all(log("kind, json", { task: number, part: "history", newestFirst: true, ...limit }));
  const pieces: Pieces = {
    base: text(base, 0),
    status: status && text(status, 0),
    history: newest.map((row) => eventOf(int(row, 0), text(row, 1))).reverse(),
    artifacts: artifacts ? yield* texts("artifacts") : [],
    metadata: hasMetadata ? yield* texts("metadata") : [],
  };
  return new Map([[number, pieces]]);
}

/*
 * Smaller tasks are read as one text. In `libsql` reading a value takes longer than finding it, so this halves the time of a page of 50
 * tasks (row `list`). With `node:sqlite` it makes no difference. JSON cannot contain the characters that separate the parts.
 */
const [betweenTexts, inEvent, betweenTasks, betweenParts] = ["\u001c", "\u001d", "\u001e", "\u001f"];

function joinOf(text: string, part: "history" | "artifacts" | "metadata", end: string): string {
  const range = `key > (t.number << 24) AND key <= (t.number << 24) + ${maxSeq}`;
  return `coalesce((SELECT group_concat(${text}, char(28)) FROM (SELECT kind, json FROM ${parts[part]} ${range} ORDER BY key ${end})), '')`;
}

const [pageStatement, pageWithArtifacts] = [false, true].map((withArtifacts) => {
  const fields = [
    "t.number",
    "b.base",
    "coalesce(s.json, '')",
    joinOf("kind || char(29) || json", "history", "DESC LIMIT ?2"),
    withArtifacts ? joinOf("json", "artifacts", "") : "''",
    `CASE WHEN t.has_metadata = 1 THEN ${joinOf("json", "metadata", "")} ELSE '' END`,
  ];
  return `SELECT group_concat(${fields.join(" || char(31) || ")}, char(30))
    FROM json_each(?1) p JOIN tasks t JOIN log b ON b.key = (t.number << 24) + 1
    LEFT JOIN log s ON t.status_seq > 0 AND s.key = (t.number << 24) + t.status_seq
    WHERE t.number = p.value`;
});

function* joinedPieces(
  tasks: readonly PiecesOf[],
  { history = maxSeq, artifacts }: LoadOptions,
): Steps<ReadonlyMap<number, Pieces>> {
  const numbers = JSON.stringify(tasks.map(({ number }) => number));
  const statement = (artifacts ? pageWithArtifacts : pageStatement) ?? "";
  const [row = []] = yield* all(query(statement, numbers, history));
  const joined = optional(row, 0);
  return new Map(typeof joined === "string" ? joined.split(betweenTasks).map(piecesIn) : []);
}

function piecesIn(task: string): readonly [number, Pieces] {
  const [number = "", base = "", status = "", events = "", updates = "", changes = ""] = task.split(betweenParts);
  const pieces: Pieces = {
    base,
    status: status === "" ? undefined : status,
    metadata: listOf(changes),
    history: listOf(events).map(storedEvent).reverse(),
    artifacts: listOf(updates),
  };
  return [Number(number), pieces];
}

function listOf(joined: string): readonly string[] {
  return joined === "" ? [] : joined.split(betweenTexts);
}

function storedEvent(joined: string): StoredEvent {
  const end = joined.indexOf(inEvent);
  return eventOf(Number(joined.slice(0, end)), joined.slice(end + 1));
}
