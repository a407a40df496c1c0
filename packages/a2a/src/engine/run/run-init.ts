import type { Resolver } from "../../base/index.ts";
import type { Message, NewRecord, Task } from "../../model/index.ts";
import type { ByteBudget, Principal } from "../../protocol/index.ts";
import type { OnceEffect, OnceRecord, TaskKey } from "../../store/index.ts";
import type { Conversations } from "../conversations.ts";
import type { Committer } from "../log/committer.ts";
import type { LiveLogs } from "../log/live-logs.ts";
import type { StoredCall } from "../log/records.ts";
import type { WriterStart } from "../log/writer.ts";
import type { EngineSettings, HostedAgent } from "../options.ts";

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
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "task"; readonly log: readonly NewRecord[] | undefined }
  | { readonly kind: "duplicate"; readonly once: OnceRecord };
