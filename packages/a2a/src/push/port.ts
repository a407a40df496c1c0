import type { Clock, Logger } from "../base/index.ts";
import type { StreamResponse, Task, TaskState } from "../model/index.ts";
import type { Dialer, NetPolicy } from "../net/index.ts";
import type { Store, TaskKey } from "../store/index.ts";

/* Webhooks of a server: its options, and what an operator can see and do (docs/decisions/webhooks.md). */

/** How a server delivers events to webhooks (A2A 1.0 §4.3.3). */
export interface PushOptions {
  /**
   * Keys of 32 random bytes, each in base64: `openssl rand -base64 32`. They seal the secrets of configs, and sign. The first one
   * is used; the others still open what they sealed, and stay in the key set, so that a key can be replaced. All processes on one
   * store need the same keys. Default: a key that ends with the process, where `publicUrl` is a loopback address; otherwise the
   * server does not start.
   */
  readonly keys?: readonly string[];
  /** Which addresses may be called. Default: public ones over HTTPS and HTTP, on the usual ports. `maxBytes` limits an answer: 64 KiB. */
  readonly net?: NetPolicy;
  /** Pins addresses, and holds a client certificate. `serve()` of `@parley/node` passes one. */
  readonly dialer?: Dialer;
  /** Whether `dialer` has a client certificate, so that configs may ask for `MutualTLS`. Default false. */
  readonly mutualTls?: boolean;
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
  /** Most configs of a task. Default 10. */
  readonly configsPerTask?: number;
  /** Waits between the attempts of a delivery, in milliseconds. Default: those of Standard Webhooks, about three days in all. */
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
  /** Ids of the agents that this process hosts. */
  readonly agents: readonly string[];
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
  /** Configs that are due, claimed or parked, those that are due first. `limit`: default 100. `agent`: only of this one. */
  list(query?: {
    readonly agent?: string;
    readonly state?: "parked" | "due";
    readonly limit?: number;
  }): Promise<readonly PushEntry[]>;
  /** All configs of a task. Empty where there is no such task. */
  show(agent: string, taskId: string): Promise<readonly PushEntry[]>;
  /**
   * Tries again now. A parked config goes on with the event at which it stopped. `seq`: delivers this refused event once more, at
   * once, before the others. Resolves with false where there is no such config or refused event.
   */
  retry(agent: string, taskId: string, configId: string, options?: { readonly seq?: number }): Promise<boolean>;
  /** Gives up: deletes the config, or only the refused event `seq`. Resolves with false where there is none. */
  drop(agent: string, taskId: string, configId: string, options?: { readonly seq?: number }): Promise<boolean>;
}

/** The event of a delivery, before it is written for a version. */
export interface PushEvent {
  /** The `seq` of the log that it takes the cursor to. */
  readonly seq: number;
  /** The generation of the task at this event; absent where it is not known any more. */
  readonly generation?: number;
  /** The event: a status, an artifact, or the whole task. */
  readonly event: StreamResponse;
  /** W3C `traceparent` of the call that caused it. */
  readonly trace?: string;
}

/** A body for a version of the protocol. */
export interface PushBody {
  readonly contentType: string;
  readonly body: string;
}

/** Writes the body of a webhook for the version that registered it. `task` loads the task as it is now. */
export type PushWriter = (
  version: string,
  event: StreamResponse,
  task: () => Promise<Task>,
) => PushBody | Promise<PushBody>;

/** A state of a task, where the policy compares two. */
export type StateBefore = TaskState | undefined;
