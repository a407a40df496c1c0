import type { Bytes, Clock, Logger } from "@parley/a2a/internal/base/index";
import type { StreamResponse } from "@parley/a2a/internal/model/index";
import type { Dialer, NetPolicy } from "@parley/a2a/internal/net/index";
import type { Audit, Observer } from "@parley/a2a/internal/protocol/index";
import type { LazyBlobs } from "../blobs/lazy.ts";
import type { AppendOutcome, Store, TaskAppend, TaskKey } from "../store/index.ts";

/* Webhooks of a server: options, ports, and the operator's interface (docs/decisions/webhooks.md). */

/** How a server delivers events to webhooks (A2A 1.0 §4.3.3). */
export interface PushOptions {
  /**
   * Keys of 32 random bytes, each in base64: `openssl rand -base64 32`. They seal the secrets of configs, and sign deliveries. The first key is
   * used; the others only open older secrets and stay in the key set, so that you can rotate keys. All processes on a store need the same
   * keys. Default: with `serve()` the comma-separated keys of the environment variable `PARLEY_KEYS`; without it, if only this machine
   * reaches the server, the key of `developmentKey`, or a temporary key; otherwise the server does not start.
   */
  readonly keys?: readonly string[];
  /**
   * Which addresses may be called. Default: public ones over HTTPS and HTTP, on the usual ports, and addresses of this machine if only it
   * reaches the server. `maxBytes` limits an answer: 64 KiB.
   */
  readonly net?: NetPolicy;
  /** Pins addresses. Default: none; `serve()` passes `nodeDialer()` of `@parley/node`. */
  readonly dialer?: Dialer;
  /**
   * A dialer with a client certificate, such as `nodeDialer({ tls: { cert, key } })`. Configs may then request `MutualTLS`. Only their
   * receivers see the certificate. Default: none.
   */
  readonly mutualTls?: Dialer;
  /**
   * Whether a receiver must prove at registration that it wants the events: the server POSTs `{"challenge":"…"}`, and the receiver must echo
   * it. Default false.
   */
  readonly challenge?: boolean;
  /**
   * Which events are sent. Default `"changes"`: each change of the state, and each artifact once it is complete. `"all"`: every event, with
   * artifacts in the agent's chunks.
   */
  readonly events?: "changes" | "all" | ((event: StreamResponse) => boolean);
  /** Largest body in bytes. A larger one is replaced by a reference. Default 256 KiB. */
  readonly bodyBytes?: number;
  /** Maximum configs of a task, up to 200. Default 10. */
  readonly configsPerTask?: number;
  /**
   * Waits between the attempts of a delivery, in milliseconds. Default: 1, 5, 15 and 60 seconds, then the waits of Standard Webhooks, from 5
   * minutes to a day, about three days in total.
   */
  readonly retryAfter?: readonly number[];
  /** Timeout for the whole answer of a receiver, in milliseconds, up to 20 s. Default 10 s. */
  readonly timeout?: number;
  /** Maximum concurrent requests. Default 64. */
  readonly concurrency?: number;
  /** Maximum concurrent requests to one origin. Default 8. */
  readonly concurrencyPerOrigin?: number;
}

/** The options with their defaults, made by `server/features.ts`. */
export interface PushSettings extends Required<Omit<PushOptions, "keys" | "net" | "dialer" | "mutualTls">> {
  /** Keys of 32 bytes. The first key is used. The other keys only open values that were sealed with them earlier. */
  readonly keys: readonly [Bytes, ...Bytes[]];
  /** The public URL of the server: the issuer of JWTs. */
  readonly issuer: string;
  readonly net: NetPolicy;
  /** Pins addresses. Absent: the runtime's `fetch` resolves each name again. */
  readonly dialer: Dialer | undefined;
  readonly mutualTls: Dialer | undefined;
}

/** Engine dependencies of the outbox. */
export interface OutboxHost {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Receives each attempt. Its errors are logged. */
  readonly observer: Observer | undefined;
  /** Receives the uses of credentials, and where they were sent. */
  readonly audit: Audit | undefined;
  /** Ids of the agents that this process hosts. */
  readonly agents: readonly string[];
  /** The extensions of a webhook's registration that its agent still has. */
  extensionsOf(agent: string, registered: readonly string[]): Promise<DeliveredExtensions>;
  /** Large files outside of the store. Deliveries contain links to these files. */
  readonly blobs?: LazyBlobs | undefined;
  /** Whether adjacent texts of an artifact are merged into one part in a task. */
  readonly mergeTextParts: boolean;
  /** How often to poll for rows that other processes have woken, in milliseconds. */
  readonly pollInterval: number;
  /** The processes that may have claimed rows. Absent: unknown, and a claim lasts until it expires. */
  readonly holders?: ClaimHolders;
  /** Appends by the group commit of the engine, so the changes of many configs share a transaction. */
  append(item: TaskAppend): Promise<AppendOutcome>;
}

/** The processes that claim rows. */
export interface ClaimHolders {
  /** The current name of this process. */
  readonly own: () => string;
  /** Whether a process is gone. An unknown process counts as alive. */
  isLost(holder: string): boolean;
  /** A claim older than this, in milliseconds, is extended before a request, because this process may have been suspended and count as gone. */
  readonly fresh: number;
}

/** The extensions that are active in a delivery. */
export interface DeliveredExtensions {
  readonly uris: readonly string[];
  /** Changes an event. */
  readonly deliver: ((event: StreamResponse) => StreamResponse) | undefined;
}

/** Delivers the webhooks in the rows of the feature `push`. The engine starts and stops it. */
export interface Outbox {
  /** Begins to poll. */
  start(): void;
  /** Starts no more requests. Running requests get `grace` milliseconds. Then they are aborted, and their rows are due again. */
  stop(grace: number): Promise<void>;
  /** Polls now for rows that are due. */
  poll(): void;
  /** Called when a process is dead. Makes the rows that this process has claimed due now. */
  reclaim(): void;
  /** Whether the outbox polls now, or holds rows to deliver now. */
  readonly isBusy: boolean;
  /** Called for each stored item, so that new events of tasks with configs are delivered immediately. */
  stored(item: TaskAppend): void;
}

/** The secrets of a config. */
export interface PushSecrets {
  readonly token?: string | undefined;
  /** `authentication.credentials`. */
  readonly credentials?: string | undefined;
}

/** Opens `StoredConfig.sealed`. Rejects if no key opens the value, or if it was sealed for another config or task. */
export type OpenSecrets = (sealed: string, task: TaskKey, configId: string) => Promise<PushSecrets>;

/** A request to sign. */
export interface PushSigned {
  /** The `webhook-id`. */
  readonly id: string;
  /** The `webhook-timestamp`, in seconds since the Unix epoch. */
  readonly timestamp: number;
  readonly body: string;
}

/** Signs the requests of a server. */
export interface PushSigner {
  /** The value of `webhook-signature`: `v1a` with the server's keys, and `v1` if there is a `secret` (`whsec_…`). */
  signature(signed: PushSigned, secret?: string): Promise<string>;
  /** The JWT for a config with the scheme `Bearer` and no credentials. `audience`: the address of the config. */
  jwt(signed: PushSigned, claims: { readonly audience: string; readonly taskId: string }): Promise<string>;
}

/** A config for operators: without secrets, and with only origin and path of its URL. */
export interface PushEntry {
  /** The task, with its agent and owner. */
  readonly task: TaskKey;
  /** The id of the config in its task. */
  readonly configId: string;
  /** Origin and path of the address, without its query. */
  readonly url: string;
  /** The protocol version of the request that registered the config. */
  readonly version: string;
  /**
   * `idle`: everything is delivered. `due`: a delivery waits for its turn or its next attempt. `delivering`: a process is delivering.
   * `parked`: deliveries stop until an operator retries them.
   */
  readonly state: "idle" | "due" | "delivering" | "parked";
  /** Delivered events. */
  readonly delivered: number;
  /** The `seq` of the task's log up to which events were delivered, or parked. */
  readonly cursor: number;
  /** Failed attempts at the next event. */
  readonly attempts: number;
  /** When the config is retried, its claim expires, or it was parked, in milliseconds since the Unix epoch. */
  readonly due?: number;
  /** The last failure of the next event. */
  readonly problem?: PushProblem;
  /** Events that the receiver refused, oldest first. */
  readonly refused: readonly RefusedDelivery[];
}

/** Why a delivery failed. */
export interface PushProblem {
  /** When the delivery failed, in milliseconds since the Unix epoch. */
  readonly at: number;
  /** The reason as a sentence, without secrets and addresses of internal networks. */
  readonly reason: string;
  /** The HTTP status of the answer. Absent: there was no answer. */
  readonly status?: number;
}

/** An event that its receiver rejected permanently. */
export interface RefusedDelivery extends PushProblem {
  /** The `seq` of the event in the log of its task. */
  readonly seq: number;
  /** The number of the event among the deliveries of its config (`Parley-Sequence`). */
  readonly sequence: number;
}

/** Operators' control of webhooks, independent of the process that delivers them. */
export interface PushOperator {
  /**
   * Configs that are due, being delivered or parked: by `due`, with parked configs last. `agent`: only of this agent.
   * `state`: only `parked`, or only others (`due`). `limit`: from 1 to 1000; default 100.
   */
  list(query?: {
    readonly agent?: string;
    readonly state?: "parked" | "due";
    readonly limit?: number;
  }): Promise<readonly PushEntry[]>;
  /** All configs of a task. Empty if there is no such task. */
  show(agent: string, taskId: string): Promise<readonly PushEntry[]>;
  /**
   * Retries now. A parked config continues with the event at which it stopped, with all its attempts. `seq`: delivers this rejected event
   * again, before the others; a parked config then continues, too. Does nothing while a process is delivering. Resolves with false if
   * there is no such config or refused event.
   */
  retry(agent: string, taskId: string, configId: string, options?: { readonly seq?: number }): Promise<boolean>;
  /** Deletes the config, or only the refused event `seq`. Resolves with false if there is no such config or event. */
  drop(agent: string, taskId: string, configId: string, options?: { readonly seq?: number }): Promise<boolean>;
}
