import type { TaskArtifactUpdateEvent } from "@parley/a2a/model";
import {
  mainWords,
  searchBounds,
  SearchTexts,
  searchWords,
  type SearchPieces,
  type SearchText,
} from "@parley/server/internal/store/search";
import { indexed } from "../shared/owned-words.ts";
import type { Driver, Row } from "./driver.ts";
import { count, encodeName, int, logKey, maxSeq, optional, text } from "./rows.ts";

/*
 * The index of full text search. A text has the key of its record in the log as its rowid, so that the texts of a task are adjacent. Each of
 * its words is stored with the owner before it: a query reads the words of its owner alone, whatever others have. FTS5 gets words of
 * letters, digits and that sign, each between spaces, and its tokenizer `ascii` leaves them as they are. The column `main` has the main words
 * of a text once more.
 *
 * A trigger deletes the texts of a task with the task, also where a process of an earlier release deletes it. Such a process may have a SQLite
 * that cannot change the index. So the task is noted, and its words stay in the index, without a text, until a process of this release deletes
 * them. What has no text is not found.
 */

const createIndex = `CREATE VIRTUAL TABLE IF NOT EXISTS search_index USING fts5(
  words, main, content = '', contentless_delete = 1, tokenize = 'ascii'
)`;

/** Tasks of one step of the index over what was stored before. */
const tasksPerStep = 2000;
/** About how many bytes of text a step reads, so that its transaction is short. */
const bytesPerStep = 2 << 20;

/** What `stepIndex` does: `on` and `off` switch the index, and `more` adds what was stored before. */
export type IndexStep = "on" | "off" | "more";

/** Whether the index is on. */
export function isIndexed(driver: Driver): boolean {
  return count(driver.prepare("SELECT is_on FROM search").get()) === 1;
}

/** Call it in a transaction. Returns whether there is more to add. */
export function stepIndex(driver: Driver, step: IndexStep): boolean {
  if (step === "off") {
    driver.prepare("UPDATE search SET is_on = 0 WHERE is_on = 1").run();
    return false;
  }
  if (step === "on") {
    driver.exec(createIndex);
    dropWords(driver);
    driver.prepare("UPDATE search SET is_on = 1, next = 0 WHERE is_on = 0").run();
  }
  const from = optional(driver.prepare("SELECT next FROM search").get() ?? [], 0);
  if (typeof from !== "number") return false;
  const last = count(driver.prepare("SELECT coalesce(max(number), 0) FROM tasks").get());
  // Tasks that have not changed since they were indexed last are not read.
  const stale = driver
    .prepare(
      `SELECT t.number, t.owner, t.seq, t.state, t.bytes, t.first_seq FROM tasks t LEFT JOIN search_tasks s ON s.task = t.number
       WHERE t.number > ? AND t.number <= ? AND (s.history IS NULL OR s.history < t.seq) ORDER BY t.number`,
    )
    .all(from, from + tasksPerStep);
  let next = from + tasksPerStep;
  let read = 0;
  for (const row of stale) {
    const number = int(row, 0);
    if (read >= bytesPerStep) {
      next = number - 1;
      break;
    }
    read += Math.min(int(row, 4), searchBounds.task);
    const [owner, seq] = [int(row, 1), int(row, 2)];
    indexTask(driver, { number, owner, seq, isActive: int(row, 3) < 2, firstSeq: int(row, 5) });
  }
  driver.prepare("UPDATE search SET next = ?").run(next >= last ? null : next);
  return next < last;
}

/** A task whose log has grown. */
export interface GrownTask {
  readonly number: number;
  readonly owner: number;
  readonly seq: number;
  /** Whether an agent works on it, so that its artifacts may not be complete. */
  readonly isActive: boolean;
  /** The first record of its log that was not joined to others. */
  readonly firstSeq: number;
}

/** Adds to the index what a log has since it was last called for it. Call it when the records are written. */
export function indexTask(driver: Driver, { number, owner, seq, isActive, firstSeq }: GrownTask): void {
  const known = driver.prepare("SELECT history, artifacts, room FROM search_tasks WHERE task = ?").get(number);
  const [history, artifacts, before] =
    known === undefined ? [0, 0, searchBounds.task] : [int(known, 0), int(known, 1), int(known, 2)];
  // It may have the number of a task that is gone.
  if (known === undefined) dropWordsOf(driver, number);
  const texts = new SearchTexts(before);
  const rows = new TextRows(driver, number, owner);
  if (texts.left > 0) readMessages(driver, number, history, texts, rows);
  // A sweep has joined what was added to artifacts to their first records. These are read again.
  const isJoined = firstSeq > artifacts;
  if (!isActive) readArtifacts(driver, number, isJoined ? 0 : artifacts, texts, rows);
  driver
    .prepare(
      `INSERT INTO search_tasks (task, history, artifacts, room) VALUES (?, ?, ?, ?) ON CONFLICT (task) DO UPDATE
       SET history = excluded.history, artifacts = excluded.artifacts, room = excluded.room`,
    )
    .run(number, seq, isActive ? artifacts : seq, texts.left);
}

/** `isSearched`, before anything large is read. */
const searched = `(octet_length(json) <= ${searchBounds.text}
  OR (octet_length(json) <= ${searchBounds.record} AND instr(substr(json, 1, 1024), '"raw":"') = 0))`;

/** Records that are read at once: each may be as large as `searchBounds.record`. */
const recordsAtOnce = 16;
/** Records of a task that are read: more than the texts of most tasks have. */
const maxRecords = 20_000;

/** The rows of a statement that selects the records after a key, by their key, up to another one. A task may be larger than the memory. */
function* recordsOf(driver: Driver, sql: string, number: number, after: number): Generator<Row, void, void> {
  const statement = driver.prepare(
    `${sql} AND key > ? AND key <= ? AND ${searched} ORDER BY key LIMIT ${recordsAtOnce}`,
  );
  let from = logKey(number, after);
  for (let read = 0; read < maxRecords; read += recordsAtOnce) {
    const found = statement.all(from, logKey(number, maxSeq));
    yield* found;
    const last = found[recordsAtOnce - 1];
    if (last === undefined) return;
    from = int(last, 0);
  }
}

const selectMessages = "SELECT key, kind, json FROM log INDEXED BY log_history WHERE place IS NOT NULL";

function readMessages(driver: Driver, number: number, after: number, texts: SearchTexts, rows: TextRows): void {
  for (const row of recordsOf(driver, selectMessages, number, after)) {
    const kind = (["task", "message", "statusUpdate"] as const)[int(row, 1)] ?? "message";
    const said = texts.record({ kind, json: text(row, 2) });
    const [first] = said;
    if (first !== undefined) rows.add(int(row, 0), { ...first, text: said.map((each) => each.text).join("\n") });
  }
}

const selectArtifacts = "SELECT key, json FROM log NOT INDEXED WHERE kind = 3";

function readArtifacts(driver: Driver, number: number, after: number, texts: SearchTexts, rows: TextRows): void {
  /** The key of the last record of each artifact. */
  const keys = new Map<string, number>();
  for (const row of recordsOf(driver, selectArtifacts, number, after)) {
    const { artifact, append = false } = JSON.parse(text(row, 1)) as TaskArtifactUpdateEvent;
    // What is in the index of it is replaced, or more is joined to it.
    const before = keys.has(artifact.artifactId) ? undefined : rows.take(artifact.artifactId);
    if (before !== undefined) texts.resume(artifact.artifactId, before);
    texts.piece(artifact, append);
    keys.set(artifact.artifactId, int(row, 0));
  }
  for (const each of texts.artifacts()) rows.add(keys.get(each.artifactId ?? "") ?? 0, each);
}

/** The texts of a task in the index. */
class TextRows {
  readonly #driver: Driver;
  readonly #range: readonly [number, number];
  readonly #owner: number;

  constructor(driver: Driver, number: number, owner: number) {
    this.#driver = driver;
    this.#range = [logKey(number, 0), logKey(number, maxSeq)];
    this.#owner = owner;
  }

  add(key: number, { messageId, artifactId, text: found, pieces }: SearchText): void {
    const words = searchWords(found);
    if (words.length === 0) return;
    const columns = [words, mainWords(words)].map((each) => each.map((word) => indexed(this.#owner, word)).join(" "));
    this.#driver.prepare("INSERT INTO search_index (rowid, words, main) VALUES (?, ?, ?)").run(key, ...columns);
    const of = [messageId, artifactId].map((id) => (id === undefined ? null : encodeName(id)));
    this.#driver
      .prepare("INSERT INTO search_texts (key, words, message, artifact, text) VALUES (?, ?, ?, ?, ?)")
      .run(key, words.length, ...of, JSON.stringify(pieces ?? found));
  }

  /** Takes an artifact out of the index. */
  take(artifactId: string): SearchPieces | undefined {
    const [row] = this.#driver
      .prepare("SELECT key, text FROM search_texts WHERE key > ? AND key <= ? AND artifact = ?")
      .all(...this.#range, encodeName(artifactId));
    if (row === undefined) return undefined;
    this.#driver.prepare("DELETE FROM search_index WHERE rowid = ?").run(int(row, 0));
    this.#driver.prepare("DELETE FROM search_texts WHERE key = ?").run(int(row, 0));
    return JSON.parse(text(row, 1)) as SearchPieces;
  }
}

/** Deletes the words of tasks that are gone. */
export function dropWords(driver: Driver): void {
  for (const number of driver.prepare("SELECT task FROM search_gone").all().map(count)) dropWordsOf(driver, number);
}

function dropWordsOf(driver: Driver, number: number): void {
  const { changes } = driver.prepare("DELETE FROM search_gone WHERE task = ?").run(number);
  if (changes === 0) return;
  driver
    .prepare("DELETE FROM search_index WHERE rowid > ? AND rowid <= ?")
    .run(logKey(number, 0), logKey(number, maxSeq));
}
