import type { Bytes, Clock, Logger } from "@parley/a2a/internal/base/index";
import type { StreamResponse } from "@parley/a2a/internal/model/index";
import type { Dialer, NetPolicy } from "@parley/a2a/internal/net/index";
import type { Audit, Observer } from "@parley/a2a/internal/protocol/index";
import type { LazyBlobs } from "../blobs/lazy.ts";
import type { AppendOutcome, Store, TaskAppend, TaskKey } from "../store/index.ts";

/* Webhooks of a server: its options, and what an operator can see and do (docs/decisions/webhooks.md). */

/** How a server delivers events to webhooks (A2A 1.0 §4.3.3). */
export interface PushOptions {
  /**
   * Keys of 32 random bytes, each in base64: `openssl rand -base64 32`. They seal the secrets of configs, and sign. The first one
   * is used; the others still open what they sealed, and stay in the key set, so that a key can be replaced. All processes on one
   * store need the same keys. Default: with `serve()` those of the environment variable `PARLEY_KEYS`, with commas between them;
   * then, where only this machine reaches the server, the one that `developmentKey` makes, or a key that ends with the process; otherwise
   * the server does not start.
   */
  readonly keys?: readonly string[];
  /**
   * Which addresses may be called. Default: public ones over HTTPS and HTTP, on the usual ports, and those of this machine where only
   * it reaches the server. `maxBytes` limits an answer: 64 KiB.
   */
  readonly net?: NetPolicy;
  /** Pins addresses. Default: none; `serve()` passes `nodeDialer()` of `@parley/node`. */
  readonly dialer?: Dialer;
  /**
   * A dialer with a client certificate, such as `nodeDialer({ tls: { cert, key } })`. Configs may then ask for `MutualTLS`: it calls
   * their receivers, and no others, so that no other receiver sees the certificate. Default: none.
   */
  readonly mutualTls?: Dialer;
  /**
   * Whether a receiver must prove, when it is registered, that it wants the events: it gets `{"challenge":"…"}` by POST and must
   * answer with the same. Default false.
   */
  readonly challenge?: boolean;
  /**
   * Which events are sent. Default `"changes"`: each change of the state, and each artifact once it is complete. `"all"`: every
   * event, artifacts in chunks as the agent made them.
   */
  readonly events?: "changes" | "all" | ((event: StreamResponse) => boolean);
  /** Largest body in bytes. A larger one is replaced by a reference. Default 256 KiB. */
  readonly bodyBytes?: number;
  /** Most configs of a task, at most 200. Default 10. */
  readonly configsPerTask?: number;
  /**
   * Waits between the attempts of a delivery, in milliseconds. Default: 1, 5, 15 and 60 seconds, then those of Standard Webhooks from 5
   * minutes to a day, about three days in all.
   */
  readonly retryAfter?: readonly number[];
  /** How long a receiver may take for its whole answer, in milliseconds. At most 20 s. Default 10 s. */
  readonly timeout?: number;
  /** Most requests at a time. Default 64. */
  readonly concurrency?: number;
  /** Most requests at a time to one origin. Default 8. */
  readonly concurrencyPerOrigin?: number;
}

/** What the engine gives to the outbox, besides the options. */
export interface OutboxHost {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Is told of each attempt. Its errors go to the log. */
  readonly observer: Observer | undefined;
  /** Is told where a credential was sent. */
  readonly audit: Audit | undefined;
  /** Ids of the agents that this process hosts. */
  readonly agents: readonly string[];
  /** Of the extensions with which a webhook was registered, those that its agent still has, and what they make of an event. */
  extensionsOf(agent: string, registered: readonly string[]): Promise<DeliveredExtensions>;
  /** Large files outside of the store: what is delivered has links to them. */
  readonly blobs?: LazyBlobs | undefined;
  /** Whether adjacent texts of an artifact are one part, where a webhook has the task. */
  readonly mergeTextParts: boolean;
  /** How often the outbox looks for rows that other processes have woken, in milliseconds. */
  readonly pollInterval: number;
  /** The processes that may have claimed rows. Absent: nothing is known of them, and a claim lasts until it ends. */
  readonly holders?: ClaimHolders;
  /** Appends by the group commit of the engine, so that the changes of many configs share a transaction. */
  append(item: TaskAppend): Promise<AppendOutcome>;
}

/** What is known of the processes that claim rows. */
export interface ClaimHolders {
  /** The name of this process. It is asked for when it is needed. */
  readonly own: () => string;
  /** Whether a process is gone. One that nobody knows may live. */
  isLost(holder: string): boolean;
  /** A claim that is older is extended before a request, in milliseconds: this process may have stood still, and count as gone. */
  readonly fresh: number;
}

/** The extensions that are active in a delivery. */
export interface DeliveredExtensions {
  /** Their URIs. */
  readonly uris: readonly string[];
  /** What they make of an event. `undefined`: nothing. */
  readonly deliver: ((event: StreamResponse) => StreamResponse) | undefined;
}

/** Delivers what the rows of the feature `push` say. `createOutbox()` makes one; the engine starts and stops it. */
export interface Outbox {
  /** Begins to look for rows that are due. */
  start(): void;
  /** Begins no more requests. Running ones get `grace` milliseconds, then they are aborted, and their rows are due again. */
  stop(grace: number): Promise<void>;
  /** Looks for rows that are due now, as it does from time to time by itself. */
  look(): void;
  /** Some process is gone: the rows that it has claimed are due now. */
  takeOver(): void;
  /** Whether it looks for rows, or holds rows that it delivers now. */
  readonly isBusy: boolean;
  /** The engine calls it for each item that it stored, so that new events of tasks with configs are delivered at once. */
  stored(item: TaskAppend): void;
}

/** What a config keeps secret. */
export interface PushSecrets {
  /** `TaskPushNotificationConfig.token`. */
  readonly token?: string;
  /** `authentication.credentials`. */
  readonly credentials?: string;
}

/** Opens `StoredConfig.sealed`. Rejects where no key opens it, and where it was sealed for another config or task. */
export type OpenSecrets = (sealed: string, task: TaskKey, configId: string) => Promise<PushSecrets>;

/** A request that is to be signed. */
export interface PushSigned {
  /** The `webhook-id`. */
  readonly id: string;
  /** The `webhook-timestamp`, in seconds since the Unix epoch. */
  readonly timestamp: number;
  readonly body: string;
}

/** Signs the requests of a server. */
export interface PushSigner {
  /** The value of `webhook-signature`: `v1a` with the server's key, and `v1` where there is a `secret` (`whsec_…`). */
  signature(signed: PushSigned, secret?: string): Promise<string>;
  /** The JWT for a config with the scheme `Bearer` and no credentials. `audience`: the address of the config. */
  jwt(signed: PushSigned, claims: { readonly audience: string; readonly taskId: string }): Promise<string>;
}

/** A config that waits, is being delivered, or is parked. What an operator sees: no secret, and of the address only its origin and path. */
export interface PushEntry {
  /** The task, with its agent and owner. */
  readonly task: TaskKey;
  /** The id of the config in its task. */
  readonly configId: string;
  /** Origin and path of the address, without its query. */
  readonly url: string;
  /** The version of the protocol that registered it. */
  readonly version: string;
  /**
   * `idle`: everything is delivered. `due`: a delivery waits for its turn, or for its next attempt. `delivering`: a process is at it.
   * `parked`: nothing more is sent until an operator says so.
   */
  readonly state: "idle" | "due" | "delivering" | "parked";
  /** How many events were delivered. */
  readonly delivered: number;
  /** The `seq` of the task's log up to which events were delivered, or parked. */
  readonly cursor: number;
  /** How often the next event was tried without success. */
  readonly attempts: number;
  /** When it is tried again, or when the claim ends, or when it was parked, in milliseconds since the Unix epoch. */
  readonly due?: number;
  /** The last failure of the event that is next. */
  readonly problem?: PushProblem;
  /** Events that the receiver refused, oldest first. */
  readonly refused: readonly RefusedDelivery[];
}

/** Why a delivery failed. */
export interface PushProblem {
  /** When, in milliseconds since the Unix epoch. */
  readonly at: number;
  /** A sentence. It has no secret, and no address of an internal network. */
  readonly reason: string;
  /** The status of the answer. Absent: there was none. */
  readonly status?: number;
}

/** An event that its receiver refused for good. */
export interface RefusedDelivery extends PushProblem {
  /** The `seq` of the event in the log of its task. */
  readonly seq: number;
  /** Its number among the deliveries of its config (`Parley-Sequence`). */
  readonly sequence: number;
}

/** What an operator can do with webhooks, whatever process delivers them. */
export interface PushOperator {
  /**
   * Configs that are due, being delivered or parked: first those that are not parked, by their `due`, then those that are, the ones
   * that have been for longest first. `agent`: only of this one. `state`: `parked`, or `due` for those that are not. `limit`: from 1
   * to 1000; default 100.
   */
  list(query?: {
    readonly agent?: string;
    readonly state?: "parked" | "due";
    readonly limit?: number;
  }): Promise<readonly PushEntry[]>;
  /** All configs of a task. Empty where there is no such task. */
  show(agent: string, taskId: string): Promise<readonly PushEntry[]>;
  /**
   * Tries again now. A parked config goes on with the event at which it stopped, with all its attempts. `seq`: delivers this refused
   * event once more, before the others; a parked config then goes on too. Where a process is delivering, nothing has to be tried.
   * Resolves with false where there is no such config or refused event.
   */
  retry(agent: string, taskId: string, configId: string, options?: { readonly seq?: number }): Promise<boolean>;
  /** Gives up: deletes the config, or only the refused event `seq`. Resolves with false where there is no such thing. */
  drop(agent: string, taskId: string, configId: string, options?: { readonly seq?: number }): Promise<boolean>;
}

/** The options of webhooks with their defaults, as the rooms of a server read them. `server/features.ts` makes them. */
export interface PushSettings extends Required<Omit<PushOptions, "keys" | "net" | "dialer" | "mutualTls">> {
  /** 32 bytes each. The first one is used, the others open what they sealed. */
  readonly keys: readonly [Bytes, ...Bytes[]];
  /** The public URL of the server, which JWTs name as their issuer. */
  readonly issuer: string;
  /** Which addresses may be called, with the limits of a call. */
  readonly net: NetPolicy;
  /** Pins addresses. Absent: the runtime's `fetch` resolves the name again. */
  readonly dialer: Dialer | undefined;
  /** The same with a client certificate, for the configs that ask for it. Absent: none may. */
  readonly mutualTls: Dialer | undefined;
}
