import type { TaskArtifactUpdateEvent } from "@parley/a2a/model";
import { Snippets } from "@parley/server/internal/store/snippets";
import {
  mainWords,
  piecesText,
  searchBounds,
  SearchTexts,
  searchWords,
  type SearchPieces,
  type SearchText,
} from "@parley/server/internal/store/search";
import {
  unavailable,
  type SearchHit,
  type SearchPage,
  type SearchQuery,
  type SearchTerm,
} from "@parley/server/internal/store/index";
import { all, change, first, query, type Dialect, type LogRange, type Query, type Steps } from "./dialect.ts";
import { decodeName, encodeName, eventOf, int, optional, seqOf, stateNumber, text, type Row } from "./rows.ts";

// Full text search: finds tasks by their texts, and indexes the texts of logs.

export interface IndexedText {
  readonly task: number;
  readonly owner: number;
  readonly seq: number;
  readonly words: readonly string[];
  readonly mainWords: readonly string[];
  readonly message: string | null;
  readonly artifact: string | null;
  /** JSON of the text, or of the pieces of an artifact. */
  readonly text: string;
}

/** The database-specific parts of search. */
export interface SearchDialect {
  readonly dialect: Dialect;
  /** The SQL function that finds a text within another text. */
  readonly position: "instr" | "strpos";
  /** SQL that locks the row of `search`, and a task `t`. */
  readonly lockSearch: string;
  readonly lockTask: string;
  /**
   * The tasks that contain all terms, ranked by `pointsOf` of the port: number, id, and the total. `filters` are context and state.
   */
  page(
    owner: number,
    terms: readonly SearchTerm[],
    filters: readonly [context: number | null, state: number | null],
    page: { readonly limit: number; readonly skip: number },
  ): Query;
  /**
   * The best texts of tasks, at most `maxSnippets` per task. Texts with more of the terms come first, then newer texts. Columns: message,
   * artifact, text. Reads each term once for all tasks.
   */
  best(
    owner: number,
    terms: readonly SearchTerm[],
    tasks: readonly number[],
  ): Steps<ReadonlyMap<number, readonly Row[]>>;
  add(text: IndexedText): readonly Query[];
  /** Removes an artifact, and returns its text. */
  take(task: number, artifact: string): Steps<string | undefined>;
  /** Called before the first text of a task is added. */
  begin?(task: number): Steps<void>;
}

/** Maximum texts per term; the newest texts are used. Few owners have more texts. */
export const maxTexts = 10_000;

/** Separates an owner from a word. Words cannot contain this sign. */
const sign = "\u00b7";

/** A word in the index, prefixed with the owner so that a query only reads words of its owner. */
export function indexed(owner: number, word: string): string {
  return owner.toString(36) + sign + word;
}

/** Whether the index is on, and whether it is complete. */
export function* stateOfIndex(lock = ""): Steps<{ readonly isOn: boolean; readonly next: number | undefined }> {
  const row = yield* first(query(`SELECT is_on, next FROM parley.search ${lock}`));
  const next = optional(row ?? [], 1);
  return { isOn: int(row, 0) === 1, next: typeof next === "number" ? next : undefined };
}

/** Call this in a transaction. */
export function* checkReady(): Steps<void> {
  const { isOn, next } = yield* stateOfIndex();
  if (!isOn) throw unavailable("Full text search is switched off");
  if (next !== undefined) throw unavailable("The index of full text search is being built");
}

/** Call this in a transaction. `context` is absent if the query names no context. */
export function* findTasks(
  search: SearchDialect,
  owner: number,
  context: number | undefined,
  { terms, state, limit, skip = 0 }: SearchQuery,
): Steps<SearchPage> {
  const filters = [context ?? null, state === undefined ? null : stateNumber(state)] as const;
  const rows = yield* all(search.page(owner, terms, filters, { limit, skip }));
  // A page beyond the last page has no total.
  const isBeyond = rows.length === 0 && skip > 0;
  const [any] = isBeyond ? yield* all(search.page(owner, terms, filters, { limit: 1, skip: 0 })) : rows;
  const numbers = rows.map((row) => int(row, 0));
  const best = numbers.length === 0 ? new Map<number, readonly Row[]>() : yield* search.best(owner, terms, numbers);
  const snippets = new Snippets(terms);
  const hits = rows.map((row): SearchHit => ({
    taskId: decodeName(text(row, 1)),
    snippets: snippets.of((best.get(int(row, 0)) ?? []).map(textOf)),
  }));
  return { hits, total: any === undefined ? 0 : int(any, 2) };
}

function textOf(row: Row): SearchText {
  const [messageId, artifactId] = [optional(row, 0), optional(row, 1)];
  const found = JSON.parse(text(row, 2)) as string | SearchPieces;
  return {
    ...(typeof messageId === "string" && { messageId: decodeName(messageId) }),
    ...(typeof artifactId === "string" && { artifactId: decodeName(artifactId) }),
    text: typeof found === "string" ? found : piecesText(found),
  };
}

/** Tasks per indexing step: maximum rows that are checked, and maximum logs that are read. */
const [lookedPerStep, tasksPerStep] = [2000, 200];
/** Approximate bytes of text per step, so that its transaction is short. */
const bytesPerStep = 2 << 20;

/** Indexes some of the older tasks. Returns whether there are more. Call this in a transaction. */
export function* stepIndex(search: SearchDialect): Steps<boolean> {
  const { isOn, next: from } = yield* stateOfIndex(search.lockSearch);
  if (!isOn || from === undefined) return false;
  const looked = yield* first(
    query(
      `SELECT coalesce(max(number), $1), count(*) FROM (
         SELECT number FROM parley.tasks WHERE number > $2 ORDER BY number LIMIT ${lookedPerStep}
       ) t`,
      from,
      from,
    ),
  );
  const last = int(looked, 0);
  // Skips tasks that have not changed since they were last indexed.
  const stale = yield* all(
    query(
      `SELECT t.number, t.owner, t.seq, t.state, t.bytes, t.first_seq FROM parley.tasks t
       WHERE t.number > $1 AND t.number <= $2 AND coalesce((SELECT history FROM parley.search_tasks WHERE task = t.number), 0) < t.seq
       ORDER BY t.number LIMIT ${tasksPerStep} ${search.lockTask}`,
      from,
      last,
    ),
  );
  let next = int(looked, 1) < lookedPerStep && stale.length < tasksPerStep ? null : last;
  if (stale.length === tasksPerStep) next = int(stale.at(-1), 0);
  let read = 0;
  for (const [at, row] of stale.entries()) {
    const [number, owner, seq] = [int(row, 0), int(row, 1), int(row, 2)];
    yield* indexTask(search, { number, owner, seq, isActive: int(row, 3) < 2, firstSeq: int(row, 5) });
    read += Math.min(int(row, 4), searchBounds.task);
    if (read < bytesPerStep || at + 1 === stale.length) continue;
    next = number;
    break;
  }
  yield [change("UPDATE parley.search SET next = $1", next)];
  return next !== null;
}

/** A task whose log has grown. */
export interface GrownTask {
  readonly number: number;
  readonly owner: number;
  readonly seq: number;
  /** Whether an agent is working on it, so that its artifacts may be incomplete. */
  readonly isActive: boolean;
  /** The first record of its log that was not joined to other records. */
  readonly firstSeq: number;
}

/** Indexes the records of a log since the last call. Call this when the records are written and the task is locked. */
export function* indexTask(search: SearchDialect, task: GrownTask): Steps<void> {
  const { number, seq, isActive, firstSeq } = task;
  const select = query("SELECT history, artifacts, room FROM parley.search_tasks WHERE task = $1", number);
  const known = yield* first(select);
  const [history, artifacts, before] =
    known === undefined ? [0, 0, searchBounds.task] : [int(known, 0), int(known, 1), int(known, 2)];
  if (known === undefined && search.begin !== undefined) yield* search.begin(number);
  const texts = new SearchTexts(before);
  if (texts.left > 0) yield* readMessages(search, task, history, texts);
  // A sweep has merged later chunks into the first records of artifacts, so read those records again.
  const isJoined = firstSeq > artifacts;
  if (!isActive) yield* readArtifacts(search, task, isJoined ? 0 : artifacts, texts);
  yield [
    change(
      `INSERT INTO parley.search_tasks (task, history, artifacts, room) VALUES ($1, $2, $3, $4) ON CONFLICT (task) DO UPDATE
       SET history = excluded.history, artifacts = excluded.artifacts, room = excluded.room`,
      number,
      seq,
      isActive ? artifacts : seq,
      texts.left,
    ),
  ];
}

/** Few records per read, because each may be as large as `searchBounds.record`. */
const recordsAtOnce = 16;
/** Maximum records of a task that are read. Few tasks have more texts. */
const maxRecords = 20_000;

/** Calls `visit` with number, kind and text of each searched record. Reads in steps, because a task may be larger than the memory. */
function* eachRecord(
  { dialect, position }: SearchDialect,
  range: Pick<LogRange, "task" | "part" | "after">,
  visit: (row: Row) => Steps<void>,
): Steps<void> {
  // Filters as `isSearched` does, before anything large is read.
  const and = `(octet_length(json) <= ${searchBounds.text}
    OR (octet_length(json) <= ${searchBounds.record} AND ${position}(substr(json, 1, 1024), '"raw":"') = 0))`;
  let { after = 0 } = range;
  for (let read = 0; read < maxRecords; read += recordsAtOnce) {
    const page = { ...range, after, and, limit: recordsAtOnce };
    const rows = yield* all(dialect.log(`${dialect.seq}, kind, json`, page));
    for (const row of rows) yield* visit(row);
    const last = rows[recordsAtOnce - 1];
    if (last === undefined) return;
    after = seqOf(last);
  }
}

function readMessages(search: SearchDialect, task: GrownTask, after: number, texts: SearchTexts): Steps<void> {
  return eachRecord(search, { task: task.number, part: "history", after }, function* (row) {
    const said = texts.record(eventOf(int(row, 1), text(row, 2)));
    const [only] = said;
    if (only === undefined) return;
    yield* add(search, task, seqOf(row), { ...only, text: said.map((each) => each.text).join("\n") });
  });
}

function* readArtifacts(search: SearchDialect, task: GrownTask, after: number, texts: SearchTexts): Steps<void> {
  /** The last record of each artifact. */
  const last = new Map<string, number>();
  yield* eachRecord(search, { task: task.number, part: "artifacts", after }, function* (row) {
    const { artifact, append = false } = JSON.parse(text(row, 2)) as TaskArtifactUpdateEvent;
    const { artifactId } = artifact;
    // Replaces its indexed text, or appends to it.
    const before = last.has(artifactId) ? undefined : yield* search.take(task.number, encodeName(artifactId));
    if (before !== undefined) texts.resume(artifactId, JSON.parse(before) as SearchPieces);
    texts.piece(artifact, append);
    last.set(artifactId, seqOf(row));
  });
  for (const each of texts.artifacts()) yield* add(search, task, last.get(each.artifactId ?? "") ?? 0, each);
}

function* add(
  search: SearchDialect,
  { number, owner }: GrownTask,
  seq: number,
  { messageId, artifactId, text: found, pieces }: SearchText,
): Steps<void> {
  const words = searchWords(found);
  if (words.length === 0) return;
  yield search.add({
    task: number,
    owner,
    seq,
    words,
    mainWords: mainWords(words),
    message: messageId === undefined ? null : encodeName(messageId),
    artifact: artifactId === undefined ? null : encodeName(artifactId),
    text: JSON.stringify(pieces ?? found),
  });
}
