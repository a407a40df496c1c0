import type { LogRecord, Message } from "../../model/index.ts";
import { defaultPageBytes, type LogPage, type Store, type TaskHead, type TaskKey } from "../../store/index.ts";
import type { StoredCall } from "../log/records.ts";
import type { TurnInput } from "./turn.ts";

/** What the log of a task has after the message of the last turn. */
interface NextMessage {
  readonly head: TaskHead;
  /** The oldest message that waits for a turn, if one does. */
  readonly message: LogRecord | undefined;
  /** Whether another one waits after it. */
  readonly more: boolean;
}

/** Reads the log after `seq`, the message of the last turn. */
export async function readNextMessage(store: Store, task: TaskKey, seq: number): Promise<NextMessage> {
  const page = await store.read(task, task.taskId, { after: seq, limit: 2, kinds: ["message"] });
  if (page === undefined) throw new Error(`Task ${task.taskId} is gone from the store`);
  const [message, second] = page.records;
  if (message === undefined) return { head: page.head, message, more: false };
  const more = second !== undefined || (await hasMessageAfter(store, task, message, page));
  return { head: page.head, message, more };
}

/** Of two long messages a page has the first alone. */
async function hasMessageAfter(store: Store, task: TaskKey, { seq }: LogRecord, { head }: LogPage): Promise<boolean> {
  if (head.seq === seq || head.bytes <= defaultPageBytes) return false;
  const page = await store.read(task, task.taskId, { after: seq, limit: 1, kinds: ["message"] });
  return page !== undefined && page.records.length > 0;
}

/** The turn of a message that waited in the log. */
export function inputOf({ seq, json, call: stored }: LogRecord, turn: number): TurnInput {
  const call = JSON.parse(stored ?? "null") as StoredCall;
  const message = JSON.parse(json) as Message;
  return { turn, attempt: 1, input: seq, message, call, principal: call.principal, checkpoint: undefined, ids: 0 };
}
