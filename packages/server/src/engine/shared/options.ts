import type { BlobDeps, LazyBlobs } from "../../blobs/lazy.ts";
import {
  silentLogger,
  systemClock,
  timeOrderedIds,
  type Clock,
  type Ids,
  type Logger,
} from "@parley/a2a/internal/base/index";
import { ExtensionHooks } from "@parley/a2a/internal/extensions/hooks";
import { lazyAuthorizations, type Authorizations, type InTaskSettings } from "../../intask/index.ts";
import type { AgentCard } from "@parley/a2a/internal/model/index";
import {
  safeObserver,
  type AnyExtension,
  type Agent,
  type Audit,
  type Interceptor,
  type Observer,
  type Principal,
} from "@parley/a2a/internal/protocol/index";
import type { Outbox, OutboxHost, PushSettings } from "../../push/index.ts";
import type { Store } from "../../store/index.ts";
import type { EngineLimits } from "./limits.ts";
import { checkedOwner, checkRetention } from "./refusals.ts";

/** An agent with the id that its tasks are stored under. */
export interface HostedAgent {
  /** Key of everything that is stored for this agent. Keep it when the agent moves to another path. */
  readonly id: string;
  /** The agent. */
  readonly agent: Agent;
  /** The card as it is served. Operations that it does not declare are refused (A2A 1.0 §3.3.4). */
  readonly card: AgentCard;
  /** Puts the service behind the checks of callers, for methods of extensions. Default: none, which checks nobody. */
  readonly guard?: Interceptor;
  /** Returns the card for authenticated callers (§3.1.11). Absent: none is configured. */
  readonly extendedCard?: (principal: Principal) => AgentCard | Promise<AgentCard>;
}

/** How repeated messages are recognized: by `messageId` and content (A2A 1.0 §3.3.1). */
export interface DedupeOptions {
  /** How long a messageId is remembered, in milliseconds. Default: as long as its task, and 10 minutes for direct replies. */
  readonly window?: number;
  /**
   * Other content under a used messageId is refused, or accepted as a new message, for clients that number their messages
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
   * that share a store. A task whose agent cannot resume it fails after four times that, where the store counts processes. Default 2.6 s
   * where it does, as on PostgreSQL, and 30 s where each lease is renewed.
   */
  readonly ttl?: number;
  /** How often in a row a run may be lost without having stored anything, before its task is suspended. Default 10. */
  readonly maxAttempts?: number;
  /**
   * A task is suspended after so many crashes of the process just after the task was started, the last of which it was alone. No process takes
   * a suspended task over until `parley db resume` resumes it. Tasks that were lost once are resumed a few at a time, so that in the end one
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

/** Options of an engine. */
export interface EngineOptions {
  /** Where tasks and conversations are stored. */
  readonly store: Store;
  /** Extensions of the protocol that all agents of this server have, beside their own. Default: none. */
  readonly extensions?: readonly AnyExtension[];
  /** The agents. */
  readonly agents: readonly HostedAgent[];
  /** Is told what happens, for metrics and traces. Default: none. */
  readonly observer?: Observer;
  /** Is told what an operator may have to look up later. `auditLog(logger)` writes it to a log. Default: nobody is told. */
  readonly audit?: Audit;
  /** Gets the log lines, those of refused requests included: one a minute at most, with counts. Default: none is written. */
  readonly logger?: Logger;
  /** Time. Default: that of the runtime. */
  readonly clock?: Clock;
  /** Makes the ids of tasks, contexts and messages. Default: time-ordered UUIDs (version 7). */
  readonly ids?: Ids;
  /**
   * Returns the owner of what a caller creates: who sees its tasks, contexts and webhooks. `byOrganization` shares them within an
   * organization. Where it returns no text, or an empty one, the call fails. Default: organization and subject together.
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
  /** How webhooks are delivered. Absent: there are none, and cards must not declare them. */
  readonly push?: PushSettings;
  /** Makes what delivers webhooks. Absent: nothing does. */
  readonly outbox?: (host: OutboxHost) => Outbox;
  /** How agents get authorizations for their tasks (A2A 1.0 §7.6). Absent: `turn.authorize()` fails. */
  readonly inTask?: InTaskSettings;
  /** Makes what keeps large files outside of the store. Absent: every file is in it. */
  readonly files?: (rooms: BlobDeps) => LazyBlobs;
  /**
   * Whether adjacent text parts of an artifact are one part where a task is read: those of the same media type that have no file name and no
   * metadata. Many clients show each part on a line of its own, and a stream of a model is a part for each token. Events of a stream
   * always have the parts as the agent yielded them. Default true.
   */
  readonly mergeTextParts?: boolean;
  /** How often readers look for records of other processes, where the store cannot be watched. Milliseconds, default 1 s. */
  readonly pollInterval?: number;
}

/** The options with their defaults, as the rooms of the engine read them. */
export interface EngineSettings {
  readonly extensions: ExtensionHooks;
  /** Its errors go to the log. */
  readonly observer: Observer | undefined;
  readonly audit: Audit | undefined;
  readonly store: Store;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly ownerOf: (principal: Principal) => string;
  readonly dedupe: Required<Omit<DedupeOptions, "window">> & {
    readonly window: number | undefined;
    readonly on: boolean;
  };
  readonly retention: RetentionOptions & Required<Pick<RetentionOptions, "terminal" | "replay" | "interval">>;
  readonly lease: Required<LeaseOptions> & {
    /** For how long a lease is taken, in milliseconds: where the store counts processes, it ends with its process. */
    readonly term: number;
  };
  readonly limits: Required<EngineLimits>;
  readonly directReplyWithin: number;
  readonly longPoll: number;
  readonly conversations: "memory" | "store";
  readonly push: PushSettings | undefined;
  readonly authorizations: Authorizations | undefined;
  readonly blobs: LazyBlobs | undefined;
  readonly mergeTextParts: boolean;
  readonly pollInterval: number;
}

/** Returns a name that no two principals share, whatever characters their subjects contain. */
function ownerOfPrincipal(): (principal: Principal) => string {
  // Each call needs the name, and authenticators return the same object for the same credentials.
  const names = new WeakMap<Principal, string>();
  return (principal) => {
    let name = names.get(principal);
    if (name === undefined) {
      name = JSON.stringify([principal.organization ?? null, principal.subject]);
      names.set(principal, name);
    }
    return name;
  };
}

/** How long a direct reply is remembered, so that a retry gets it again. Milliseconds. */
export function replyWindow({ dedupe }: Pick<EngineSettings, "dedupe">): number {
  return dedupe.window ?? 10 * 60_000;
}

/** The extensions of the server and of its agents. One that several name is there once. */
function extensionsOf({ extensions = [], agents }: EngineOptions): readonly AnyExtension[] {
  return [...new Set([...extensions, ...agents.flatMap(({ agent }) => agent.extensions ?? [])])];
}

/** Longer than any process runs, in milliseconds. */
const endless = 100 * 365 * 24 * 60 * 60 * 1000;

const day = 24 * 60 * 60 * 1000;

export function settingsOf(options: EngineOptions): EngineSettings {
  checkRetention(options.retention, options.store);
  const { logger = silentLogger } = options;
  const ids = options.ids ?? timeOrderedIds();
  const dedupe = options.dedupe === false ? undefined : (options.dedupe ?? {});
  const { retention = {}, lease = {} } = options;
  const { exclusive = false, recordBytes = Infinity } = options.store;
  let holder = lease.holder;
  const counts = options.store.nodes !== undefined;
  const { ttl = counts ? 2_600 : 30_000 } = lease;
  const clock = options.clock ?? options.store.clock ?? systemClock;
  const limits = limitsOf(options.limits, recordBytes);
  const settings: Omit<EngineSettings, "authorizations"> = {
    store: options.store,
    extensions: new ExtensionHooks(extensionsOf(options), logger, { clock, limit: limits.hookTimeout }),
    observer: options.observer && safeObserver(options.observer, logger),
    audit: options.audit,
    logger,
    clock,
    ids,
    ownerOf: options.ownerOf === undefined ? ownerOfPrincipal() : checkedOwner(options.ownerOf),
    dedupe: {
      on: dedupe !== undefined,
      window: dedupe?.window,
      onConflict: dedupe?.onConflict ?? "accept",
      replies: dedupe?.replies ?? 10_000,
      replyBytes: dedupe?.replyBytes ?? 16 << 20,
    },
    retention: {
      ...retention,
      terminal: retention.terminal ?? 30 * day,
      replay: retention.replay ?? day / 24,
      interval: retention.interval ?? 60_000,
    },
    lease: {
      ttl,
      term: counts ? endless : ttl,
      maxAttempts: lease.maxAttempts ?? 10,
      maxDeaths: lease.maxDeaths ?? 2,
      // Made when it is needed: Workers allow no random values before their first request.
      get holder() {
        return (holder ??= ids.next());
      },
      wasKilled: lease.wasKilled ?? (() => false),
      isGone: lease.isGone ?? ((other) => exclusive && other !== settings.lease.holder),
    },
    limits,
    directReplyWithin: options.directReplyWithin ?? 500,
    longPoll: options.longPoll ?? 30_000,
    conversations: options.conversations ?? (options.store.durable ? "store" : "memory"),
    push: options.push,
    blobs: options.files?.({ tasks: options.store, clock, logger }),
    mergeTextParts: options.mergeTextParts ?? true,
    pollInterval: options.pollInterval ?? 1_000,
  };
  return { ...settings, authorizations: options.inTask && lazyAuthorizations(options.inTask, settings) };
}

/** The limits with their defaults. `recordBytes`: the largest record of the store. */
function limitsOf(limits: EngineLimits = {}, recordBytes: number): Required<EngineLimits> {
  return {
    pendingEvents: limits.pendingEvents ?? 256,
    pendingBytes: limits.pendingBytes ?? 4 << 20,
    liveRecords: limits.liveRecords ?? 256,
    liveBytes: limits.liveBytes ?? 1 << 20,
    eventBytes: Math.min(limits.eventBytes ?? 16 << 20, recordBytes),
    stateBytes: Math.min(limits.stateBytes ?? 4 << 20, recordBytes),
    taskBytes: limits.taskBytes ?? 32 << 20,
    totalBytes: limits.totalBytes ?? 256 << 20,
    pageBytes: limits.pageBytes ?? 8 << 20,
    messageParts: limits.messageParts ?? 10_000,
    // The first record of a task has its metadata twice.
    metadataBytes: Math.min(limits.metadataBytes ?? 1 << 20, recordBytes / 4),
    tasksPerCaller: limits.tasksPerCaller ?? Infinity,
    runs: limits.runs ?? 1_000,
    queuedPerCaller: limits.queuedPerCaller ?? 10_000,
    hookTimeout: limits.hookTimeout ?? 30_000,
  };
}
