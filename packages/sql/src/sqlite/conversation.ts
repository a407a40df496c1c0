import {
  defaultPageBytes,
  fitting,
  messagesOf,
  type ContextKey,
  type Conversation,
  type ConversationOptions,
} from "@parley/a2a/store";
import { utf8Length, type Message } from "@parley/a2a";
import type { Driver } from "./driver.ts";
import { eventOf } from "./joined.ts";
import { int, kindNumber, text } from "./rows.ts";
import type { ScopeIds } from "./scopes.ts";

/** Where a message stands, and at most how large it is. */
interface Place {
  readonly place: number;
  readonly bytes: number;
}

interface Said {
  readonly place: number;
  readonly time: number;
  readonly json: string;
}

const from = {
  log: "log INDEXED BY log_context WHERE place IS NOT NULL AND context = ?",
  replies: "replies WHERE context = ?",
} as const;
const kind = { log: "kind", replies: kindNumber("message") } as const;
const tables = ["log", "replies"] as const;

/** In a transaction. */
export function readConversation(
  driver: Driver,
  scopes: ScopeIds,
  key: ContextKey,
  { limit, bytes = defaultPageBytes }: ConversationOptions,
): Conversation {
  const context = scopes.find(key.agent, key.owner, key.contextId);
  if (context === undefined) return { messages: [] };
  const state = driver.prepare("SELECT value FROM context_states WHERE context = ?").get(context);
  const messages = limit > 0 ? newestMessages(driver, context, limit, bytes) : [];
  return {
    ...(state !== undefined && { state: text(state, 0) }),
    messages: messages.map(({ time, json }) => ({ time, message: JSON.parse(json) as Message })),
  };
}

/** What is large is read only where it is given. */
function newestMessages(driver: Driver, context: number, limit: number, bytes: number): readonly Said[] {
  const places = tables.flatMap((table) => placesIn(driver, table, context, limit));
  places.sort((a, b) => b.place - a.place);
  const oldest = fitting(places.slice(0, limit), bytes, (place) => place.bytes).at(-1);
  if (oldest === undefined) return [];
  const found = tables.flatMap((table) => messagesIn(driver, table, context, oldest.place));
  found.sort((a, b) => b.place - a.place);
  return fitting(found.slice(0, limit), bytes, ({ json }) => utf8Length(json)).reverse();
}

function placesIn(driver: Driver, table: (typeof tables)[number], context: number, limit: number): readonly Place[] {
  return driver
    .prepare(`SELECT place, octet_length(json) FROM ${from[table]} ORDER BY place DESC LIMIT ?`)
    .all(context, limit)
    .map((row) => ({ place: int(row, 0), bytes: int(row, 1) }));
}

/** From a place on, newest first. A record can hold several. */
function messagesIn(driver: Driver, table: (typeof tables)[number], context: number, oldest: number): readonly Said[] {
  return driver
    .prepare(`SELECT place, ${kind[table]}, time, json FROM ${from[table]} AND place >= ? ORDER BY place DESC`)
    .all(context, oldest)
    .flatMap((row) =>
      messagesOf(eventOf(int(row, 1), text(row, 3)))
        .map((json) => ({ place: int(row, 0), time: int(row, 2), json }))
        .reverse(),
    );
}
