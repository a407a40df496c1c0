import {
  A2AError,
  hasGenerations,
  invalidParams,
  isInterrupted,
  type Message,
  type NewRecord,
  type SendMessageConfigurationDraft,
} from "@parley/a2a/internal/model/index";
import type { TaskHead } from "../../store/index.ts";
import { messageRecord, statusRecord, type Origin } from "../log/index.ts";
import { isQueued, waitingRun } from "../run/index.ts";
import type { Send } from "./admission.ts";

/* A message for a task that exists. */

/** A message and its task, as the task was when it was read. */
export interface FollowUp {
  readonly send: Send;
  readonly head: TaskHead;
  /** The message, in the context of its task. */
  readonly message: Message;
  /** Whether it may be stored only if the task has not changed since (`ifGenerationMatch` of the 1.1 draft). */
  readonly unchanged: boolean;
  /** Whether no process has room for its turn now. */
  readonly crowded: boolean;
  /** What of the budget is taken for it. */
  readonly bytes: number;
  /** Whether a run has it, and gives these bytes back when it is over. */
  passedOn: boolean;
}

/** Whether no run works on the task, and none waits for room, a time or an event: a message begins a turn. */
export function beginsTurn(head: TaskHead): boolean {
  return head.run === undefined && waitingRun(head) === undefined && !isQueued(head);
}

/** The message, accepted again by extensions that depend on rows of its task. */
export function renewed(send: Send): Send | Promise<Send> {
  const depends = send.kept.some((effect) => effect.op !== "wake" && effect.if !== undefined);
  return depends && send.again !== undefined ? send.again() : send;
}

/** The records of a message that begins a turn. */
export function recordsOf({ send, head, message }: FollowUp, turn: number, now: number): readonly NewRecord[] {
  const { call } = send;
  const origin = originOf(head, turn, send);
  const record = messageRecord(origin, message, call, now);
  if (!isInterrupted(head.state)) return [record];
  return [statusRecord(origin, { state: "TASK_STATE_WORKING" }, "system", "", now), record];
}

/** Where the records of a message for a task belong. */
export function originOf({ task, contextId }: TaskHead, turn: number, { call }: Send): Origin {
  return { taskId: task.taskId, contextId, turn, attempt: 1, extensions: call.extensions, trace: call.trace };
}

/** The generation that the task of a message must have (§3.2.2 of the 1.1 draft). */
export function wantedGeneration({ request, call }: Send): number | undefined {
  const configuration: SendMessageConfigurationDraft | undefined = request.configuration;
  return hasGenerations(call.version) ? configuration?.ifGenerationMatch : undefined;
}

export function generationMismatch({ task: { taskId }, generation }: TaskHead, wanted: number): A2AError {
  return new A2AError("TaskGenerationMismatch", `The task is at generation ${generation}, not at ${wanted}`, {
    metadata: { taskId, expectedGeneration: String(wanted), currentGeneration: String(generation) },
  });
}

/** §3.4.3: a task keeps its context. */
export function checkContext(message: Message, head: TaskHead): void {
  if (message.contextId === undefined || message.contextId === head.contextId) return;
  throw invalidParams([{ field: "message.contextId", description: "is not the context of this task" }]);
}
