import type { Resolver } from "@parley/a2a/internal/base/index";
import type { JsonValue, LogRecord, Message, NewRecord, Task } from "@parley/a2a/internal/model/index";
import type { Principal } from "@parley/a2a/internal/protocol/index";
import type { ExtensionsOfTurn } from "@parley/a2a/internal/extensions/turn";
import type {
  FeatureEffect,
  OnceEffect,
  OnceRecord,
  Store,
  StoredRun,
  TaskEffect,
  TaskHead,
  TaskKey,
} from "../../store/index.ts";
import type { ContextView, Conversations, DirectReply } from "../conversations/conversations.ts";
import { callJson, type StoredCall, type WriterStart } from "../log/index.ts";
import type { HostedAgent } from "../shared/options.ts";
import type { LostRange } from "./replay.ts";
import { storedJson, type StoredJson } from "@parley/a2a/internal/base/json";
import { messageJson } from "../../store/json.ts";

/* The input of runs and turns: the message to answer, and the state of earlier attempts. */

interface AnyRunInit {
  readonly hosted: HostedAgent;
  readonly key: TaskKey;
  readonly contextId: string;
  readonly message: Message;
  readonly call: StoredCall;
  /** The caller with all of its claims; absent if only the stored part is known. */
  readonly principal?: Principal;
  /** The declared headers of the request; absent if only the stored ones are known. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly bytes: number;
}

/** A message without a task. The agent answers the message directly, or the agent's first event creates the task. */
export interface FirstMessageInit extends AnyRunInit {
  readonly start?: undefined;
  readonly isNewContext: boolean;
  /** The idempotency key, stored with the task, or with a direct reply if replies are durable. */
  readonly once: OnceEffect | undefined;
  /** The extension rows of the task. A direct reply has none. */
  readonly kept: readonly FeatureEffect[];
  readonly result: Resolver<FirstResult>;
}

/** The input for an existing task: its next message, or a lost run. */
export interface TaskRunInit extends AnyRunInit {
  readonly start: WriterStart;
  /** The task that the agent receives; absent in the turn that created it. */
  readonly task?: Task;
  /** JSON text of the checkpoint that the lost run saved last. */
  readonly checkpoint?: string;
  readonly taskState?: string;
  readonly resumes?: ResumedTurn | undefined;
}

export type RunInit = FirstMessageInit | TaskRunInit;

/** The first result of a message: a direct reply, a task, or the answer of an earlier send of the same message. */
export type FirstResult =
  | { readonly kind: "message"; readonly reply: DirectReply }
  /** `log`: all records of the task, if the commit that created it also answers its message. */
  | { readonly kind: "task"; readonly log: readonly NewRecord[] | undefined }
  | { readonly kind: "duplicate"; readonly once: OnceRecord };

/** The next turn, and the task at its start. */
export interface NextTurn {
  readonly input: TurnInput;
  readonly task: Task | undefined;
}

/** The waits of a turn that released its process. */
export interface Waiting {
  /** When the first of these waits ends, in milliseconds since the Unix epoch. `Infinity`: never. */
  readonly until: number;
  readonly events: boolean;
}

/** A stored checkpoint: the agent's value, and how many events and ids it had made. */
export interface StoredCheckpoint {
  /** The value that the agent saved. Absent: the agent has not saved a checkpoint. */
  readonly value?: JsonValue;
  readonly events: number;
  readonly ids: number;
  /** The turn's counters (`TurnBase.count`), if any. */
  readonly counts?: readonly (readonly [string, number])[];
  /** Events after the checkpoint in the log that do not count, because a later attempt did not repeat them. Absent: no such events. */
  readonly lost?: readonly LostRange[];
  /** Set if the turn had asked a question. */
  readonly asked?: true;
  /** The turn that resumes with the answer to a question of a delegation. */
  readonly suspended?: SuspendedTurn;
  /** The run of a turn that waits. The turn resumes when one of its waits is over. */
  readonly waiting?: StoredRun;
}

export const checkpointJson: StoredJson<StoredCheckpoint> = storedJson();

/** A turn that has ended with the question of a delegation, and resumes in the turn of the answer. */
export interface SuspendedTurn {
  readonly turn: number;
  readonly input: number;
  /** How many attempts the turn had, in all of its runs so far. */
  readonly attempt: number;
  /** The turn in whose run the function asked. Later than `turn` if the function has asked before. */
  readonly askedIn: number;
}

/** A turn of a task, and the message that it answers. */
export interface TurnInput {
  /** The number of the turn, from 1. */
  readonly turn: number;
  /** The number of the attempt, from 1. A later attempt resumes a lost run. */
  readonly attempt: number;
  readonly input: number;
  readonly message: Message;
  readonly call: StoredCall;
  /** The sender: with all claims if the turn starts with its request, else only the stored part. */
  readonly principal: Principal;
  /** The declared headers of the request: all if the turn starts with it, else the stored ones. `undefined`: none. */
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly checkpoint: StoredCheckpoint | undefined;
  /** The turn that resumes with `message`, which answers the question of a delegation. The agent sees this turn. */
  readonly resumes?: ResumedTurn | undefined;
  /** How many ids `makeId` has returned, including ids before the checkpoint, because a resumed run makes the same ids again. */
  ids: number;
  /** The turn's counters, including counts before the checkpoint. Created with the first count. */
  counts?: Map<string, number> | undefined;
  /** The active extensions of the turn. `undefined`: none. */
  active?: ExtensionsOfTurn;
}

export interface ResumedTurn extends SuspendedTurn {
  readonly message: Message;
  readonly call: StoredCall;
}

/** URIs of the active extensions of a turn. A turn that resumes with an answer has the extensions of its first message. */
export function activeIn(input: TurnInput): readonly string[] {
  return seenBy(input).call.extensions;
}

/** The turn that the agent sees. If a turn resumes with an answer, the agent sees the turn that asked. */
export function seenBy(input: TurnInput): TurnInput | ResumedTurn {
  return input.resumes ?? input;
}

/** The number of the attempt, counted for the turn that the agent sees. */
export function attemptOf({ attempt, resumes }: TurnInput): number {
  return attempt + (resumes?.attempt ?? 0);
}

/** The first turn of a run: turn 1 for a message that creates its task, else the stored turn. */
export function firstTurnInput(init: RunInit): TurnInput {
  const { message, call, principal = call.principal, headers = call.headers } = init;
  if (init.start === undefined) {
    return { turn: 1, attempt: 1, input: 1, message, call, principal, headers, checkpoint: undefined, ids: 0 };
  }
  const { turn, attempt, input } = init.start.run;
  const checkpoint = init.checkpoint === undefined ? undefined : withoutWait(checkpointJson.read(init.checkpoint));
  const { resumes } = init;
  const { ids = 0, counts } = checkpoint ?? {};
  const made = { ids, counts: counts && new Map(counts) };
  return { turn, attempt, input, message, call, principal, headers, checkpoint, resumes, ...made };
}

export function runEffect({ turn, attempt, input }: TurnInput): TaskEffect {
  return { effect: "run", run: { turn, attempt, input } };
}

/** The checkpoint of a turn that no longer waits. */
function withoutWait({ waiting: _, ...checkpoint }: StoredCheckpoint): StoredCheckpoint {
  return checkpoint;
}

/** The run of a waiting task, read from the task's checkpoint. `undefined`: the task does not wait, or a run works on the task. */
export function waitingRun({ run, checkpoint }: Pick<TaskHead, "run" | "checkpoint">): StoredRun | undefined {
  if (run !== undefined || checkpoint === undefined) return undefined;
  return checkpointJson.read(checkpoint).waiting;
}

/** The turn that a run's function sees: the turn that asked, if the run resumes with an answer. `checkpoint`: as JSON text. */
export function seenTurn({ turn }: StoredRun, checkpoint: string | undefined): number {
  return (checkpoint === undefined ? undefined : checkpointJson.read(checkpoint).suspended?.turn) ?? turn;
}

/**
 * Whether the turn of a run has ended with the question of a delegation. The question is stored before the end of the run. An
 * attempt between the two commits would continue the turn's other delegations, and their questions would get the same answer.
 */
export async function hasAskedForOther(
  store: Pick<Store, "head">,
  task: TaskKey,
  { turn }: StoredRun,
): Promise<boolean> {
  const checkpoint = (await store.head(task, task.taskId))?.checkpoint;
  return checkpoint !== undefined && checkpointJson.read(checkpoint).suspended?.askedIn === turn;
}

/**
 * The turn that a message resumes, if the task waited for the answer to the question of a delegation. `checkpoint`: of the task,
 * as JSON text. Rejects if the log does not have the message of that turn.
 */
export async function readResumed(
  store: Pick<Store, "read">,
  task: TaskKey,
  checkpoint: string | undefined,
): Promise<ResumedTurn | undefined> {
  if (checkpoint === undefined) return undefined;
  const { suspended } = checkpointJson.read(checkpoint);
  if (suspended === undefined) return undefined;
  const page = await store.read(task, task.taskId, { after: suspended.input - 1, limit: 1 });
  const record = page?.records[0];
  if (record?.call === undefined) throw new Error("The log lacks the message of the turn");
  return { ...suspended, message: messageOf(record), call: callJson.read(record.call) };
}

/** The turn of a queued message. It resumes an earlier turn if that turn is `suspended`. */
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

async function resumedInput(store: Pick<Store, "read" | "head">, task: TaskKey, input: TurnInput): Promise<TurnInput> {
  // Pages of the log do not include the checkpoint.
  const checkpoint = (await store.head(task, task.taskId))?.checkpoint;
  const resumes = await readResumed(store, task, checkpoint);
  if (resumes === undefined || checkpoint === undefined) return input;
  const stored = checkpointJson.read(checkpoint);
  const { ids, counts } = stored;
  return { ...input, resumes, checkpoint: stored, ids, counts: counts && new Map(counts) };
}

/** The user's message in a record: of kind `message`, or `task`, whose history begins with it. */
export function messageOf({ kind, json }: Pick<LogRecord, "kind" | "json">): Message {
  if (kind !== "task") return messageJson.read(json);
  const [message] = newTaskJson.read(json).history;
  return message;
}

/** Reads the JSON of records of kind `task`. */
const newTaskJson = storedJson<{ readonly history: readonly [Message, ...Message[]] }>();

/** The turn of a message that waited in the log, in its first attempt. */
function nextTurnInput({ seq, json, call: stored }: LogRecord, turn: number): TurnInput {
  if (stored === undefined) throw new Error("The log lacks the call of a message");
  const call = callJson.read(stored);
  const message = messageJson.read(json);
  const { principal, headers } = call;
  return { turn, attempt: 1, input: seq, message, call, principal, headers, checkpoint: undefined, ids: 0 };
}

/** The conversation of a turn. `isNew`: whether the conversation starts with the turn's message. */
export function contextOf(
  conversations: Conversations,
  { agent, owner, taskId }: TaskKey,
  contextId: string,
  input: TurnInput,
  isNew: boolean,
): ContextView | Promise<ContextView> {
  const { turn, input: seq, message } = seenBy(input);
  const key = { agent, owner, contextId };
  const asking = { taskId, turn, seq, message };
  return isNew ? conversations.begin(key, asking) : conversations.open(key, asking);
}
