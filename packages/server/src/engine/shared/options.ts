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
  /** Key of all data of this agent in the store. Keep it when the agent moves to another path. */
  readonly id: string;
  /** The agent. */
  readonly agent: Agent;
  /** The card that the server publishes. Operations that it does not declare fail (A2A 1.0 §3.3.4). */
  readonly card: AgentCard;
  /** Authorizes callers before the methods of extensions. Default: no checks. */
  readonly guard?: Interceptor;
  /** Returns the card for authenticated callers (A2A 1.0 §3.1.11). Absent: no extended card. */
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
  /** Maximum bytes of remembered replies. A reply above half of it is not remembered. Default 16 MiB. */
  readonly replyBytes?: number;
}

/** How long tasks are kept after their last status, in milliseconds. Must be equal on all servers that share a store. */
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
   * Other times for the tasks of some agents (or of a tenant), by the `id` of their mount. The `terminal` of such an agent
   * takes precedence over the times of states above. Default: none.
   */
  readonly agents?: Readonly<Record<string, Omit<RetentionOptions, "agents" | "replay" | "interval">>>;
  /**
   * When the logs of terminal tasks are compacted, in milliseconds. Before this, a stream can be resumed at any position.
   * `false`: never. Default 1 hour.
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
   * How long a process may be silent before others take over its tasks, in milliseconds. Must be equal for all processes
   * that share a store. If the store counts processes, as PostgreSQL does, a task that cannot be resumed fails after four times this.
   * Default 2.6 s if the store counts processes, else 30 s.
   */
  readonly ttl?: number;
  /** How often in a row a run may be lost without a new record before its task is suspended. Default 10. */
  readonly maxAttempts?: number;
  /**
   * Maximum crashes of a process shortly after it started a task. The task is then suspended, if it was the only task started
   * before the last crash. No process takes a suspended task over until `parley ops resume` resumes it. Tasks of a crashed
   * process are resumed a few at a time, to find the one that crashes. Default 2.
   */
  readonly maxDeaths?: number;
  /** The name of this process in its leases. Default: a random name. */
  readonly holder?: string;
  /** Whether a holder is known to be dead, so that its tasks are taken over before their leases expire. Default: no holder; `serve()` knows ended processes of this machine. */
  readonly isGone?: (holder: string) => boolean;
  /**
   * Whether a holder was killed from outside (SIGKILL), and not by one of its tasks. This counts only for `maxAttempts`, not
   * for `maxDeaths`. Default: always false; `serve()` with `processes` knows how its processes died.
   */
  readonly wasKilled?: (holder: string) => boolean;
}

/** Limits that keep one task or owner from exhausting shared resources. */
export interface EngineLimits {
  /** How many events of one turn may wait for their commit. Default 256. */
  readonly pendingEvents?: number;
  /** Maximum size of these events as JSON, in bytes. Default 4 MiB. */
  readonly pendingBytes?: number;
  /** How many of its newest records a running task keeps in memory for its readers. Default 256. */
  readonly liveRecords?: number;
  /** Maximum size of these records as JSON, in bytes. Default 1 MiB. */
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
   * Maximum memory for the running tasks of this process and the messages that they answer, in bytes of JSON. One owner gets
   * at most half of it. A message beyond the limit waits for ten seconds, then fails with `Unavailable`. Lost tasks wait
   * until they fit. Messages below 64 KiB are accepted until the limit is exceeded by half. Default 256 MiB.
   */
  readonly totalBytes?: number;
  /** Largest page of a list, in bytes of JSON. A larger task gets a page to itself. Default 8 MiB. */
  readonly pageBytes?: number;
  /** Maximum parts of a message. A message with more is rejected. Default 10,000. */
  readonly messageParts?: number;
  /**
   * Maximum metadata of a request with a message, including the metadata of the message and its parts: names, texts, and 16 bytes
   * per value. A message with more is rejected. Default 1 MiB.
   */
  readonly metadataBytes?: number;
  /**
   * Maximum tasks of one owner that agents work on at a time in this process, including messages that are not a task yet. A message that would
   * start another one fails (`TooManyRequests`). A task that waits for its caller does not count. Default: no limit.
   */
  readonly tasksPerCaller?: number;
  /**
   * Maximum concurrent runs of this process. Beyond it, the task of a message stays or becomes `TASK_STATE_SUBMITTED` and
   * waits in the store. Tasks of an owner start in order, and owners take turns. Any process with room starts the next task.
   * A run that only waits for another agent or an authorization does not count. Default 1,000.
   */
  readonly runs?: number;
  /**
   * Maximum submitted tasks of one owner that wait for a process with room, in all processes that share the store. A message that would
   * create another one fails (`TooManyRequests`). Default 10,000.
   */
  readonly queuedPerCaller?: number;
  /**
   * Time limit of an asynchronous extension hook, in milliseconds. A hook that exceeds it has failed, and its later result is dropped.
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
  /** Receives events for metrics and traces. Default: none. */
  readonly observer?: Observer;
  /** Receives security events and changes that an operator may look up later. `auditLog(logger)` writes it to a log. Default: no audit. */
  readonly audit?: Audit;
  /** Receives the log. Rejected requests are summarized at most once a minute. Default: no log. */
  readonly logger?: Logger;
  /** The clock. Default: the runtime's. */
  readonly clock?: Clock;
  /** Makes the ids of tasks, contexts and messages. Default: time-ordered UUIDs (version 7). */
  readonly ids?: Ids;
  /**
   * Returns the owner of a caller's tasks, contexts and webhooks. Only callers with the same owner see them. `byOrganization` shares
   * them within an organization. The call fails if it does not return a non-empty string. Default: organization and subject together.
   */
  readonly ownerOf?: (principal: Principal) => string;
  /** How repeated messages are recognized. `false`: they are not. */
  readonly dedupe?: DedupeOptions | false;
  /** How long finished tasks are kept. */
  readonly retention?: RetentionOptions;
  /** How processes that share a store divide the tasks. */
  readonly lease?: LeaseOptions;
  /** Limits in bytes and counts. */
  readonly limits?: EngineLimits;
  /**
   * How long a send with `returnImmediately` waits for the first event of an agent that may reply directly, before it creates
   * the task and answers with it. Milliseconds, default 500.
   */
  readonly directReplyWithin?: number;
  /**
   * How long a `GetTask` of the 1.1 draft waits for a generation beyond its `currentGeneration` before it answers with
   * the current task. Milliseconds, default 30 s.
   */
  readonly longPoll?: number;
  /**
   * Where direct replies and their messages are stored, for `turn.context.history()`: in memory (32 MiB at most), or in the
   * store. Default: the store if it is durable.
   */
  readonly conversations?: "memory" | "store";
  /** How webhooks are delivered. Absent: no webhooks, and cards must not declare them. */
  readonly push?: PushSettings;
  /** Makes the outbox that delivers webhooks. Absent: no webhooks. */
  readonly outbox?: (host: OutboxHost) => Outbox;
  /** How agents get authorizations for their tasks (A2A 1.0 §7.6). Absent: `turn.authorize()` fails. */
  readonly inTask?: InTaskSettings;
  /** Makes the blob storage for large files. Absent: all files are in the store. */
  readonly files?: (rooms: BlobDeps) => LazyBlobs;
  /**
   * Merges adjacent text parts of an artifact when a task is read, if they have the same media type, no file name and no
   * metadata. Many clients show each part on a separate line, and a model's stream has a part per token. Events of a stream
   * always have the parts as the agent yielded them. Default true.
   */
  readonly mergeTextParts?: boolean;
  /** How often readers look for records of other processes, if the store cannot be watched. Milliseconds, default 1 s. */
  readonly pollInterval?: number;
}
