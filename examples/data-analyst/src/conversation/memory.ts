import type { JsonObject, JsonValue, Part, Turn } from "@parley/node";
import type { Answers, Ask } from "../question/plan.ts";

/**
 * What is remembered, and where. The server stores the message with the table. The state of the context only refers to that message, in a
 * few bytes, which survive a restart. An open question is in the message that asks it, so it belongs to the task.
 */

/** A part of a message of this conversation. */
export interface TableRef {
  readonly messageId: string;
  readonly part: number;
  /** Hash of the bytes. */
  readonly sha256: string;
}

/** A question that has not been answered. */
export interface Pending {
  readonly question: string;
  readonly answers: Answers;
  readonly ask: Ask;
  readonly table?: TableRef;
}

const pendingKey = "pending";

/** Where a resumed run continues: how many steps were stored, and for which table. */
export interface Checkpoint {
  readonly steps: number;
  readonly table?: TableRef;
}

/** What the conversation remembers. */
interface Remembered {
  readonly table: TableRef;
}

/** What this agent stores. Only this agent writes it, so it needs no check when it is read. */
export interface AnalystTypes {
  context: Remembered;
  checkpoint: Checkpoint;
}

export type AnalystTurn = Turn<AnalystTypes>;

export function rememberedTable(turn: AnalystTurn): TableRef | undefined {
  return turn.context.state()?.table;
}

export function rememberTable(turn: AnalystTurn, table: TableRef): void {
  turn.context.setState({ table });
}

export function checkpointOf(turn: AnalystTurn): Checkpoint {
  return turn.checkpoint ?? { steps: 0 };
}

/** The question that this turn's message answers: the open question in the agent's last message, if any. */
export function pendingOf({ task, message }: AnalystTurn): Pending | undefined {
  const history = task?.history ?? [];
  const place = history.findIndex(({ messageId, role }) => role === "ROLE_USER" && messageId === message.messageId);
  const before = place === -1 ? history : history.slice(0, place);
  const said = before.findLast(({ role }) => role === "ROLE_AGENT");
  return said?.metadata?.[pendingKey] as unknown as Pending | undefined;
}

/** The question and its choices, for programs. */
export function pendingMetadata(pending: Pending): JsonObject {
  return { [pendingKey]: pending as unknown as JsonValue };
}

/** How much history to read: a table is a large message, and may have come a long time ago. */
const wide = { limit: 1_000, bytes: 64 << 20 };

/** The part that a reference names; `undefined` if the conversation no longer has its message. */
export async function recall(turn: AnalystTurn, { messageId, part }: TableRef): Promise<Part | undefined> {
  if (turn.message.messageId === messageId) return turn.message.parts[part];
  const history = await turn.context.history(wide);
  return history.findLast((entry) => entry.role === "user" && entry.messageId === messageId)?.parts[part];
}
