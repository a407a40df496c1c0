import type { Message } from "@parley/a2a/internal/model/index";
import {
  defaultPageBytes,
  inOrder,
  messagesOf,
  pickNewestSteps,
  type ChunkPlace,
  type Chunks,
  type ContextKey,
  type ConversationOptions,
  type MessagePlace,
  type Picked,
  type SaidMessage,
  type StoredConversation,
} from "@parley/server/internal/store/index";
import { all, first, query, selectTask, type Dialect, type Query, type Steps } from "./dialect.ts";
import { eventOf, int, kindNumber, maxSeq, seqOf, text, type Row, type Value } from "./rows.ts";

// Reads the newest entries of a conversation. Reads large texts only if they are returned.

/** A condition for records of the log, with its values. Its parameters begin with `$3`. */
interface Where {
  readonly sql: string;
  readonly values: readonly Value[];
}

const everything: Where = { sql: "", values: [] };

/** Call this in a transaction. */
export function* readConversation(
  dialect: Dialect,
  key: ContextKey,
  context: number,
  { limit, bytes = defaultPageBytes, before }: ConversationOptions,
): Steps<StoredConversation> {
  const row = yield* first(query("SELECT value FROM parley.context_states WHERE context = $1", context));
  const state = row && { state: text(row, 0) };
  if (limit <= 0) return { ...state, entries: [] };

  const own = before && (yield* findOwn(dialect, key, context, before.taskId));
  const rest = before === undefined || own === undefined ? everything : outside(dialect, own.number, before);
  const newest = (yield* placesIn(dialect, context, rest, limit)).slice(0, limit);
  const tasks = new Set(newest.flatMap(({ task }) => task ?? []));
  if (own !== undefined) tasks.add(own.number);
  const chunks = new Map<number, LogChunks>();
  for (const task of tasks) {
    const isOwn = own !== undefined && before !== undefined && task === own.number;
    chunks.set(task, new LogChunks(dialect, task, isOwn ? yield* lastBefore(dialect, own, before) : maxSeq));
  }

  const picked = yield* pick(newest, chunks, { limit, bytes });
  const oldest = newest[picked.messages.length - 1];
  const said = oldest === undefined ? [] : yield* saidSince(dialect, context, rest, oldest.place);
  return { ...state, entries: inOrder(picked, said, limit) };
}

function* pick(
  newest: readonly MessagePlace<number>[],
  chunks: ReadonlyMap<number, LogChunks>,
  bounds: { readonly limit: number; readonly bytes: number },
): Steps<Picked> {
  const picking = pickNewestSteps(newest, chunks, bounds);
  for (let step = picking.next(); ; step = picking.next()) {
    if (step.done === true) return step.value;
    yield* step.value;
  }
}

/** The row of the asking task. */
interface OwnTask {
  readonly number: number;
  /** `seq` of its last record. */
  readonly seq: number;
}

function* findOwn(dialect: Dialect, key: ContextKey, context: number, taskId: string): Steps<OwnTask | undefined> {
  const row = yield* first(selectTask(dialect, key, taskId, { columns: "t.number, t.seq, t.context" }));
  return row !== undefined && int(row, 2) === context ? { number: int(row, 0), seq: int(row, 1) } : undefined;
}

/** The start of a turn: its number, and the `seq` of its message. */
type Turn = Pick<NonNullable<ConversationOptions["before"]>, "turn" | "seq">;

/** Excludes the turn that asks and later records of its task. The actor of a user's message is 0. */
function outside({ recordTask, recordSeq }: Dialect, task: number, { turn, seq }: Turn): Where {
  return {
    sql: `AND NOT (${recordTask} = $3 AND CASE actor WHEN 0 THEN ${recordSeq} >= $4 ELSE turn >= $5 END)`,
    values: [task, seq, turn],
  };
}

/** Selects from the records of tasks, and from the direct replies. */
function saidIn(
  { recordTask, recordSeq, logOfContext }: Dialect,
  columns: string,
  { sql, values }: Where,
  end: string,
  ...[context, more]: readonly [number, number]
): readonly Query[] {
  return [
    query(
      `SELECT place, time, ${recordTask}, ${recordSeq}, kind, ${columns} FROM ${logOfContext} ${sql} ${end}`,
      context,
      more,
      ...values,
    ),
    query(
      `SELECT place, time, 0, 0, ${kindNumber("message")}, ${columns} FROM parley.replies WHERE context = $1 ${end}`,
      context,
      more,
    ),
  ];
}

function* placesIn(
  dialect: Dialect,
  context: number,
  rest: Where,
  limit: number,
): Steps<readonly MessagePlace<number>[]> {
  const found = yield saidIn(dialect, "octet_length(json)", rest, "ORDER BY place DESC LIMIT $2", context, limit);
  const places = found.flatMap((rows, table) =>
    rows.map((row) => ({
      place: int(row, 0),
      time: int(row, 1),
      task: table === 0 ? int(row, 2) : undefined,
      seq: int(row, 3),
      bytes: int(row, 5),
    })),
  );
  return places.sort((a, b) => b.place - a.place);
}

/** The messages of the records since a place, newest first. A record can have several messages. */
function* saidSince(
  dialect: Dialect,
  context: number,
  rest: Where,
  oldest: number,
): Steps<readonly (readonly SaidMessage[])[]> {
  const found = yield saidIn(dialect, "json", rest, "AND place >= $2 ORDER BY place DESC", context, oldest);
  return found
    .flat()
    .sort((a: Row, b: Row) => int(b, 0) - int(a, 0))
    .map((row) =>
      messagesOf(eventOf(int(row, 4), text(row, 5))).map((json) => ({
        time: int(row, 1),
        message: JSON.parse(json) as Message,
      })),
    );
}

/**
 * The last record of the agent before a turn. Usually this record precedes the message of the turn, but earlier turns and lost runs of this
 * turn may have added records after that message. The agent's records are in the order of turns, so a binary search finds the record.
 */
function* lastBefore(
  { log, seq }: Dialect,
  { number: task, seq: last }: OwnTask,
  { turn, seq: message }: Turn,
): Steps<number> {
  const before = yield* first(log(seq, { task, upTo: message - 1, part: "agent", newestFirst: true, limit: 1 }));
  let low = before === undefined ? 0 : seqOf(before);
  let high = last;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const next = yield* first(log(`${seq}, turn`, { task, after: middle, part: "agent", limit: 1 }));
    if (next === undefined || int(next, 1) >= turn) high = middle;
    else low = seqOf(next);
  }
  return low;
}

const firstPage = 8;
const largestPage = 256;

/** Reads the sizes of a page first, because the database knows sizes without reading the texts. */
class LogChunks implements Chunks<Steps<void>> {
  readonly #dialect: Dialect;
  readonly #task: number;
  #upTo: number;
  #limit = firstPage;
  #over = false;
  #places: readonly ChunkPlace[] = [];
  #texts: string[] = [];

  constructor(dialect: Dialect, task: number, upTo: number) {
    this.#dialect = dialect;
    this.#task = task;
    this.#upTo = upTo;
  }

  ready(room?: number): Steps<void> | undefined {
    if (room !== undefined) return this.#texts.length === 0 ? this.#readTexts(room) : undefined;
    return this.#places.length === 0 && !this.#over ? this.#readPlaces() : undefined;
  }

  peek(): ChunkPlace | undefined {
    return this.#places[0];
  }

  take(): string {
    this.#places = this.#places.slice(1);
    return this.#texts.shift() ?? "{}";
  }

  *#readPlaces(): Steps<void> {
    const { log, seq } = this.#dialect;
    const page = {
      task: this.#task,
      upTo: this.#upTo,
      part: "artifacts",
      newestFirst: true,
      limit: this.#limit,
    } as const;
    const rows = yield* all(log(`${seq}, time, octet_length(json)`, page));
    this.#places = rows.map((row) => ({ seq: seqOf(row), time: int(row, 1), bytes: int(row, 2) }));
    this.#over = rows.length < this.#limit;
    this.#limit = Math.min(this.#limit * 4, largestPage);
    this.#upTo = (this.#places.at(-1)?.seq ?? 1) - 1;
  }

  /** Reads the first chunk of the page and the following chunks that fit into `room`. */
  *#readTexts(room: number): Steps<void> {
    const [newest, ...more] = this.#places;
    let [left, oldest] = [room, newest];
    for (const place of more) {
      if (place.bytes > left) break;
      left -= place.bytes;
      oldest = place;
    }
    const [upTo, after] = [newest?.seq ?? 0, (oldest?.seq ?? 0) - 1];
    const page = { task: this.#task, upTo, after, part: "artifacts", newestFirst: true } as const;
    this.#texts = (yield* all(this.#dialect.log("json", page))).map((row) => text(row, 0));
  }
}
