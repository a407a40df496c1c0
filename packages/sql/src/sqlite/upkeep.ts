import {
  defaultPageBytes,
  type ContextKey,
  type KnownContext,
  type KnownReply,
  type Owner,
  type OwnerQuery,
  type Upkeep,
} from "@parley/server/internal/store/index";
import type { KeptTasks } from "../shared/kept-tasks.ts";
import type { Driver, Value } from "./driver.ts";
import { count, decodeName, encodeName, int, optional, text } from "./rows.ts";
import type { Calls } from "./store.ts";
import { taskOf } from "./task.ts";
import { isFree, listsOf, oldest } from "./tidy.ts";
import type { Writer } from "./writer.ts";

/** Deletion and export for operators. */
export function upkeepOf(reader: Driver, writer: Writer, calls: Calls, kept: KeptTasks): Upkeep {
  return {
    owners: (query) => calls.readTogether(() => readOwners(reader, query)),
    count: (selection) =>
      calls.readTogether(() =>
        listsOf(reader, selection).reduce(
          (sum, { where, values }) =>
            sum + count(reader.prepare(`SELECT count(*) FROM ${where} ${isFree}`).get(...values)),
          0,
        ),
      ),
    find: (selection, limit) =>
      calls.readTogether(() => oldest(reader, selection, limit).map((row) => taskOf(reader, int(row, 0)).head)),
    remove: (tasks, limit) =>
      calls.run(async () => {
        const removed = await writer.tidy({ tasks, limit });
        kept.forget();
        return removed;
      }),
    contexts: (owner, page) => calls.readTogether(() => readContexts(reader, owner, page)),
    replies: (context, page) => calls.readTogether(() => readReplies(reader, context, page)),
    forget: (owner, limit) =>
      calls.run(async () => {
        const { deleted, more } = await writer.tidy({ owner, limit });
        kept.forget();
        return { deleted, more };
      }),
    scrub: () => calls.run(() => writer.scrub()),
  };
}

function readOwners(driver: Driver, { agent, owner, after, limit }: OwnerQuery): readonly Owner[] {
  const values: Value[] = [];
  let where = "o.name NOT LIKE char(1) || '%'";
  for (const [column, name] of [
    ["a.name", agent],
    ["o.name", owner],
  ] as const) {
    if (name === undefined) continue;
    where += ` AND ${column} = ?`;
    values.push(encodeName(name));
  }
  if (after !== undefined) {
    where += " AND (a.name, o.name) > (?, ?)";
    values.push(encodeName(after.agent), encodeName(after.owner));
  }
  return driver
    .prepare(
      `SELECT a.name, o.name FROM scopes a CROSS JOIN scopes o ON o.parent = a.id WHERE a.parent = 0 AND ${where} ORDER BY a.name, o.name LIMIT ?`,
    )
    .all(...values, limit)
    .map((row) => ({ agent: decodeName(text(row, 0)), owner: decodeName(text(row, 1)) }));
}

const contextsOf = `scopes a CROSS JOIN scopes o ON o.parent = a.id CROSS JOIN scopes c ON c.parent = o.id
  LEFT JOIN context_states s ON s.context = c.id WHERE a.parent = 0 AND a.name = ? AND o.name = ?`;

function readContexts(
  driver: Driver,
  { agent, owner }: Owner,
  { after, limit }: Parameters<Upkeep["contexts"]>[1],
): readonly KnownContext[] {
  return driver
    .prepare(`SELECT c.name, s.value FROM ${contextsOf} AND c.name > ? ORDER BY c.name LIMIT ?`)
    .all(encodeName(agent), encodeName(owner), after === undefined ? "" : encodeName(after), limit)
    .map((row) => {
      const state = optional(row, 1);
      return { contextId: decodeName(text(row, 0)), ...(typeof state === "string" && { state }) };
    });
}

function readReplies(
  driver: Driver,
  { agent, owner, contextId }: ContextKey,
  { after = 0, limit }: Parameters<Upkeep["replies"]>[1],
): readonly KnownReply[] {
  const context = driver
    .prepare(`SELECT c.id FROM ${contextsOf} AND c.name = ?`)
    .get(...[agent, owner, contextId].map(encodeName));
  if (context === undefined) return [];
  const read = driver.prepare("SELECT place, time, json FROM replies WHERE context = ? AND place = ?");
  const found: KnownReply[] = [];
  let bytes = 0;
  for (const row of driver
    .prepare("SELECT place, octet_length(json) FROM replies WHERE context = ? AND place > ? ORDER BY place LIMIT ?")
    .all(count(context), after, limit)) {
    bytes += int(row, 1);
    if (bytes > defaultPageBytes && found.length > 0) break;
    const reply = read.get(count(context), int(row, 0));
    found.push({ place: int(reply, 0), time: int(reply, 1), json: text(reply, 2) });
  }
  return found;
}
