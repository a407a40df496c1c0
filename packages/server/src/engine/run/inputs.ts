import type { LogRecord, Message } from "@parley/a2a/internal/model/index";
import type { Store, StoredRun, TaskEffect, TaskHead, TaskKey } from "../../store/index.ts";
import type { ContextView, Conversations } from "../conversations/conversations.ts";
import type { StoredCall } from "../log/index.ts";
import type { NextTurn, RunInit } from "./phase.ts";
import type { ResumedTurn, StoredCheckpoint, TurnInput } from "./turn-input.ts";

/* What turns begin with: the first turn of a run, that of a message that waited, and those that go on with an earlier one. And their conversation. */

/** The turn that a run begins with: turn 1 for a message that makes its task, else the turn that is stored. */
export function firstTurnInput(init: RunInit): TurnInput {
  const { message, call, principal = call.principal, headers = call.headers } = init;
  if (init.start === undefined) {
    return { turn: 1, attempt: 1, input: 1, message, call, principal, headers, checkpoint: undefined, ids: 0 };
  }
  const { turn, attempt, input } = init.start.run;
  const checkpoint =
    init.checkpoint === undefined ? undefined : goingOn(JSON.parse(init.checkpoint) as StoredCheckpoint);
  const { resumes } = init;
  const { ids = 0, counts } = checkpoint ?? {};
  const made = { ids, counts: counts && new Map(counts) };
  return { turn, attempt, input, message, call, principal, headers, checkpoint, resumes, ...made };
}

/** Stores which turn a run is at. */
export function runEffect({ turn, attempt, input }: TurnInput): TaskEffect {
  return { effect: "run", run: { turn, attempt, input } };
}

/** The checkpoint of a turn that does not wait any more. */
function goingOn({ waiting: _, ...checkpoint }: StoredCheckpoint): StoredCheckpoint {
  return checkpoint;
}

/** The run of a task that waits, by its checkpoint as JSON text. `undefined`: it does not wait, or a run works on it. */
export function waitingRun({ run, checkpoint }: Pick<TaskHead, "run" | "checkpoint">): StoredRun | undefined {
  if (run !== undefined || checkpoint === undefined) return undefined;
  return (JSON.parse(checkpoint) as StoredCheckpoint).waiting;
}

/** Which turn the function of a run sees, by the checkpoint as JSON text: one that goes on with an answer sees the turn that asked. */
export function seenTurn({ turn }: StoredRun, checkpoint: string | undefined): number {
  return (checkpoint === undefined ? undefined : (JSON.parse(checkpoint) as StoredCheckpoint).suspended?.turn) ?? turn;
}

/**
 * Whether the turn of a run is over by the question of a delegation. The question is stored before the end of the run. An attempt in between
 * would follow the other delegations of the turn, whose questions would get the same answer.
 */
export async function hasAskedForOther(
  store: Pick<Store, "head">,
  task: TaskKey,
  { turn }: StoredRun,
): Promise<boolean> {
  const checkpoint = (await store.head(task, task.taskId))?.checkpoint;
  return checkpoint !== undefined && (JSON.parse(checkpoint) as StoredCheckpoint).suspended?.askedIn === turn;
}

/**
 * The turn that a message goes on with, where the task waited for the answer to the question of a delegation. `checkpoint`: of the task,
 * as JSON text. Rejects where the log does not have the message of that turn.
 */
export async function readResumed(
  store: Pick<Store, "read">,
  task: TaskKey,
  checkpoint: string | undefined,
): Promise<ResumedTurn | undefined> {
  if (checkpoint === undefined) return undefined;
  const { suspended } = JSON.parse(checkpoint) as StoredCheckpoint;
  if (suspended === undefined) return undefined;
  const page = await store.read(task, task.taskId, { after: suspended.input - 1, limit: 1 });
  const record = page?.records[0];
  if (record?.call === undefined) throw new Error("The message of the turn is not in the log");
  return {
    ...suspended,
    message: messageOf(record.kind, record.json),
    call: JSON.parse(record.call) as StoredCall,
  };
}

/** The turn of a message that waited, which goes on with an earlier one where that is `suspended`. */
export async function readNextTurn(
  store: Pick<Store, "read" | "head" | "load">,
  key: TaskKey,
  message: LogRecord,
  turn: number,
  suspended: boolean,
): Promise<NextTurn> {
  const task = (await store.load(key, key.taskId, { artifacts: true }))?.task;
  const first = nextTurnInput(message, turn);
  const input = suspended ? await resumedInput(store, key, first) : first;
  return { input, task: input.resumes?.turn === 1 ? undefined : task };
}

/** The turn of a message that goes on with an earlier one. */
async function resumedInput(store: Pick<Store, "read" | "head">, task: TaskKey, input: TurnInput): Promise<TurnInput> {
  // A page of the log does not have it.
  const checkpoint = (await store.head(task, task.taskId))?.checkpoint;
  const resumes = await readResumed(store, task, checkpoint);
  if (resumes === undefined) return input;
  const stored = JSON.parse(checkpoint as string) as StoredCheckpoint;
  const { ids, counts } = stored;
  return { ...input, resumes, checkpoint: stored, ids, counts: counts && new Map(counts) };
}

/** The user's message in a record: of kind `message`, or `task`, whose history begins with it. */
export function messageOf(kind: string, json: string): Message {
  const event = JSON.parse(json) as { history?: readonly Message[] } | Message;
  return kind === "task" ? ((event as { history: readonly Message[] }).history[0] as Message) : (event as Message);
}

/** The first attempt at a message that waited in the log. */
function nextTurnInput({ seq, json, call: stored }: LogRecord, turn: number): TurnInput {
  const call = JSON.parse(stored ?? "null") as StoredCall;
  const message = JSON.parse(json) as Message;
  const { principal, headers } = call;
  return { turn, attempt: 1, input: seq, message, call, principal, headers, checkpoint: undefined, ids: 0 };
}

/** The conversation of a turn. `isNew`: it begins with the message of the turn. */
export function contextOf(
  conversations: Conversations,
  { agent, owner, taskId }: TaskKey,
  contextId: string,
  input: TurnInput,
  isNew: boolean,
): ContextView | Promise<ContextView> {
  const { turn, input: seq, message } = input.resumes ?? input;
  const key = { agent, owner, contextId };
  const asking = { taskId, turn, seq, message };
  return isNew ? conversations.begin(key, asking) : conversations.open(key, asking);
}
