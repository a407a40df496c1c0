import { silentLogger, systemClock, timeOrderedIds, type Clock, type Ids, type Logger } from "../base/index.ts";
import { ExtensionHooks, type Extension } from "../extensions/index.ts";
import type { AgentCard } from "../model/index.ts";
import { safeObserver, type Agent, type Observer, type Principal } from "../protocol/index.ts";
import type { Store } from "../store/index.ts";

/** An agent under the name that its tasks are stored by. */
export interface HostedAgent {
  /** Key of everything that is stored for this agent: keep it when the agent moves to another path. */
  readonly id: string;
  /** The agent. */
  readonly agent: Agent;
  /** The card as it is served: what it declares decides what may be asked (A2A 1.0 §3.3.4). */
  readonly card: AgentCard;
  /** The card that authenticated callers get (§3.1.11); absent: none is configured. */
  readonly extendedCard?: (principal: Principal) => AgentCard;
}

/** How repeated messages are recognized: by `messageId` and content (A2A 1.0 §3.3.1). */
export interface DedupeOptions {
  /** How long a messageId is remembered, in milliseconds. Default: as long as its task; 10 minutes for direct replies. */
  readonly window?: number;
  /** Other content under a used messageId: a new message, as for clients that count from 1, or refused. Default `accept`. */
  readonly onConflict?: "refuse" | "accept";
  /** How many direct replies are remembered in memory. Default 10,000. */
  readonly replies?: number;
  /** How much these may take, in bytes; a reply that takes more than half of it is not remembered. Default 16 MiB. */
  readonly replyBytes?: number;
}

/** How long finished tasks are kept. */
export interface RetentionOptions {
  /** Terminal tasks are deleted after so many milliseconds; `false`: never. Default 30 days. */
  readonly terminal?: number | false;
  /** The logs of terminal tasks are compacted after so many milliseconds; until then a stream can be resumed anywhere in them. Default 1 hour. */
  readonly replay?: number | false;
  /** How often to look, in milliseconds. Default 1 minute. */
  readonly interval?: number;
}

/** How processes that share a store divide the tasks. A process holds a lease on each task that it runs. */
export interface LeaseOptions {
  /** How long a node that fell silent keeps its tasks, in milliseconds; the same for all that share a store. Default 30 s. */
  readonly ttl?: number;
  /** How often in a row a run may be lost, with nothing of it stored in between, before its task fails. Default 10. */
  readonly maxAttempts?: number;
  /**
   * How often in a row the process may end of a task just after it was started again, before the task fails. What was lost
   * once is started alone the next time, so that no other task is blamed. Default 2.
   */
  readonly maxDeaths?: number;
  /** This process, in the leases that it holds. Default: a random name. */
  readonly holder?: string;
  /** Whether a holder is known to be dead, so that its tasks need not wait for the lease to run out. */
  readonly isGone?: (holder: string) => boolean;
}

/** Bounds that keep one task from costing the others. */
export interface EngineLimits {
  /** How many events of one turn may wait for their commit. Default 256. */
  readonly pendingEvents?: number;
  /** The same in bytes of JSON. Default 4 MiB. */
  readonly pendingBytes?: number;
  /** Records that a live task keeps at hand for its readers. Default 256. */
  readonly liveRecords?: number;
  /** The same in bytes of JSON. Default 1 MiB. */
  readonly liveBytes?: number;
  /** Largest event of an agent, in bytes of JSON. Default 16 MiB. */
  readonly eventBytes?: number;
  /** Largest checkpoint, and largest state of a context, in bytes of JSON. Default 4 MiB. */
  readonly stateBytes?: number;
  /**
   * Largest task: its messages, artifacts and statuses together, in bytes of JSON. A message beyond it is refused; an
   * event beyond it fails the task. Default 32 MiB.
   */
  readonly taskBytes?: number;
  /**
   * What this process holds at one time of the tasks that it runs and the messages that they answer, in bytes of JSON; no
   * owner has more than half of it. What does not fit waits for ten seconds and is then refused as `Unavailable`; lost
   * tasks wait for room. What takes less than 64 KiB passes until it is exceeded by half. Default 256 MiB.
   */
  readonly totalBytes?: number;
  /** Largest page of a list, in bytes of JSON; a task that is larger has a page of its own. Default 8 MiB. */
  readonly pageBytes?: number;
}

/** Options of an engine. */
export interface EngineOptions {
  /** Where tasks and conversations are stored. */
  readonly store: Store;
  /** Extensions with hooks. They run for the agents whose cards declare them. Default: none. */
  readonly extensions?: readonly Extension[];
  /** The agents. */
  readonly agents: readonly HostedAgent[];
  /** Sees what happens, for metrics and traces. Default: nobody does, and nothing is reported. */
  readonly observer?: Observer;
  /** Where the engine logs. Default: nowhere. */
  readonly logger?: Logger;
  /** Time. Default: that of the runtime. */
  readonly clock?: Clock;
  /** Makes the ids of tasks, contexts and messages. Default: time-ordered UUIDs (version 7). */
  readonly ids?: Ids;
  /** Returns the owner of what a caller makes. Default: organization and subject together. */
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
   * Where direct replies and what they answer are kept for `turn.context.history()`: a bounded memory (32 MiB), or the store.
   * Default: the store where it is durable.
   */
  readonly conversations?: "memory" | "store";
  /** How often readers look for what another process appended, where the store cannot tell. Milliseconds, default 1 s. */
  readonly pollInterval?: number;
}

/** Options with nothing left open, as the rooms of the engine read them. */
export interface EngineSettings {
  readonly extensions: ExtensionHooks;
  /** What it throws goes to the log. */
  readonly observer: Observer | undefined;
  readonly store: Store;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly ownerOf: (principal: Principal) => string;
  readonly dedupe: Required<Omit<DedupeOptions, "window">> & {
    readonly window: number | undefined;
    readonly on: boolean;
  };
  readonly retention: Required<RetentionOptions>;
  readonly lease: Required<LeaseOptions>;
  readonly limits: Required<EngineLimits>;
  readonly directReplyWithin: number;
  readonly longPoll: number;
  readonly conversations: "memory" | "store";
  readonly pollInterval: number;
}

/** A name that no two principals share, whatever they call themselves. */
function ownerOfPrincipal(): (principal: Principal) => string {
  // Authenticators give the same principal again for the same credentials, and every call asks.
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

/** How long a direct reply is remembered, so that a repeated message gets it again. Default 10 minutes. */
export function replyWindow({ dedupe }: EngineSettings): number {
  return dedupe.window ?? 10 * 60_000;
}

const day = 24 * 60 * 60 * 1000;

export function settingsOf(options: EngineOptions): EngineSettings {
  const { logger = silentLogger } = options;
  const ids = options.ids ?? timeOrderedIds();
  const dedupe = options.dedupe === false ? undefined : (options.dedupe ?? {});
  const { retention = {}, lease = {}, limits = {} } = options;
  return {
    store: options.store,
    extensions: new ExtensionHooks(options.extensions),
    observer: options.observer && safeObserver(options.observer, logger),
    logger,
    clock: options.clock ?? systemClock,
    ids,
    ownerOf: options.ownerOf ?? ownerOfPrincipal(),
    dedupe: {
      on: dedupe !== undefined,
      window: dedupe?.window,
      onConflict: dedupe?.onConflict ?? "accept",
      replies: dedupe?.replies ?? 10_000,
      replyBytes: dedupe?.replyBytes ?? 16 << 20,
    },
    retention: {
      terminal: retention.terminal ?? 30 * day,
      replay: retention.replay ?? day / 24,
      interval: retention.interval ?? 60_000,
    },
    lease: {
      ttl: lease.ttl ?? 30_000,
      maxAttempts: lease.maxAttempts ?? 10,
      maxDeaths: lease.maxDeaths ?? 2,
      holder: lease.holder ?? ids.next(),
      isGone: lease.isGone ?? (() => false),
    },
    limits: {
      pendingEvents: limits.pendingEvents ?? 256,
      pendingBytes: limits.pendingBytes ?? 4 << 20,
      liveRecords: limits.liveRecords ?? 256,
      liveBytes: limits.liveBytes ?? 1 << 20,
      eventBytes: limits.eventBytes ?? 16 << 20,
      stateBytes: limits.stateBytes ?? 4 << 20,
      taskBytes: limits.taskBytes ?? 32 << 20,
      totalBytes: limits.totalBytes ?? 256 << 20,
      pageBytes: limits.pageBytes ?? 8 << 20,
    },
    directReplyWithin: options.directReplyWithin ?? 500,
    longPoll: options.longPoll ?? 30_000,
    conversations: options.conversations ?? (options.store.durable ? "store" : "memory"),
    pollInterval: options.pollInterval ?? 1_000,
  };
}
