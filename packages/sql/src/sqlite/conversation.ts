import {
  defaultPageBytes,
  inOrder,
  messagesOf,
  pickNewest,
  type ChunkPlace,
  type Chunks,
  type ContextKey,
  type StoredConversation,
  type ConversationOptions,
  type MessagePlace,
  type SaidMessage,
} from "@parley/server/internal/store/index";
import type { Message } from "@parley/a2a/internal/model/index";
import type { Driver, Row, Value } from "./driver.ts";
import { encodeName, eventOf, int, kindNumber, logKey, maxSeq, text } from "./rows.ts";
import type { ScopeIds } from "./scopes.ts";

/** A condition, with its values. */
interface Where {
  readonly sql: string;
  readonly values: readonly Value[];
}

const tables = ["log", "replies"] as const;
type Table = (typeof tables)[number];

const from: { readonly [Name in Table]: string } = {
  log: "log INDEXED BY log_context WHERE place IS NOT NULL AND context = ?",
  replies: "replies WHERE context = ?",
};
const key: { readonly [Name in Table]: string } = { log: "key", replies: "0" };
const kind: { readonly [Name in Table]: string } = { log: "kind", replies: String(kindNumber("message")) };
const everything: Where = { sql: "", values: [] };

/** Call it in a transaction. Reads large texts only if they are returned. */
export function readConversation(
  driver: Driver,
  scopes: ScopeIds,
  key: ContextKey,
  options: ConversationOptions,
): StoredConversation {
  const { agent, owner, contextId } = key;
  const { limit, bytes = defaultPageBytes, before } = options;
  const context = scopes.find(agent, owner, contextId);
  if (context === undefined) {
    return scopes.hasMoved(agent, owner) ? readConversation(driver, scopes, key, options) : { entries: [] };
  }
  const row = driver.prepare("SELECT value FROM context_states WHERE context = ?").get(context);
  const state = row && { state: text(row, 0) };
  if (limit <= 0) return { ...state, entries: [] };

  const own = before && numberOf(driver, scopes.find(agent) ?? 0, context, before.taskId);
  const rest = before === undefined || own === undefined ? everything : outside(own, before);
  const places = tables.flatMap((table) =>
    placesIn(driver, table, context, table === "log" ? rest : everything, limit),
  );
  places.sort((a, b) => b.place - a.place);
  const newest = places.slice(0, limit);

  const tasks = new Set(newest.map(({ task }) => task).filter((task) => task !== undefined));
  if (own !== undefined) tasks.add(own);
  const chunks = new Map<number, Chunks>();
  for (const task of tasks)
    chunks.set(task, new LogChunks(driver, task, lastBefore(driver, task, task === own ? before?.turn : undefined)));

  const picked = pickNewest(newest, chunks, { limit, bytes });
  const oldest = newest[picked.messages.length - 1];
  const said = oldest === undefined ? [] : saidSince(driver, context, rest, oldest.place);
  return { ...state, entries: inOrder(picked, said, limit) };
}

function numberOf(driver: Driver, agent: number, context: number, taskId: string): number | undefined {
  const row = driver
    .prepare("SELECT number, context FROM tasks INDEXED BY tasks_id WHERE agent = ? AND id = ?")
    .get(agent, encodeName(taskId));
  return row !== undefined && int(row, 1) === context ? int(row, 0) : undefined;
}

/** Excludes the turn that asks and later records of its task. The actor of a user's message is 0. */
function outside(task: number, { turn, seq }: { readonly turn: number; readonly seq: number }): Where {
  return {
    sql: "AND NOT (key > ? AND key <= ? AND CASE actor WHEN 0 THEN key >= ? ELSE turn >= ? END)",
    values: [logKey(task, 0), logKey(task, maxSeq), logKey(task, seq), turn],
  };
}

function placesIn(
  driver: Driver,
  table: Table,
  context: number,
  rest: Where,
  limit: number,
): readonly MessagePlace<number>[] {
  return driver
    .prepare(
      `SELECT place, time, octet_length(json), ${key[table]} FROM ${from[table]} ${rest.sql} ORDER BY place DESC LIMIT ?`,
    )
    .all(context, ...rest.values, limit)
    .map((row) => ({
      place: int(row, 0),
      time: int(row, 1),
      bytes: int(row, 2),
      task: table === "log" ? Math.floor(int(row, 3) / 2 ** 24) : undefined,
      seq: int(row, 3) % 2 ** 24,
    }));
}

/** The messages of the records from a place on, newest first. A record can have several messages. */
function saidSince(driver: Driver, context: number, rest: Where, oldest: number): readonly (readonly SaidMessage[])[] {
  const found = tables.flatMap((table): readonly Row[] => {
    const { sql, values } = table === "log" ? rest : everything;
    return driver
      .prepare(`SELECT place, time, ${kind[table]}, json FROM ${from[table]} AND place >= ? ${sql} ORDER BY place DESC`)
      .all(context, oldest, ...values);
  });
  return found
    .sort((a, b) => int(b, 0) - int(a, 0))
    .map((row) =>
      messagesOf(eventOf(int(row, 2), text(row, 3))).map((json) => ({
        time: int(row, 1),
        message: JSON.parse(json) as Message,
      })),
    );
}

/**
 * The last key of a task before a turn. The agent's records are in the order of turns, so a binary search finds the
 * beginning of one, without a scan of all that a lost run may have added.
 */
function lastBefore(driver: Driver, task: number, turn: number | undefined): number {
  if (turn === undefined) return logKey(task, maxSeq);
  const from = driver.prepare(
    "SELECT key, turn FROM log NOT INDEXED WHERE key > ? AND key <= ? AND actor > 0 ORDER BY key LIMIT 1",
  );
  let low = 0;
  let high = maxSeq;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const next = from.get(logKey(task, middle), logKey(task, maxSeq));
    if (next === undefined || int(next, 1) >= turn) high = middle;
    else low = int(next, 0) % 2 ** 24;
  }
  return logKey(task, low);
}

const firstPage = 8;
const largestPage = 256;

/** Reads a page of sizes first: they are stored before the text, so nothing large is read for them. */
class LogChunks implements Chunks {
  readonly #driver: Driver;
  readonly #from: number;
  #to: number;
  #limit = firstPage;
  #over = false;
  #places: (ChunkPlace & { readonly key: number })[] = [];
  #texts: string[] = [];

  /** `to`: the last key. */
  constructor(driver: Driver, task: number, to: number) {
    this.#driver = driver;
    this.#from = logKey(task, 0);
    this.#to = to;
  }

  peek(): ChunkPlace | undefined {
    if (this.#places.length === 0 && !this.#over) this.#readPlaces();
    return this.#places[0];
  }

  take(room: number): string {
    const [place] = this.#places;
    if (place === undefined) return "{}";
    if (this.#texts.length === 0) this.#readTexts(place.key, room);
    this.#places.shift();
    return this.#texts.shift() ?? "{}";
  }

  #readPlaces(): void {
    const rows = this.#driver
      .prepare(
        `SELECT key, time, octet_length(json) FROM log NOT INDEXED
         WHERE kind = 3 AND key > ? AND key <= ? ORDER BY key DESC LIMIT ?`,
      )
      .all(this.#from, this.#to, this.#limit);
    this.#places = rows.map((row) => ({
      key: int(row, 0),
      seq: int(row, 0) % 2 ** 24,
      time: int(row, 1),
      bytes: int(row, 2),
    }));
    this.#over = rows.length < this.#limit;
    this.#limit = Math.min(this.#limit * 4, largestPage);
    this.#to = (this.#places.at(-1)?.key ?? this.#from + 1) - 1;
  }

  /** Reads the first chunk of the page and those after it that fit into `room`. */
  #readTexts(first: number, room: number): void {
    let left = room;
    let count = 1;
    for (const { bytes } of this.#places.slice(1)) {
      if (bytes > left) break;
      left -= bytes;
      count += 1;
    }
    this.#texts = this.#driver
      .prepare(`SELECT json FROM log NOT INDEXED WHERE kind = 3 AND key <= ? AND key > ? ORDER BY key DESC LIMIT ?`)
      .all(first, this.#from, count)
      .map((row) => text(row, 0));
  }
}
