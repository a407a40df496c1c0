import { A2AError, isInterrupted, isTerminal, type LogRecord } from "../../model/index.ts";
import { LogReader, type Position } from "./reader.ts";

/**
 * Whether a record answers the message at `input`, so that a send which waits for it returns (A2A 1.0 §3.2.2). A terminal
 * state always does. An interrupted one only when it belongs to the turn of that message: the turn before it may ask
 * something while the message waits for its own.
 */
export async function answers(
  record: LogRecord,
  input: number,
  { liveLogs, store, scope, task }: Position,
): Promise<boolean> {
  if (record.state === undefined) return false;
  if (isTerminal(record.state)) return true;
  if (!isInterrupted(record.state)) return false;
  const head = liveLogs.find(task.taskId)?.head ?? (await store.head(scope, task.taskId));
  // No run: every message had its turn, and the task waits for the next one.
  return head?.run === undefined || (head.run.input >= input && head.run.turn === record.turn);
}

/** Waits until the message at `input` has been answered: the task waits for its user, or is over. */
export async function waitForAnswer(from: Position, input: number, signal: AbortSignal | undefined): Promise<void> {
  const reader = new LogReader(from);
  const close = (): void => reader.close();
  signal?.addEventListener("abort", close, { once: true });
  try {
    for (;;) {
      if (signal?.aborted === true) throw new A2AError("Aborted", "The caller is gone");
      const records = (await reader.read()) ?? [];
      for (const record of records) if (await answers(record, input, from)) return;
    }
  } finally {
    signal?.removeEventListener("abort", close);
    reader.close();
  }
}
