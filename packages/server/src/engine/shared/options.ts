import type { Clock, Ids, Logger } from "@parley/a2a/internal/base/index";
import type { AgentCard } from "@parley/a2a/internal/model/index";
import type { Agent, Interceptor, AnyExtension, Audit, Observer, Principal } from "@parley/a2a/internal/protocol/index";
import type { LazyBlobs } from "../../blobs/lazy.ts";
import type { BlobDeps } from "../../blobs/port.ts";
import type { InTaskSettings } from "../../intask/index.ts";
import type { Outbox, OutboxHost, PushSettings } from "../../push/index.ts";
import type { Store } from "../../store/index.ts";

/** An agent with the id that its tasks are stored under. */
export interface HostedAgent {
  /** Key of everything that is stored for this agent. Keep it when the agent moves to another path. */
  readonly id: string;
  /** The agent. */
  readonly agent: Agent;
  /** The card as it is served. Operations that it does not declare fail (A2A 1.0 §3.3.4). */
  readonly card: AgentCard;
  /** Authorizes callers before the methods of extensions. Default: no checks. */
  readonly guard?: Interceptor;
  /** Returns the card for authenticated callers (§3.1.11). Absent: none is configured. */
  readonly extendedCard?: (principal: Principal) => AgentCard | Promise<AgentCard>;
}

/** How repeated messages are recognized: by `messageId` and content (A2A 1.0 §3.3.1). */
export interface DedupeOptions {
  /** How long a messageId is remembered, in milliseconds. Default: as long as its task, and 10 minutes for direct replies. */
  readonly window?: number;
  /**
   * Rejects other content with a used messageId, or accepts it as a new message, for clients that number their messages
   * from 1. Default `accept`.
   */
  readonly onConflict?: "refuse" | "accept";
  /** How many direct replies are remembered in memory. Default 10,000. */
  readonly replies?: number;
  /** How many bytes they may take. A reply that takes more than half of it is not remembered. Default 16 MiB. */
  readonly replyBytes?: number;
}

/** How long tasks are kept after their last status, in milliseconds. Servers that share a store have the same times. */
export interface RetentionOptions {
  /** Terminal tasks, and conversations without a task, are deleted after this time. Default 30 days. */
  readonly terminal?: number | false;
  /** Completed tasks. Default: `terminal`. */
  readonly completed?: number | false;
  /** Failed tasks. Default: `terminal`. */
  readonly failed?: number | false;
  /** Canceled tasks. Default: `terminal`. */
  readonly canceled?: number | false;
  /** Rejected tasks. Default: `terminal`. */
  readonly rejected?: number | false;
  /** Tasks that ask the user, and get no answer, are canceled after this time. Default: never. */
  readonly inputRequired?: number | false;
  /** Tasks that wait for an authorization, and get none, are canceled after this time. Default: never. */
  readonly authRequired?: number | false;
  /**
   * Other times for the tasks of some agents, and so for those of a tenant, by the `id` of their mount. Such an agent has its own `terminal`
   * before the times of states above. Default: none.
   */
  readonly agents?: Readonly<Record<string, Omit<RetentionOptions, "agents" | "replay" | "interval">>>;
  /**
   * The logs of terminal tasks are compacted after so many milliseconds. Until then a stream can be resumed anywhere in
   * them. `false`: never. Default 1 hour.
   */
  readonly replay?: number | false;
  /** How often tasks are deleted and compacted, in milliseconds. Default 1 minute. */
  readonly interval?: number;
}

/** The times of an agent. */
export type TaskTimes = NonNullable<RetentionOptions["agents"]>[string];

/** How processes that share a store divide the tasks. A process holds a lease on each task that it runs. */
export interface LeaseOptions {
  /**
   * How long a process may give no sign of life before others take its tasks over, in milliseconds. It must be the same for all processes
   * that share a store. A task whose agent cannot resume it fails after four times that, if the store counts processes. Default 2.6 s
   * where it does, as on PostgreSQL, and 30 s where each lease is renewed.
   */
  readonly ttl?: number;
  /** How often in a row a run may be lost without having stored anything, before its task is suspended. Default 10. */
  readonly maxAttempts?: number;
  /**
   * A task is suspended after so many crashes of the process just after the task was started, the last of which it was alone. No process takes
   * a suspended task over until `parley ops resume` resumes it. Tasks that were lost once are resumed a few at a time, so that in the end one
   * of them is alone with its crash. Default 2.
   */
  readonly maxDeaths?: number;
  /** The name of this process in its leases. Default: a random name. */
  readonly holder?: string;
  /** Whether a holder is known to be dead, so that its tasks are taken over before their leases expire. Default: none is; `serve()` knows those of ended processes of this machine. */
  readonly isGone?: (holder: string) => boolean;
  /**
   * Whether a holder was killed from outside (SIGKILL), so that its tasks did not crash it. Such a death does not count for `maxDeaths`, only for
   * `maxAttempts`. Default: of none that is known; `serve()` with `processes` knows how its processes died.
   */
  readonly wasKilled?: (holder: string) => boolean;
}

/** Limits that keep one task, or one owner, from using up what others need. */
export interface EngineLimits {
  /** How many events of one turn may wait for their commit. Default 256. */
  readonly pendingEvents?: number;
  /** The same in bytes of JSON. Default 4 MiB. */
  readonly pendingBytes?: number;
  /** How many of its newest records a running task keeps in memory for its readers. Default 256. */
  readonly liveRecords?: number;
  /** The same in bytes of JSON. Default 1 MiB. */
  readonly liveBytes?: number;
  /** Largest event of an agent, in bytes of JSON. Default 16 MiB. */
  readonly eventBytes?: number;
  /** Largest checkpoint, and largest state of a task and of a context, in bytes of JSON. Default 4 MiB. */
  readonly stateBytes?: number;
  /**
   * Largest task: its messages, artifacts and statuses together, in bytes of JSON. A message beyond it is rejected. An
   * event beyond it fails the task. Default 32 MiB.
   */
  readonly taskBytes?: number;
  /**
   * How much this process may hold at one time of the tasks that it runs and the messages that they answer, in bytes of
   * JSON. One owner gets half of it at most. A message that does not fit waits for ten seconds and is then refused as
   * `Unavailable`. Lost tasks wait until they fit. Messages below 64 KiB are accepted until the limit is exceeded by half.
   * Default 256 MiB.
   */
  readonly totalBytes?: number;
  /** Largest page of a list, in bytes of JSON. A larger task gets a page to itself. Default 8 MiB. */
  readonly pageBytes?: number;
  /** Maximum parts of a message. A message with more is rejected. Default 10,000. */
  readonly messageParts?: number;
  /**
   * Largest metadata of a request with a message, those of the message and its parts among them: their names and texts, and 16 bytes
   * for each value. A message with more is rejected. Default 1 MiB.
   */
  readonly metadataBytes?: number;
  /**
   * Maximum tasks of one owner that agents work on at a time in this process, including messages that are not a task yet. A message that would
   * start another one fails (`TooManyRequests`). A task that waits for its caller does not count. Default: no limit.
   */
  readonly tasksPerCaller?: number;
  /**
   * Most runs of this process at a time. A message that would begin another one makes its task as `TASK_STATE_SUBMITTED`, and a message to a
   * task that waits for it puts that back to it. Such tasks wait in the store, in order for each owner and with the owners in turn, and any
   * process with room begins the next. A run that only waits, for another agent or an authorization, does not count. Default 1,000.
   */
  readonly runs?: number;
  /**
   * Maximum submitted tasks of one owner that wait for a process with room, in all processes that share the store. A message that would
   * create another one fails (`TooManyRequests`). Default 10,000.
   */
  readonly queuedPerCaller?: number;
  /**
   * How long a promise of an extension's hook may take, in milliseconds. Beyond it the hook has failed, and what it gives later is dropped.
   * Default 30 s.
   */
  readonly hookTimeout?: number;
}

/** Options of an engine. */
export interface EngineOptions {
  /** Where tasks and conversations are stored. */
  readonly store: Store;
  /** Protocol extensions that all agents of this server have in addition to their own. Default: none. */
  readonly extensions?: readonly AnyExtension[];
  /** The agents. */
  readonly agents: readonly HostedAgent[];
  /** Is told what happens, for metrics and traces. Default: none. */
  readonly observer?: Observer;
  /** Receives what an operator may have to look up later. `auditLog(logger)` writes it to a log. Default: no audit. */
  readonly audit?: Audit;
  /** Gets the log lines, those of refused requests included: one a minute at most, with counts. Default: none is written. */
  readonly logger?: Logger;
  /** Time. Default: that of the runtime. */
  readonly clock?: Clock;
  /** Makes the ids of tasks, contexts and messages. Default: time-ordered UUIDs (version 7). */
  readonly ids?: Ids;
  /**
   * Returns the owner of what a caller creates: who sees its tasks, contexts and webhooks. `byOrganization` shares them within an
   * organization. If it returns no text, or an empty one, the call fails. Default: organization and subject together.
   */
  readonly ownerOf?: (principal: Principal) => string;
  /** How repeated messages are recognized. `false`: not at all. */
  readonly dedupe?: DedupeOptions | false;
  /** How long finished tasks are kept. */
  readonly retention?: RetentionOptions;
  /** How processes that share a store divide the tasks. */
  readonly lease?: LeaseOptions;
  /** Limits in bytes and counts. */
  readonly limits?: EngineLimits;
  /**
   * How long a send with `returnImmediately` waits for the first event of an agent that may reply directly, before it
   * makes the task and answers with it. Milliseconds, default 500.
   */
  readonly directReplyWithin?: number;
  /**
   * How long a `GetTask` of the 1.1 draft waits for a generation beyond its `currentGeneration`, before it answers with
   * the task as it stands. Milliseconds, default 30 s.
   */
  readonly longPoll?: number;
  /**
   * Where direct replies are kept with the messages that they answer, for `turn.context.history()`: in memory (32 MiB at
   * most), or in the store. Default: the store where it is durable.
   */
  readonly conversations?: "memory" | "store";
  /** How webhooks are delivered. Absent: none, and cards must not declare them. */
  readonly push?: PushSettings;
  /** Makes what delivers webhooks. Absent: nothing does. */
  readonly outbox?: (host: OutboxHost) => Outbox;
  /** How agents get authorizations for their tasks (A2A 1.0 §7.6). Absent: `turn.authorize()` fails. */
  readonly inTask?: InTaskSettings;
  /** Makes what keeps large files outside of the store. Absent: every file is in it. */
  readonly files?: (rooms: BlobDeps) => LazyBlobs;
  /**
   * Whether adjacent text parts of an artifact are one part where a task is read: those of the same media type that have no file name and no
   * metadata. Many clients show each part on a separate line, and a model's stream has a part per token. Events of a stream
   * always have the parts as the agent yielded them. Default true.
   */
  readonly mergeTextParts?: boolean;
  /** How often readers look for records of other processes, if the store cannot be watched. Milliseconds, default 1 s. */
  readonly pollInterval?: number;
}
