import type { JsonObject, JsonValue, Part, Turn } from "@parley/a2a";
import type { Answers, Ask } from "../question/plan.ts";

/**
 * What is remembered, and where. The table stays where the server keeps it anyway: in the message that brought it. The
 * context's state only says which message that is, so it outlives a restart with the store, and costs a few bytes. What is still open
 * of a question stands in the message that asks for it, so it belongs to its task.
 */

/** A part of a message of this conversation. */
export interface TableRef {
  readonly messageId: string;
  readonly part: number;
  /** Of the bytes. */
  readonly sha256: string;
}

/** A question that waits for an answer. */
export interface Pending {
  readonly question: string;
  readonly answers: Answers;
  readonly ask: Ask;
  readonly table?: TableRef;
}

const pendingKey = "pending";

/** Where a resumed run goes on from: so many steps were stored, of work on this table. */
export interface Checkpoint {
  readonly steps: number;
  readonly table?: TableRef;
}

// These values went through JSON and come back as they were: only this agent writes them.

export function rememberedTable(turn: Turn): TableRef | undefined {
  return (turn.context.state() as { readonly table?: TableRef } | undefined)?.table;
}

export function rememberTable(turn: Turn, table: TableRef): void {
  turn.context.setState({ table: { ...table } });
}

export function checkpointOf(turn: Turn): Checkpoint {
  return (turn.checkpoint as Checkpoint | undefined) ?? { steps: 0 };
}

/** What the message of this turn answers: the open question in the last thing that the agent said before it, if there is one. */
export function pendingOf({ task, message }: Turn): Pending | undefined {
  const history = task?.history ?? [];
  const place = history.findIndex(({ messageId, role }) => role === "ROLE_USER" && messageId === message.messageId);
  const before = place === -1 ? history : history.slice(0, place);
  const said = before.findLast(({ role }) => role === "ROLE_AGENT");
  return said?.metadata?.[pendingKey] as unknown as Pending | undefined;
}

/** For programs, too: what is asked and what can be answered. */
export function pendingMetadata(pending: Pending): JsonObject {
  return { [pendingKey]: pending as unknown as JsonValue };
}

/** A table is a large message, and may have come a long time ago. */
const wide = { limit: 1_000, bytes: 64 << 20 };

/** The part that a reference names, while the conversation still has its message. */
export async function recall(turn: Turn, { messageId, part }: TableRef): Promise<Part | undefined> {
  if (turn.message.messageId === messageId) return turn.message.parts[part];
  const history = await turn.context.history(wide);
  return history.findLast((entry) => entry.role === "user" && entry.messageId === messageId)?.parts[part];
}
