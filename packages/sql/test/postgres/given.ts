import type { NewRecord } from "@parley/a2a/internal/model/index";
import type { AppendOutcome, TaskAppend, TaskKey } from "@parley/server/store";

/** Items for tests of the PostgreSQL store. */

export const alice = { agent: "agent", owner: "alice" } as const;

const record = { time: 1000, actor: "agent", turn: 1, attempt: 1 } as const;

export function keyOf(taskId: string): TaskKey {
  return { ...alice, taskId };
}

/** Creates a task. */
export function making(taskId: string, contextId = "c", time = 1000): TaskAppend {
  const state = "TASK_STATE_WORKING";
  const message = { messageId: `${taskId}-m`, role: "ROLE_USER", parts: [{ text: "hello" }] };
  const json = JSON.stringify({ id: taskId, contextId, status: { state }, history: [message] });
  const first: NewRecord = { ...record, time, kind: "task", state, json };
  return { task: keyOf(taskId), create: { contextId }, records: [first] };
}

/** A chunk of an artifact. */
export function chunk(taskId: string, text: string, append = true): NewRecord {
  const artifact = { artifactId: "a", parts: [{ text }] };
  const json = JSON.stringify({ taskId, contextId: "c", artifact, ...(append && { append }) });
  return { ...record, kind: "artifactUpdate", json };
}

/** The end of a task. */
export function done(taskId: string, time = 1000): NewRecord {
  const state = "TASK_STATE_COMPLETED";
  const json = JSON.stringify({ taskId, contextId: "c", status: { state } });
  return { ...record, time, kind: "statusUpdate", state, json };
}

/** `ok`, or the reason why an item was rejected. */
export function verdicts(outcomes: readonly AppendOutcome[]): readonly string[] {
  return outcomes.map((outcome) => (outcome.ok ? "ok" : outcome.reason));
}
