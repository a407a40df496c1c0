import {
  artifactStarts,
  compact,
  defaultPageBytes,
  type ContextKey,
  type KnownContext,
  type KnownReply,
  type Owner,
  type OwnerQuery,
  type TaskHead,
  type Upkeep,
} from "@parley/server/internal/store/index";
import { all, change, first, query, type Dialect, type Steps } from "./dialect.ts";
import { count, decodeName, encodeJson, int, optional, seqOf, text, type TaskRow, type Value } from "./rows.ts";
import { readPieces, type Reads } from "./tasks.ts";

// Compacts tasks, and lists the owners, their contexts and their replies.

/** Approximate maximum of records or 4 KiB pages that one call reads, so that its transaction is short. */
export const effortPerSweep = 10_000;

/** The size of a task's log, in pages of 4 KiB. */
export function pagesOf({ bytes }: TaskHead): number {
  return Math.ceil(bytes / 4096);
}

/** Leaves one record for each artifact and no progress messages. Returns the effort; 0 if nothing was done. Call this in a transaction. */
export function* compactTask(reads: Omit<Reads, "kept">, task: TaskRow): Steps<number> {
  const { dialect, bounds } = reads;
  const { head, number } = task;
  if (head.bytes > bounds.compaction) {
    // This task stays as it is. The mark makes later sweeps skip it.
    yield [change("UPDATE parley.tasks SET compacted = 1 WHERE number = $1", number)];
    return 0;
  }
  const pieces = head.seq > 1 ? yield* readPieces(reads, task, { artifacts: true }) : undefined;
  yield [change("UPDATE parley.tasks SET compacted = 1, first_seq = seq, has_metadata = 0 WHERE number = $1", number)];
  if (pieces === undefined) return 0;
  const { base, artifacts } = compact(pieces);
  // An artifact stays at the place of its first chunk, so its order and its place in the conversation do not change.
  const chunks = yield* all(dialect.log(dialect.seq, { task: number, upTo: head.seq - 1, part: "artifacts" }));
  const starts = artifactStarts(pieces.artifacts).map((at) => (chunks[at] === undefined ? 0 : seqOf(chunks[at])));
  const texts = artifacts.map((json, at) => ({ seq: starts[at] ?? 0, json: encodeJson(json) }));
  yield dialect.compact(number, head.seq, encodeJson(base), texts);
  return head.seq + pagesOf(head);
}

export function* readOwners(
  { name, ownerTables, ownerNames }: Dialect,
  { agent, owner, after, limit }: OwnerQuery,
): Steps<readonly Owner[]> {
  const values: Value[] = [];
  const next = (value: string): string => `$${values.push(name(value))}`;
  const named = [
    ...(agent === undefined ? [] : [`a.name = ${next(agent)}`]),
    ...(owner === undefined ? [] : [`o.name = ${next(owner)}`]),
    ...(after === undefined ? [] : [`(a.name, o.name) > (${next(after.agent)}, ${next(after.owner)})`]),
  ];
  const where = ["a.parent = 0", ...named].join(" AND ");
  const sql = `SELECT ${ownerNames} FROM ${ownerTables} WHERE ${where} ORDER BY a.name, o.name LIMIT $${values.length + 1}`;
  const rows = yield* all(query(sql, ...values, limit));
  return rows.map((row) => ({ agent: decodeName(text(row, 0)), owner: decodeName(text(row, 1)) }));
}

export function* readContexts(
  { name, contextTables, contextName }: Dialect,
  { agent, owner }: Owner,
  { after, limit }: Parameters<Upkeep["contexts"]>[1],
): Steps<readonly KnownContext[]> {
  const state = "(SELECT value FROM parley.context_states s WHERE s.context = c.id)";
  const sql = `SELECT ${contextName}, ${state} FROM ${contextTables} AND c.name > $3 ORDER BY c.name LIMIT $4`;
  const from = after === undefined ? "" : name(after);
  const rows = yield* all(query(sql, name(agent), name(owner), from, limit));
  return rows.map((row) => {
    const value = optional(row, 1);
    return { contextId: decodeName(text(row, 0)), ...(typeof value === "string" && { state: value }) };
  });
}

/** Call this in a transaction. */
export function* readReplies(
  { name, contextTables }: Dialect,
  { agent, owner, contextId }: ContextKey,
  { after = 0, limit }: Parameters<Upkeep["replies"]>[1],
): Steps<readonly KnownReply[]> {
  const names = [agent, owner, contextId].map(name);
  const found = yield* first(query(`SELECT c.id FROM ${contextTables} AND c.name = $3`, ...names));
  if (found === undefined) return [];
  const context = count(found);
  // Reads sizes first, so that a page of large replies does not fill the memory.
  const sql = `SELECT r.place, r.time, r.json FROM (
      SELECT place, sum(size) OVER (ORDER BY place) AS bytes, row_number() OVER (ORDER BY place) AS at FROM (
        SELECT place, octet_length(json) AS size FROM parley.replies WHERE context = $1 AND place > $2 ORDER BY place LIMIT $3
      ) p
    ) f JOIN parley.replies r ON r.context = $4 AND r.place = f.place
    WHERE f.bytes <= ${defaultPageBytes} OR f.at = 1 ORDER BY r.place`;
  const rows = yield* all(query(sql, context, after, limit, context));
  return rows.map((row) => ({ place: int(row, 0), time: int(row, 1), json: text(row, 2) }));
}
