import type { Logger } from "@parley/a2a/internal/base/index";
import type { A2AError } from "@parley/a2a/internal/model/index";
import type { AgentEvent, ByteBudget, MessageRefused, TurnAbortKind } from "@parley/a2a/internal/protocol/index";
import type { FeatureEffect, StoredRun, TaskKey, TaskStateEffect } from "../../store/index.ts";
import type { Conversations, ContextView } from "../conversations/conversations.ts";
import type { Committer, LiveLogs, Loss, WriterInit } from "../log/index.ts";
import type { RunSettings } from "../shared/settings.ts";
import type { RunFiles } from "./run-files.ts";
import type { NextTurn, TurnInput, Waiting } from "./turn-input.ts";

type NextRun = Pick<StoredRun, "turn" | "input">;

/** Engine dependencies of a run. */
export interface RunDeps {
  readonly settings: RunSettings;
  readonly committer: Committer;
  readonly liveLogs: LiveLogs;
  readonly conversations: Conversations;
  readonly budget: ByteBudget;
  /** Called when a run only waits, so that others may start. */
  readonly onRest?: () => void;
  /** Queues the next turn of a task whose agent is paused, or whose node drains. `undefined`: the turn may begin here. */
  readonly queue?: (
    task: TaskKey,
    run: NextRun,
    store: (row: FeatureEffect) => Promise<void>,
  ) => Promise<void> | undefined;
}

/** The object that a run writes to: a message without a task (`FirstMessage`), or a task (`TaskRun`). */
export interface Phase {
  /** The fence of the task's lease. `undefined`: the task is not stored yet. */
  readonly fence: number | undefined;
  /** Whether the task waits for its user or for an authorization, so that a silent agent is normal. */
  readonly isInterrupted: boolean;
  /** Whether the turn has ended with the question of a delegation, and resumes with the answer. */
  readonly suspends: boolean;
  /** The waits of a turn that ends its run to wait. The turn resumes later, in any process. */
  readonly waits: Waiting | undefined;
  /** Whether the agent's further events are dropped. */
  readonly stopped: boolean;

  /** Takes events that the agent yielded together. Returns whether the turn continues, as a promise only if this takes time. */
  accept(events: readonly AgentEvent[], context: ContextView): boolean | Promise<boolean>;
  /** Resolves once everything accepted so far is stored. Rejects if it cannot be stored. */
  flush(): Promise<void>;
  /** Stores rows with the task, which must exist. Rejects if they cannot be stored. */
  keep(effects: readonly FeatureEffect[]): Promise<void>;
  /**
   * Notes whether the turn only waits for an authorization or another agent. A stopping server then releases the task to another process.
   * `clearsSuspicion`: reaching this point proves that the run did not cause the crash of the previous run.
   */
  rest(resting: boolean, clearsSuspicion: boolean): void;
  readonly resting: boolean;
  /** Creates the task before the agent's first event (A2A 1.0 §3.2.2 `returnImmediately`). */
  makeTask(): void;
  /** Ends the turn. Resolves to the next turn, if a message waits for one. A turn without any event fails the task. */
  endTurn(context: ContextView): Promise<NextTurn | undefined>;
  /** Called when the agent cannot use the message. `true`: the turn is over. `false`: the task must ask for a valid message. */
  refuse(refusal: MessageRefused): boolean;
  /** Fails the task. `sentence`: for the user of the task. `cause`: for the operator. */
  fail(sentence: string, cause: unknown, kind: TurnAbortKind): void;
  /** Ends the run without writing: the task was canceled or taken over, its message was given up, or the store failed. `cause`: for the log. */
  lose(loss: Loss, cause?: unknown): void;
  /** Called when the server stops. Releases a resumable task to another process, and fails any other task with the reason. */
  stop(): Promise<void>;
  /** Resolves once the run has ended or stored something new, which proves that the process survives it. */
  proven(): Promise<void>;
  /** The run has not crashed the process for a while, so neither earlier nor later crashes count as crashes at its start. */
  clearCrashSuspicion(): void;
  /** Called when the server stops. If it is killed before the run ends, this does not count as a crash of the run. */
  excuse(): void;
  /** Called when another run began during this run's solo trial: a crash then no longer proves that this run caused it. Resolves once stored. */
  joined(): Promise<void>;
}

export interface PhaseHost {
  readonly logger: Logger;
  takeState(): TaskStateEffect | undefined;
  abort(kind: TurnAbortKind, text: string, cause?: unknown): void;
  /** Called when the message has created a task. */
  becomes(task: Phase): void;
  /** The rows of the files that no earlier record refers to. Absent: every file is in the store. */
  readonly files: WriterInit["files"];
  /** The large files of the run. Absent: every file is in the store. */
  readonly outside: RunFiles | undefined;
  readonly inStep: boolean;
  hold(bytes: number): void;
  /** Called when no more writes will follow. `loss`: why, if the turn has not ended. `storeError`: the error to throw at the agent's `yield`. */
  end(loss?: Loss, storeError?: A2AError): void;
}

/** A running turn, as seen by the code that stores its delegations, steps and waits. */
export interface KeepingTurn {
  readonly settings: RunSettings;
  readonly logger: Logger;
  readonly task: TaskKey;
  /** The number of the turn that the function sees, from 1. */
  readonly number: number;
  readonly input: TurnInput;
  readonly phase: () => Phase;
  /** Registers a function that cancels another agent's task. */
  readonly onCancel: (cancel: () => void) => void;
  readonly onProgress: () => void;
  readonly onBytes: (bytes: number) => void;
}

/** Messages of failed tasks, for clients. The cause is in the operator's log. */
export const safeSentences = {
  failed: "The agent failed and could not complete this task.",
  silent: "The agent gave no answer.",
  invalid: "The agent gave an invalid answer.",
  idle: "The agent gave no sign of life for too long.",
  late: "The agent did not finish in time.",
  lost: "The server was interrupted while it worked on this task, and the agent cannot resume it.",
  unreadable: "The server could not continue with this task.",
  full: "The task has become larger than a task may be.",
  stopped: "The server was stopped while it worked on this task.",
  denied: "The authorization was refused.",
  expired: "The authorization was not given in time.",
  unanswered: "The task was canceled because no answer arrived in time.",
} as const;

/** The log text for a turn without events. */
export const noEvent =
  "The agent's turn ended without an event: return turn.reply(…), or yield an event; turn.completed() ends a task without a word";

/** Abort reasons of `turn.signal` for lost runs. */
export const lossReasons: { readonly [Name in Loss]: readonly [TurnAbortKind, string] } = {
  canceled: ["canceled", "The task was canceled"],
  fenced: ["leaseLost", "Another process has taken over the task"],
  cutOff: ["leaseLost", "The database did not answer within the lease; another process may have taken over the task"],
  store: ["storeFailed", "The store failed"],
  shutdown: ["shutdown", "The server is stopping"],
};
