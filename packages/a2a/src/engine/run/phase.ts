import type { Resolver } from "../../base/index.ts";
import type { A2AError, Message, NewRecord, Task } from "../../model/index.ts";
import type { AgentEvent, ByteBudget, Principal, TurnAbortKind } from "../../protocol/index.ts";
import type { OnceEffect, OnceRecord, TaskKey } from "../../store/index.ts";
import type { ContextView } from "../context-view.ts";
import type { Conversations } from "../conversations.ts";
import type { Committer, LiveLogs, Loss, StoredCall, WriterStart } from "../log/index.ts";
import type { EngineSettings, HostedAgent } from "../options.ts";
import type { DirectReply } from "../direct-replies.ts";
import type { TurnInput } from "./turn.ts";

/** What runs need of the engine. */
export interface RunRooms {
  readonly settings: EngineSettings;
  readonly committer: Committer;
  readonly liveLogs: LiveLogs;
  readonly conversations: Conversations;
  readonly budget: ByteBudget;
}

interface AnyRunInit {
  readonly hosted: HostedAgent;
  readonly key: TaskKey;
  readonly contextId: string;
  readonly message: Message;
  readonly call: StoredCall;
  /** The caller as it came; absent: as it was stored. */
  readonly principal?: Principal;
  /** What of the budget is taken for it. */
  readonly bytes: number;
}

/** A message that makes its task, if the agent does not answer it directly. */
export interface FirstMessageInit extends AnyRunInit {
  readonly start?: undefined;
  /** Whether the context begins with this message. */
  readonly isNewContext: boolean;
  /** Remembered with the task, or with a direct reply where those are durable. */
  readonly once: OnceEffect | undefined;
  /** Where the sender of the message gets the result. */
  readonly result: Resolver<FirstResult>;
}

/** A task that is there: its next message, or a run of it that was lost. */
export interface TaskRunInit extends AnyRunInit {
  /** Where the task stands. */
  readonly start: WriterStart;
  /** As the agent gets it; absent in the turn that made it. */
  readonly task?: Task;
  /** JSON text of what the lost run had saved. */
  readonly checkpoint?: string;
}

export type RunInit = FirstMessageInit | TaskRunInit;

/** What came of a message first: a direct answer, a task (`log`: all its records, where its turn has ended), or that the same message came before. */
export type FirstResult =
  | { readonly kind: "message"; readonly reply: DirectReply }
  | { readonly kind: "task"; readonly log: readonly NewRecord[] | undefined }
  | { readonly kind: "duplicate"; readonly once: OnceRecord };

/** The turn that follows another one, and the task as it stands at its beginning. */
export interface NextTurn {
  readonly input: TurnInput;
  readonly task: Task | undefined;
}

/** What a run works on: a message that has no task yet (`FirstMessage`), or a task (`TaskRun`). */
export interface Phase {
  /** Fence under which it writes; `undefined` while there is no task. */
  readonly fence: number | undefined;
  /** Bytes of the budget that it holds. */
  readonly bytes: number;
  /** It waits for somebody outside, so that its silence is no sign of trouble. */
  readonly isInterrupted: boolean;
  /** Nothing that the agent says counts any more. */
  readonly stopped: boolean;
  /** The turn has asked its question: nothing more of it is stored. */
  readonly silenced: boolean;
  /** The agent has said something in this turn. */
  readonly hasSpoken: boolean;
  /** Why the store took no more of it. */
  readonly storeError: A2AError | undefined;

  /** Takes what the agent yielded together. A promise only where there is something to wait for. */
  accept(events: readonly AgentEvent[], context: ContextView): Promise<unknown> | undefined;
  /** While too much waits for the store. */
  room(): Promise<void> | undefined;
  /** Resolves once everything accepted so far is stored; rejects when it cannot be. */
  flush(): Promise<void>;
  /** Makes the task although the agent has said nothing yet (§3.2.2 `returnImmediately`). */
  makeTask(): void;
  /** Ends the turn. Resolves to the next one where a message waits for it. */
  endTurn(context: ContextView): Promise<NextTurn | undefined>;
  /** Ends the task as failed. `sentence` is for its user, `cause` for the operator. */
  fail(sentence: string, cause: unknown, kind: TurnAbortKind): void;
  /** Another took the task away, or this process gives it up. */
  lose(loss: Loss): void;
  /** The server stops: a resumable task is left for another process, any other fails and says why. */
  stop(): Promise<void>;
  /** Resolves once something new of the run is stored, so that the process has survived it, or the run is over. */
  proven(): Promise<void>;
  /** The process has survived the run for a while: if it crashes later, this run is no more to blame than others. */
  acquit(): void;
}

/** What a phase needs of its run. */
export interface PhaseHost {
  /** Tells the agent that nothing more of its turn counts. */
  abort(kind: TurnAbortKind, text: string, cause?: unknown): void;
  /** The message has made a task. */
  becomes(task: Phase): void;
  /** Nothing more will be written. */
  end(): void;
}

/** Sentences that a client reads. The cause is in the operator's log. */
export const safeSentences = {
  failed: "The agent failed and could not complete this task.",
  silent: "The agent gave no answer.",
  invalid: "The agent gave an invalid answer.",
  idle: "The agent gave no sign of life for too long.",
  late: "The agent did not finish in time.",
  lost: "The server was interrupted while it worked on this task, and the agent cannot resume it.",
  fatal: "The server could not work on this task: it was interrupted each time it tried to.",
  unreadable: "The server could not go on with this task.",
  gaveUp: "The agent was interrupted too often while it worked on this task.",
  full: "The task has become larger than a task may be.",
  stopped: "The server was stopped while it worked on this task.",
} as const;

/** What `turn.signal` says of a run that was lost. */
export const lossReasons: { readonly [Name in Loss]: readonly [TurnAbortKind, string] } = {
  canceled: ["canceled", "The task was canceled"],
  fenced: ["leaseLost", "Another process has taken the task over"],
  store: ["storeFailed", "The store failed"],
  shutdown: ["shutdown", "The server stops"],
};
