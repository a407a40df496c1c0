import {
  defaultPageBytes,
  inOrder,
  messagesOf,
  pickNewestLater,
  type ChunkPlace,
  type Chunks,
  type ContextKey,
  type ConversationOptions,
  type MessagePlace,
  type SaidMessage,
  type StoredConversation,
} from "@parley/server/internal/store/index";
import type { Message } from "@parley/a2a/internal/model/index";
import type { Value } from "./driver.ts";
import { eventOf, indexName, int, kindNumber, maxSeq, text } from "./rows.ts";
import { one, type Sql } from "./schema.ts";
import { findPlace } from "./scopes.ts";

/** A condition, with its values. Its parameters begin with `$3`. */
interface Where {
  readonly sql: string;
  readonly values: readonly Value[];
}

const tables = ["log", "replies"] as const;
type Table = (typeof tables)[number];

const from: { readonly [Name in Table]: string } = {
  // The records of deleted tasks may still be there, until their partition is dropped.
  log: `parley.log WHERE place IS NOT NULL AND context = $1
    AND EXISTS (SELECT 1 FROM parley.tasks t WHERE t.number = log.task)`,
  replies: "parley.replies WHERE context = $1",
};
const columns: { readonly [Name in Table]: string } = {
  log: "task, seq, kind",
  replies: `0::bigint, 0, ${kindNumber("message")}`,
};
const everything: Where = { sql: "", values: [] };

/** Call it in a transaction. Reads large texts only if they are returned. */
export async function readConversation(
  sql: Sql,
  key: ContextKey,
  { limit, bytes = defaultPageBytes, before }: ConversationOptions,
): Promise<StoredConversation> {
  const { owner: scope, context } = (await findPlace(sql, key, key.contextId)) ?? {};
  if (scope === undefined || context === undefined) return { entries: [] };
  const row = await one(sql("SELECT value FROM parley.context_states WHERE context = $1", context));
  const state = row && { state: text(row, 0) };
  if (limit <= 0) return { ...state, entries: [] };

  const own = before && (await findOwn(sql, scope, context, before.taskId));
  const rest = before === undefined || own === undefined ? everything : outside(own.number, before);
  const places = (
    await Promise.all(tables.map((table) => placesIn(sql, table, context, table === "log" ? rest : everything, limit)))
  ).flat();
  places.sort((a, b) => b.place - a.place);
  const newest = places.slice(0, limit);

  const tasks = new Set(newest.map(({ task }) => task).filter((task) => task !== undefined));
  if (own !== undefined) tasks.add(own.number);
  const chunks = new Map<number, Chunks>();
  for (const task of tasks) {
    const last = task === own?.number && before !== undefined ? await lastBefore(sql, own, before) : maxSeq;
    chunks.set(task, new LogChunks(sql, task, last));
  }

  const picked = await pickNewestLater(newest, chunks, { limit, bytes });
  const oldest = newest[picked.messages.length - 1];
  const said = oldest === undefined ? [] : await saidSince(sql, context, rest, oldest.place);
  return { ...state, entries: inOrder(picked, said, limit) };
}

/** The task that asks, as it is stored. */
interface OwnTask {
  readonly number: number;
  /** `seq` of its last record. */
  readonly seq: number;
}

async function findOwn(sql: Sql, owner: number, context: number, taskId: string): Promise<OwnTask | undefined> {
  const row = await one(
    sql(
      `SELECT t.number, t.seq FROM parley.scopes o JOIN parley.tasks t ON t.agent = o.parent
       WHERE o.id = $1 AND t.id = $2 AND t.context = $3`,
      owner,
      indexName(taskId),
      context,
    ),
  );
  return row && { number: int(row, 0), seq: int(row, 1) };
}

/** Excludes the turn that asks and later records of its task. The actor of a user's message is 0. */
function outside(task: number, { turn, seq }: { readonly turn: number; readonly seq: number }): Where {
  return {
    sql: "AND NOT (task = $3 AND CASE actor WHEN 0 THEN seq >= $4 ELSE turn >= $5 END)",
    values: [task, seq, turn],
  };
}

async function placesIn(
  sql: Sql,
  table: Table,
  context: number,
  rest: Where,
  limit: number,
): Promise<readonly MessagePlace<number>[]> {
  const rows = await sql(
    `SELECT place, time, octet_length(json), ${columns[table]} FROM ${from[table]} ${rest.sql} ORDER BY place DESC LIMIT $2`,
    context,
    limit,
    ...rest.values,
  );
  return rows.map((row) => ({
    place: int(row, 0),
    time: int(row, 1),
    bytes: int(row, 2),
    task: table === "log" ? int(row, 3) : undefined,
    seq: int(row, 4),
  }));
}

/** The messages of the records from a place on, newest first. A record can have several messages. */
async function saidSince(
  sql: Sql,
  context: number,
  rest: Where,
  oldest: number,
): Promise<readonly (readonly SaidMessage[])[]> {
  const found = await Promise.all(
    tables.map((table) => {
      const { sql: where, values } = table === "log" ? rest : everything;
      return sql(
        `SELECT place, time, ${columns[table]}, json FROM ${from[table]} AND place >= $2 ${where} ORDER BY place DESC`,
        context,
        oldest,
        ...values,
      );
    }),
  );
  return found
    .flat()
    .sort((a, b) => int(b, 0) - int(a, 0))
    .map((row) =>
      messagesOf(eventOf(int(row, 4), text(row, 5))).map((json) => ({
        time: int(row, 1),
        message: JSON.parse(json) as Message,
      })),
    );
}

/**
 * The last record of the agent before a turn: most often the one before its message. Earlier turns may have gone on after that, and a lost
 * run of this one may have added many: the agent's records are in the order of turns, so a binary search finds the place between.
 */
async function lastBefore(
  sql: Sql,
  { number, seq: last }: OwnTask,
  { turn, seq: message }: { readonly turn: number; readonly seq: number },
): Promise<number> {
  const said = "FROM parley.log WHERE task = $1 AND actor > 0";
  const first = await one(sql(`SELECT seq ${said} AND seq < $2 ORDER BY seq DESC LIMIT 1`, number, message));
  let low = first === undefined ? 0 : int(first, 0);
  let high = last;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const next = await one(sql(`SELECT seq, turn ${said} AND seq > $2 ORDER BY seq LIMIT 1`, number, middle));
    if (next === undefined || int(next, 1) >= turn) high = middle;
    else low = int(next, 0);
  }
  return low;
}

const firstPage = 8;
const largestPage = 256;

/** Reads a page of sizes first, so nothing large is read for them. */
class LogChunks implements Chunks {
  readonly #sql: Sql;
  readonly #task: number;
  #to: number;
  #limit = firstPage;
  #over = false;
  #places: readonly ChunkPlace[] = [];
  #texts: string[] = [];

  /** `to`: the last record. */
  constructor(sql: Sql, task: number, to: number) {
    this.#sql = sql;
    this.#task = task;
    this.#to = to;
  }

  ready(room?: number): Promise<void> | undefined {
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

  async #readPlaces(): Promise<void> {
    const rows = await this.#sql(
      `SELECT seq, time, octet_length(json) FROM parley.log
       WHERE kind = ${kindNumber("artifactUpdate")} AND task = $1 AND seq <= $2 ORDER BY seq DESC LIMIT $3`,
      this.#task,
      this.#to,
      this.#limit,
    );
    this.#places = rows.map((row) => ({ seq: int(row, 0), time: int(row, 1), bytes: int(row, 2) }));
    this.#over = rows.length < this.#limit;
    this.#limit = Math.min(this.#limit * 4, largestPage);
    this.#to = (this.#places.at(-1)?.seq ?? 1) - 1;
  }

  /** Reads the first chunk of the page and those after it that fit into `room`. */
  async #readTexts(room: number): Promise<void> {
    const [first, ...more] = this.#places;
    let [left, last] = [room, first];
    for (const place of more) {
      if (place.bytes > left) break;
      left -= place.bytes;
      last = place;
    }
    const rows = await this.#sql(
      `SELECT json FROM parley.log
       WHERE kind = ${kindNumber("artifactUpdate")} AND task = $1 AND seq <= $2 AND seq >= $3 ORDER BY seq DESC`,
      this.#task,
      first?.seq ?? 0,
      last?.seq ?? 0,
    );
    this.#texts = rows.map((row) => text(row, 0));
  }
}
