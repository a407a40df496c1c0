import {
  silentLogger,
  systemClock,
  timeOrderedIds,
  type Clock,
  type Ids,
  type Logger,
} from "@parley/a2a/internal/base/index";
import { ExtensionHooks } from "@parley/a2a/internal/extensions/hooks";
import { A2AError } from "@parley/a2a/internal/model/index";
import {
  safeObserver,
  type AnyExtension,
  type Audit,
  type Observer,
  type Principal,
} from "@parley/a2a/internal/protocol/index";
import type { LazyBlobs } from "../../blobs/lazy.ts";
import { lazyAuthorizations, type Authorizations } from "../../intask/index.ts";
import type { PushSettings } from "../../push/index.ts";
import type { Store } from "../../store/index.ts";
import { storeFailed } from "./errors.ts";
import type { DedupeOptions, EngineLimits, EngineOptions, LeaseOptions, RetentionOptions } from "./options.ts";
import { defined } from "@parley/a2a/internal/base/defined";

export interface EngineSettings {
  readonly extensions: ExtensionHooks;
  /** The observer, whose errors are logged. */
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
    /** The duration of a lease, in milliseconds. If the store counts processes, a lease ends with its process. */
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

/** Returns a unique name for each principal, even if a subject contains separators or quotes. */
function ownerOfPrincipal(): (principal: Principal) => string {
  // Cache the name, because each call needs it, and authenticators return the same object for the same credentials.
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

/** How long a direct reply is remembered for retries, in milliseconds. */
export function replyWindow({ dedupe }: Pick<EngineSettings, "dedupe">): number {
  return dedupe.window ?? 10 * 60_000;
}

/** The extensions of the server and of its agents, each once. */
function extensionsOf({ extensions = [], agents }: EngineOptions): readonly AnyExtension[] {
  return [...new Set([...extensions, ...agents.flatMap(({ agent }) => agent.extensions ?? [])])];
}

/** Longer than any process runs, in milliseconds. */
const endless = 100 * 365 * 24 * 60 * 60 * 1000;

const day = 24 * 60 * 60 * 1000;

const defaultLimits: Required<EngineLimits> = {
  pendingEvents: 256,
  pendingBytes: 4 << 20,
  liveRecords: 256,
  liveBytes: 1 << 20,
  eventBytes: 16 << 20,
  stateBytes: 4 << 20,
  taskBytes: 32 << 20,
  totalBytes: 256 << 20,
  pageBytes: 8 << 20,
  messageParts: 10_000,
  metadataBytes: 1 << 20,
  tasksPerCaller: Infinity,
  runs: 1_000,
  queuedPerCaller: 10_000,
  hookTimeout: 30_000,
};

/** Replaces missing members by defaults, and `undefined`, too, which JavaScript callers may pass. */
function withDefaults<T extends object>(defaults: T, given: object | undefined): T {
  return { ...defaults, ...defined({ ...given }) };
}

export function settingsOf(options: EngineOptions): EngineSettings {
  checkRetention(options.retention, options.store);
  const { logger = silentLogger, ids = timeOrderedIds(), store } = options;
  const { exclusive = false, recordBytes = Infinity } = store;
  const clock = options.clock ?? store.clock ?? systemClock;
  const limits = limitsOf(options.limits, recordBytes);
  const dedupe = { window: undefined, onConflict: "accept", replies: 10_000, replyBytes: 16 << 20 } as const;
  const settings: Omit<EngineSettings, "authorizations"> = {
    store,
    extensions: new ExtensionHooks(extensionsOf(options), logger, { clock, limit: limits.hookTimeout }),
    observer: options.observer && safeObserver(options.observer, logger),
    audit: options.audit,
    logger,
    clock,
    ids,
    ownerOf: options.ownerOf === undefined ? ownerOfPrincipal() : checkedOwner(options.ownerOf),
    dedupe: {
      ...withDefaults<Omit<EngineSettings["dedupe"], "on">>(dedupe, options.dedupe || {}),
      on: options.dedupe !== false,
    },
    retention: withDefaults({ terminal: 30 * day, replay: day / 24, interval: 60_000 }, options.retention),
    lease: leaseOf(options.lease, { ids, exclusive, counts: store.nodes !== undefined }),
    limits,
    directReplyWithin: options.directReplyWithin ?? 500,
    longPoll: options.longPoll ?? 30_000,
    conversations: options.conversations ?? (store.durable ? "store" : "memory"),
    push: options.push,
    blobs: options.files?.({ tasks: store, clock, logger }),
    mergeTextParts: options.mergeTextParts ?? true,
    pollInterval: options.pollInterval ?? 1_000,
  };
  return { ...settings, authorizations: options.inTask && lazyAuthorizations(options.inTask, settings) };
}

/** `counts`: whether the store counts processes. */
function leaseOf(
  { ttl, holder, maxAttempts = 10, maxDeaths = 2, wasKilled = () => false, isGone }: LeaseOptions = {},
  { ids, exclusive, counts }: { readonly ids: Ids; readonly exclusive: boolean; readonly counts: boolean },
): EngineSettings["lease"] {
  // Created on first use: Workers allow no random values before their first request.
  const own = (): string => (holder ??= ids.next());
  const time = ttl ?? (counts ? 2_600 : 30_000);
  return {
    ttl: time,
    term: counts ? endless : time,
    maxAttempts,
    maxDeaths,
    get holder() {
      return own();
    },
    wasKilled,
    isGone: isGone ?? ((other) => exclusive && other !== own()),
  };
}

/** The limits with their defaults. `recordBytes`: the largest record of the store. */
function limitsOf(given: EngineLimits | undefined, recordBytes: number): Required<EngineLimits> {
  const limits = withDefaults(defaultLimits, given);
  return {
    ...limits,
    eventBytes: Math.min(limits.eventBytes, recordBytes),
    stateBytes: Math.min(limits.stateBytes, recordBytes),
    // The first record of a task has its metadata twice.
    metadataBytes: Math.min(limits.metadataBytes, recordBytes / 4),
  };
}

/** Wraps `ownerOf` so that a result without a name fails, because callers without an owner would share their tasks. */
function checkedOwner(ownerOf: (principal: Principal) => unknown): (principal: Principal) => string {
  return (principal) => {
    const owner = ownerOf(principal);
    if (typeof owner === "string" && owner !== "") return owner;
    const cause = new TypeError(`ownerOf must return the name of an owner, and not ${JSON.stringify(owner)}`);
    throw new A2AError("InternalError", undefined, { cause });
  };
}

/** Rejects invalid times, and times per state or agent if the store does not support them. Otherwise the wrong tasks would be kept or deleted. */
function checkRetention(retention: RetentionOptions = {}, store: Store): void {
  const { terminal: _, replay: __, interval: ___, agents = {}, ...states } = retention;
  const groups = [
    ["", retention] as const,
    ...Object.entries(agents).map(([id, of]) => [`agents[${id}].`, of] as const),
  ];
  for (const [path, times] of groups) {
    for (const [name, time] of Object.entries(times)) {
      if (name === "agents" || time === undefined || time === false || (typeof time === "number" && time >= 0))
        continue;
      throw new TypeError(
        `retention.${path}${name} is milliseconds, 0 or more, or false, and cannot be ${String(time)}`,
      );
    }
  }
  const wanted = [...Object.keys(agents), ...Object.values(states)].some((time) => time !== undefined);
  if (wanted && store.upkeep === undefined) {
    throw new TypeError("retention: this store has no `upkeep`, so it has no times for states and agents");
  }
}

/** The store for a run's own reads and appends, in addition to its writer's. Rejects with `StoreUnavailable` during an outage. */
export type RunStore = Pick<Store, "head" | "features" | "read" | "load" | "conversation" | "once" | "append">;

export type RunSettings = Omit<EngineSettings, "store"> & { readonly store: RunStore };

export function runStore(store: Store): RunStore {
  return {
    head: (...of) => store.head(...of).catch(storeFailed),
    features: (...of) => store.features(...of).catch(storeFailed),
    read: (...of) => store.read(...of).catch(storeFailed),
    load: (...of) => store.load(...of).catch(storeFailed),
    conversation: (...of) => store.conversation(...of).catch(storeFailed),
    once: (...of) => Promise.resolve(store.once(...of)).catch(storeFailed),
    append: (...of) => store.append(...of).catch(storeFailed),
  };
}
