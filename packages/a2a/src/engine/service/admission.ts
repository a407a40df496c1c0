import type { Message, NewRecord, SendMessageRequest } from "../../model/index.ts";
import type { ByteBudget, Principal } from "../../protocol/index.ts";
import type { OnceEffect, Owner, TaskHead, TaskKey } from "../../store/index.ts";
import type { Committer, LiveLogs, Origin, StoredCall } from "../log/index.ts";
import type { EngineSettings } from "../options.ts";
import type { Runs } from "../supervise/runs.ts";
import type { CheckedAgent } from "./checks.ts";

/** The rooms of the engine that taking a message in needs. */
export interface SendRooms {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly liveLogs: LiveLogs;
  /** What messages and runs of this process may hold. */
  readonly budget: ByteBudget;
  readonly runs: Pick<Runs, "start">;
}

/** A message under the key that tells it from others, until it is known what became of it. */
export interface Attempt {
  /** What is stored with its task or its answer, so that a later retry is recognized. */
  readonly once: OnceEffect;
  /** The key with its owner. */
  readonly name: string;
  /** What a retry that comes meanwhile joins. Absent until the message is taken in. */
  admission: Admission | Promise<Admission> | undefined;
}

/** A message on its way in, checked. */
export interface Send {
  readonly hosted: CheckedAgent;
  readonly owner: Owner;
  readonly request: SendMessageRequest;
  readonly call: StoredCall;
  readonly principal: Principal;
  /** Tells a retry of it from another message; absent where deduplication is off. */
  readonly attempt: Attempt | undefined;
}

/** What became of a message: it was answered, or it stands in the log of a task. */
export type Accepted =
  | { readonly kind: "message"; readonly message: Message }
  | {
      readonly kind: "task";
      readonly task: TaskKey;
      readonly contextId: string;
      /** `seq` of the message. */
      readonly input: number;
      /** All records of a task that was made and ended in one commit: its answer, without reading the store. */
      readonly log: readonly NewRecord[] | undefined;
      /** Whether this message made the task, just now: its log from the first record on is news to the caller. */
      readonly made: boolean;
    };

/**
 * A message that nothing refuses any more. `answer` resolves when the message is safe: answered, or stored. It is boxed, so
 * that waiting for the admission is not waiting for the answer.
 */
export interface Admission {
  readonly answer: Promise<Accepted>;
}

/** The admission of a message whose answer is known. */
export function answered(accepted: Accepted): Admission {
  return { answer: Promise.resolve(accepted) };
}

/** A message that stands at `input` in the log of a task which was there before it. */
export function joined({ task, contextId }: TaskHead, input: number): Accepted {
  return { kind: "task", task, contextId, input, log: undefined, made: false };
}

/** Where the records of a message for a task belong. */
export function originOf({ task, contextId }: TaskHead, turn: number, call: StoredCall): Origin {
  return { taskId: task.taskId, contextId, turn, attempt: 1, extensions: call.extensions, trace: call.trace };
}

/**
 * The message with its context. `Object.assign` and no `{ ...message, contextId }`: on Node 20 a literal that spreads first
 * and adds members after costs eight times as much, and row `message` half as much again (docs/decisions/hot-path.md).
 */
export function inContext(message: Message, contextId: string): Message {
  return Object.assign({}, message, { contextId });
}
