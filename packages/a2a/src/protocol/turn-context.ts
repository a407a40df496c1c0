import type { Clock, Logger } from "../base/index.ts";
import type { JsonObject, Message, Task, JsonLike, JsonValue, Part } from "../model/index.ts";
import type { AuditDetails } from "./audit.ts";
import type { AuthorizationInit, OpenAuthorization } from "./authorization.ts";
import type { Delegations } from "./delegation.ts";
import type { CallContext, Principal } from "./service.ts";
import type { TurnMemory } from "./steps.ts";
import type { TurnSignal } from "./turn-errors.ts";

/* Members of a turn that executors and the functions of agents share. */

/** Facts about a message, except for data that the agent stored. */
export interface TurnFacts {
  /** The message of the user that this turn answers. */
  readonly message: Message;
  /** All text parts of the message, joined by line breaks. */
  readonly text: string;
  /** Identifier of the task. It is known before the task exists. */
  readonly taskId: string;
  /** Identifier of the conversation. */
  readonly contextId: string;
  /** The task at the start of this turn. `undefined` if this message starts the task. */
  readonly task: Task | undefined;
  /** Number of this turn in its task, from 1. */
  readonly number: number;
  /** Number of this attempt of the turn, from 1. A higher number means that this run resumes an earlier run, which was lost. */
  readonly attempt: number;
  /**
   * Who sent the message. Turns that start with their request have all `claims`; other turns only those in `keepClaims`.
   */
  readonly principal: Principal;
  /**
   * Whether the sender satisfies the `securityRequirements` of a skill on the card (A2A 1.0 §4.4.5); `false` without such a skill. For
   * agents that choose a skill themselves: `skillOf` of the server checks a skill that the message names.
   *
   * @example
   * ```ts
   * if (!turn.allows("payments")) return turn.reply("You need the scope payments:write for this.");
   * ```
   */
  allows(skillId: string): boolean;
  /** Data of the request: its protocol version, the extensions that it requested, and its W3C `traceparent`. */
  readonly call: Pick<CallContext, "version" | "extensions" | "trace">;
  /**
   * The headers of the request that `requestHeaders` of the agent names, in lower case. Queued and resumed turns have only those with `store`.
   *
   * @example
   * ```ts
   * const language = turn.headers["accept-language"] ?? "en";
   * ```
   */
  readonly headers: Readonly<Record<string, string>>;
  /** `metadata` of the send request (A2A 1.0 §3.2.1). */
  readonly metadata: JsonObject | undefined;
  /** Media types that the caller can read (A2A 1.0 §3.2.2). Empty: any. */
  readonly acceptedOutputModes: readonly string[];
  /** URIs of the extensions that are active in this turn: the caller requested them, and the card declares them. */
  readonly extensions: readonly string[];
  /** Aborted when the result of this turn is no longer wanted. `turn.signal.reason.kind` says why. */
  readonly signal: TurnSignal;
  /** The server's log. */
  readonly logger: Logger;
  /** The server's clock. Tests replace it. */
  readonly clock: Clock;
  /**
   * Opens a request for an authorization (A2A 1.0 §7.6), and creates the task if needed. `Turn.authorize()` also shows it. Throws
   * `InvalidAgentResponse` for a request that the server cannot serve.
   */
  requestAuthorization<Init extends AuthorizationInit>(init: Init): Promise<OpenAuthorization<Init["form"]>>;
  /** The stored delegations of the task. `Turn.delegate()` uses it. */
  delegations(): Promise<Delegations>;
  /** The stored steps and waits of the task. `Turn.step()`, `Turn.sleep()` and `Turn.waitFor()` use it. */
  memory(): Promise<TurnMemory>;
  /**
   * Records an action of the agent in the server's `audit`, as an entry with the event `action`. Each attempt of a turn records it again: call
   * it within `turn.step()` to record it once. Without an `audit` it does nothing.
   *
   * @param action - The name of the action, such as `payment.sent`. At most 256 characters.
   * @param details - Facts about it, such as ids. No credentials and no texts of users. At most 32, each at most 1,024 characters.
   * @throws A2AError `InvalidAgentResponse` for an invalid action or details.
   *
   * @example
   * ```ts
   * await turn.step("mail", async () => {
   *   const { status } = await fetch("https://mail.example.com/send", { method: "POST", body: turn.text });
   *   turn.audit("mail.sent", { status });
   * });
   * ```
   */
  audit(action: string, details?: AuditDetails): void;
  /** Makes an identifier that is unique in the task. A resumed run gets the same ids. */
  makeId(): string;
  /** Resolves when everything yielded so far is stored. Throws `Unavailable` if that fails. */
  flush(): Promise<void>;
}

/** The type of a stored value: its declared type, or else any JSON. */
export type Stored<Types, Name extends string> = Types extends { readonly [K in Name]: infer Value }
  ? Value
  : JsonValue;

/** A value that can be stored: of the declared type, or any JSON if none is declared. */
export type Storable<Types, Name extends string, Value> = Types extends { readonly [K in Name]: infer Own }
  ? Own
  : JsonLike<Value>;

/** The argument of a setter. It names the declared type, so that the compiler compares a wrong value with that type. */
export type Given<Types, Name extends string, Value> = Types extends { readonly [K in Name]: infer Own } ? Own : Value;

/** The stored values of an agent, with their types (`Types`). */
export interface TurnStorage<Types = object> {
  /** The last checkpoint of the lost run, or `undefined`. */
  readonly checkpoint: Stored<Types, "checkpoint"> | undefined;
  /** A small value that all turns of this task share. Clients do not see it, and it is deleted with the task. */
  state(): Stored<Types, "state"> | undefined;
  /**
   * Sets the state of the task, or deletes it with `undefined`. Stored with the next events of this turn, or at its end. A turn that then
   * replies directly, without a task, fails. Throws `InvalidAgentResponse` if it is not JSON or exceeds `limits.stateBytes`.
   *
   * @example
   * ```ts
   * turn.setState({ destination: turn.text });
   * yield turn.inputRequired("For how many?");
   * ```
   */
  setState<Value extends Storable<Types, "state", Value>>(value: Given<Types, "state", Value> | undefined): void;
  /** The conversation: its history and its state. */
  readonly context: TurnContext<Types>;
}

/** The conversation of a turn (`contextId`): its history, and a small state. */
export interface TurnContext<Types = object> {
  /** The `contextId`. */
  readonly id: string;
  /**
   * The conversation so far, oldest first, ready for a model: messages, artifacts and direct replies of all its tasks. It ends with the
   * message of this turn, and is the same in every attempt. Throws `Unavailable`.
   */
  history(options?: HistoryOptions): Promise<readonly HistoryEntry[]>;
  /** A small value that all turns of this context share, as stored by the last turn, or `undefined`. */
  state<Value = Stored<Types, "context">>(): Value | undefined;
  /**
   * Sets the state, or deletes it with `undefined`. Stored with the next events of this turn, or at its end. Throws `InvalidAgentResponse`
   * if it is not JSON or exceeds `limits.stateBytes`.
   */
  setState<Value extends Storable<Types, "context", Value>>(value: Given<Types, "context", Value> | undefined): void;
}

/** The part of a conversation to read: the newest entries within both limits. Nothing else is read from the store. */
export interface HistoryOptions {
  /** Maximum number of entries, including the message of this turn. Default 100. */
  readonly limit?: number;
  /** Maximum bytes of stored JSON, not counting the message of this turn. Default 256 KiB. */
  readonly bytes?: number;
}

/**
 * One entry of a conversation: a message, or an artifact with its chunks joined. Progress messages are entries only if they were yielded
 * with `keep`.
 */
export interface HistoryEntry {
  /** The author. Artifacts are the agent's. */
  readonly role: "user" | "agent";
  /** All text parts as one text. Parts of a message are joined by line breaks, parts of an artifact without a separator. */
  readonly text: string;
  /** The content. Files and data have the form of messages: `raw` is base64 text. */
  readonly parts: readonly Part[];
  /** The time of the entry, in milliseconds since the Unix epoch. For an artifact: the time of its first chunk. */
  readonly time: number;
  /** The task that it belongs to. Absent for direct replies and the messages that they answer. */
  readonly taskId?: string;
  /** Identifier of the message. Absent for artifacts. */
  readonly messageId?: string;
  /** Identifier of the artifact. Absent for messages. */
  readonly artifactId?: string;
  /** Name of the artifact. */
  readonly name?: string;
  /** Description of the artifact. */
  readonly description?: string;
  /** `metadata` of the message or the artifact. */
  readonly metadata?: JsonObject;
  /** Set if the limits have cut off the beginning of this artifact. */
  readonly cut?: true;
}
