import type { Clock, Logger } from "../base/index.ts";
import type { JsonObject, Message, Task } from "../model/index.ts";
import type { AuthorizationInit, OpenAuthorization } from "./authorization.ts";
import type { Delegations } from "./delegation.ts";
import type { CallContext, Principal } from "./service.ts";
import type { TurnMemory } from "./steps.ts";
import type { TurnSignal } from "./turn-signal.ts";

/* What is the same for every executor of a turn, and for the function of an agent. */

/** What is known about a message, apart from what the agent has stored. */
export interface TurnFacts {
  /** The message of the user that this turn answers. */
  readonly message: Message;
  /** All text parts of the message, joined by line breaks. */
  readonly text: string;
  /** Identifier of the task. It is known before the task exists. */
  readonly taskId: string;
  /** Identifier of the conversation. */
  readonly contextId: string;
  /** The task at the start of this turn. `undefined` where this message begins it. */
  readonly task: Task | undefined;
  /** Which turn of its task this is, from 1. */
  readonly number: number;
  /** Which attempt of this turn, from 1. A higher number means that an earlier run was lost and this one resumes it. */
  readonly attempt: number;
  /**
   * Who sent the message. A turn that begins with its request has all `claims` of the authenticator. A turn whose message
   * waited, or that resumes a lost run, has only those that `keepClaims` names.
   */
  readonly principal: Principal;
  /**
   * Whether the sender satisfies the `securityRequirements` of a skill on the card (A2A 1.0 §4.4.5). Where a message names its skill
   * (`skillOf` of the server), that one is checked before this turn; an agent that chooses a skill by itself asks here. `false` where
   * the card has no such skill.
   *
   * @example
   * ```ts
   * if (!turn.allows("payments")) return turn.reply("You need the scope payments:write for this.");
   * ```
   */
  allows(skillId: string): boolean;
  /** Of the request: its protocol version, the extensions that it asked for, and its W3C `traceparent`. */
  readonly call: Pick<CallContext, "version" | "extensions" | "trace">;
  /**
   * The headers of the request that `requestHeaders` of the agent names, by their names in lower case. A turn that begins with its
   * request has all of them. A turn whose message waited, or that resumes a lost run, has only those with `store`.
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
  /** URIs of the extensions that are active in this turn: the caller asked for them, and the card declares them. */
  readonly extensions: readonly string[];
  /** Aborted when the result of this turn is no longer wanted. `turn.signal.reason.kind` says why. */
  readonly signal: TurnSignal;
  /** The server's log. */
  readonly logger: Logger;
  /** The server's clock. Tests replace it. */
  readonly clock: Clock;
  /**
   * Opens a request for an authorization (A2A 1.0 §7.6). `Turn.authorize()` does this, and shows the request. It makes the task,
   * where there is none.
   *
   * @throws A2AError `InvalidAgentResponse` where the request is not valid, or the server cannot serve it.
   */
  requestAuthorization<Init extends AuthorizationInit>(init: Init): Promise<OpenAuthorization<Init["form"]>>;
  /** What delegations keep with the task. `Turn.delegate()` uses it. */
  delegations(): Promise<Delegations>;
  /** What steps and waits keep with the task. `Turn.step()`, `Turn.sleep()` and `Turn.waitFor()` use it. */
  memory(): Promise<TurnMemory>;
  /** Makes an identifier that is unique in the task. A resumed run makes the same ones again. */
  makeId(): string;
  /**
   * Resolves when everything yielded so far is stored.
   *
   * @throws A2AError `Unavailable` where it could not be stored.
   */
  flush(): Promise<void>;
}
