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
import type { Row } from "./driver.ts";
import { encodeName, eventOf, int, kindNumber, optional, text } from "./rows.ts";
import { one, type Sql } from "./schema.ts";

/*
 * The index of full text search. A text has the task and the number of its record. Its words, each with its owner before it, are a `tsvector`
 * under a GIN index: a query reads the words of its owner alone. They have no places, of which a `tsvector` keeps 16,383 only: phrases are
 * looked for in `words`.
 */

/** Tasks that one step of the index over what was stored before looks at, and those of them that it reads. */
const [lookedPerStep, tasksPerStep] = [2000, 200];
/** About how many bytes of text a step reads, so that its transaction is short. */
const bytesPerStep = 2 << 20;

/** Whether the index is on, and whether it has what was stored before. */
export async function stateOfIndex(sql: Sql): Promise<{ readonly isOn: boolean; readonly isMade: boolean }> {
  const row = await one(sql("SELECT is_on, next FROM parley.search"));
  return { isOn: int(row, 0) === 1, isMade: optional(row ?? [], 1) === undefined };
}

/** Call it in a transaction. It waits for the appends that run: those after it know. */
export async function switchIndex(sql: Sql, on: boolean): Promise<void> {
  await sql("LOCK TABLE parley.search IN ACCESS EXCLUSIVE MODE");
  if (on) await sql("UPDATE parley.search SET is_on = 1, next = 0 WHERE is_on = 0");
  else await sql("UPDATE parley.search SET is_on = 0 WHERE is_on = 1");
}

/** Call it in a transaction. Adds some of what was stored before. Resolves to whether there is more. */
export async function stepIndex(sql: Sql): Promise<boolean> {
  const state = await one(sql("SELECT is_on, next FROM parley.search FOR UPDATE"));
  const from = optional(state ?? [], 1);
  if (int(state, 0) === 0 || typeof from !== "number") return false;
  const looked = await one(
    sql(
      `SELECT coalesce(max(number), $1), count(*) FROM (
         SELECT number FROM parley.tasks WHERE number > $1 ORDER BY number LIMIT ${lookedPerStep}
       ) t`,
      from,
    ),
  );
  const last = int(looked, 0);
  // Tasks that have not changed since they were indexed last are not read. Appends wait for the others.
  const stale = await sql(
    `SELECT t.number, t.owner, t.seq, t.state, t.bytes, t.first_seq FROM parley.tasks t
     WHERE t.number > $1 AND t.number <= $2 AND coalesce((SELECT history FROM parley.search_tasks WHERE task = t.number), 0) < t.seq
     ORDER BY t.number LIMIT ${tasksPerStep} FOR NO KEY UPDATE OF t`,
    from,
    last,
  );
  let next = int(looked, 1) < lookedPerStep && stale.length < tasksPerStep ? null : last;
  if (stale.length === tasksPerStep) next = int(stale.at(-1), 0);
  let read = 0;
  for (const [at, row] of stale.entries()) {
    const [number, owner, seq] = [int(row, 0), int(row, 1), int(row, 2)];
    await indexTask(sql, { number, owner, seq, isActive: int(row, 3) < 2, firstSeq: int(row, 5) });
    read += Math.min(int(row, 4), searchBounds.task);
    if (read < bytesPerStep || at + 1 === stale.length) continue;
    next = number;
    break;
  }
  await sql("UPDATE parley.search SET next = $1", next);
  return next !== null;
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

/** Adds to the index what a log has since it was last called for it. Call it when the records are written, and the task is locked. */
export async function indexTask(sql: Sql, { number, owner, seq, isActive, firstSeq }: GrownTask): Promise<void> {
  const known = await one(sql("SELECT history, artifacts, room FROM parley.search_tasks WHERE task = $1", number));
  const [history, artifacts, before] =
    known === undefined ? [0, 0, searchBounds.task] : [int(known, 0), int(known, 1), int(known, 2)];
  const texts = new SearchTexts(before);
  const rows = new TextRows(sql, number, owner);
  if (texts.left > 0) await readMessages(sql, number, history, texts, rows);
  // A sweep has joined what was added to artifacts to their first records. These are read again.
  const isJoined = firstSeq > artifacts;
  if (!isActive) await readArtifacts(sql, number, isJoined ? 0 : artifacts, texts, rows);
  await sql(
    `INSERT INTO parley.search_tasks (task, history, artifacts, room) VALUES ($1, $2, $3, $4) ON CONFLICT (task) DO UPDATE
     SET history = excluded.history, artifacts = excluded.artifacts, room = excluded.room`,
    number,
    seq,
    isActive ? artifacts : seq,
    texts.left,
  );
}

/** `isSearched`, before anything large is read. */
const searched = `(octet_length(json) <= ${searchBounds.text}
  OR (octet_length(json) <= ${searchBounds.record} AND strpos(substr(json, 1, 1024), '"raw":"') = 0))`;

/** Records that are read at once: each may be as large as `searchBounds.record`. */
const recordsAtOnce = 16;
/** Records of a task that are read: more than the texts of most tasks have. */
const maxRecords = 20_000;

/** The records of a task after one, of those that `where` selects. A task may be larger than the memory. */
async function* recordsOf(sql: Sql, where: string, number: number, after: number): AsyncGenerator<Row, void, void> {
  let from = after;
  for (let read = 0; read < maxRecords; read += recordsAtOnce) {
    const found = await sql(
      `SELECT seq, kind, json FROM parley.log WHERE task = $1 AND seq > $2 AND ${where} AND ${searched}
       ORDER BY seq LIMIT ${recordsAtOnce}`,
      number,
      from,
    );
    yield* found;
    const last = found[recordsAtOnce - 1];
    if (last === undefined) return;
    from = int(last, 0);
  }
}

async function readMessages(
  sql: Sql,
  number: number,
  after: number,
  texts: SearchTexts,
  rows: TextRows,
): Promise<void> {
  for await (const row of recordsOf(sql, "place IS NOT NULL", number, after)) {
    const said = texts.record(eventOf(int(row, 1), text(row, 2)));
    const [first] = said;
    if (first !== undefined) await rows.add(int(row, 0), { ...first, text: said.map((each) => each.text).join("\n") });
  }
}

async function readArtifacts(
  sql: Sql,
  number: number,
  after: number,
  texts: SearchTexts,
  rows: TextRows,
): Promise<void> {
  /** The last record of each artifact. */
  const last = new Map<string, number>();
  for await (const row of recordsOf(sql, `kind = ${kindNumber("artifactUpdate")}`, number, after)) {
    const { artifact, append = false } = JSON.parse(text(row, 2)) as TaskArtifactUpdateEvent;
    // What is in the index of it is replaced, or more is joined to it.
    const before = last.has(artifact.artifactId) ? undefined : await rows.take(artifact.artifactId);
    if (before !== undefined) texts.resume(artifact.artifactId, before);
    texts.piece(artifact, append);
    last.set(artifact.artifactId, int(row, 0));
  }
  for (const each of texts.artifacts()) await rows.add(last.get(each.artifactId ?? "") ?? 0, each);
}

/** The texts of a task in the index. */
class TextRows {
  readonly #sql: Sql;
  readonly #task: number;
  readonly #owner: number;

  constructor(sql: Sql, task: number, owner: number) {
    this.#sql = sql;
    this.#task = task;
    this.#owner = owner;
  }

  async add(seq: number, { messageId, artifactId, text: found, pieces }: SearchText): Promise<void> {
    const words = searchWords(found);
    if (words.length === 0) return;
    const [message = null, artifact = null] = [messageId, artifactId].map((id) =>
      id === undefined ? null : encodeName(id),
    );
    // Words have letters and digits, so nothing in them is syntax.
    const lexemes = Array.from(new Set(words), (word) => `'${indexed(this.#owner, word)}'`).join(" ");
    await this.#sql(
      `INSERT INTO parley.search_texts (task, seq, message, artifact, text, count, words, main, lexemes)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::tsvector)`,
      this.#task,
      seq,
      message,
      artifact,
      JSON.stringify(pieces ?? found),
      words.length,
      ` ${words.join(" ")} `,
      ` ${mainWords(words).join(" ")} `,
      lexemes,
    );
  }

  /** Takes an artifact out of the index. */
  async take(artifactId: string): Promise<SearchPieces | undefined> {
    const row = await one(
      this.#sql(
        "DELETE FROM parley.search_texts WHERE task = $1 AND artifact = $2 RETURNING text",
        this.#task,
        encodeName(artifactId),
      ),
    );
    return row && (JSON.parse(text(row, 0)) as SearchPieces);
  }
}
