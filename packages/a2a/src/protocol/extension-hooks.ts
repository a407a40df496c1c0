import type { Clock, Logger } from "../base/index.ts";
import type { AgentCard, JsonObject, Message, SendMessageRequest } from "../model/index.ts";
import type { AgentEvent } from "./agent-event.ts";
import type { AuthorizationInit, OpenAuthorization } from "./authorization.ts";
import type { TaskRows, TurnRows } from "./extension-rows.ts";
import type { CoreName, OperationName, Operations } from "./operations.ts";
import type { CallContext, Principal } from "./service.ts";

/* What the hooks of an extension are called with. */

/** A call that asks for an extension. */
export interface ActivatingCall extends Pick<CallContext, "principal" | "version" | "headers"> {
  /** The operation. */
  readonly operation: OperationName;
  /** Its request. */
  readonly request: Operations[OperationName]["request"];
  /** The card of the agent. */
  readonly card: AgentCard;
}

/** What of a send is stored. */
export type AcceptedInput = Pick<SendMessageRequest, "message" | "metadata">;

/** The call that a message came with. */
export interface AcceptedCall {
  /** Who calls. */
  readonly principal: Principal;
  /** URIs of all extensions that are active in the call. */
  readonly extensions: readonly string[];
  /** The card of the agent. */
  readonly card: AgentCard;
  /** Time. */
  readonly clock: Clock;
  /** The log of the server. */
  readonly logger: Logger;
  /** What the extension keeps with the task of the message. What is set is stored with the message, unless the agent answers it directly. */
  readonly rows: TaskRows;
}

/** A status, an artifact, or a reply of the agent. */
export type AppendedEvent = Exclude<AgentEvent, { readonly kind: "checkpoint" | "wait" }>;

/** The turn in which the agent said it. */
export interface AppendingTurn {
  /** The conversation. */
  readonly contextId: string;
  /** Absent for a direct reply, which makes no task. */
  readonly taskId?: string;
  /** The message that the turn answers, as `onAccept` left it. */
  readonly message: Message;
  /** URIs of all extensions that are active in the turn. */
  readonly extensions: readonly string[];
  /** Time. */
  readonly clock: Clock;
  /** What `onTurnStart` of this extension has returned for the turn; the values of the message where it has none. */
  readonly started?: unknown;
  /** Changes what the extension keeps with the task, together with the event. Absent for a direct reply, which makes no task. */
  readonly rows?: Omit<TaskRows, "read">;
}

/** A turn, as the hooks of an extension see it. */
export interface ExtensionTurn {
  /** The message that it answers, as `onAccept` left it. */
  readonly message: Message;
  /** `metadata` of the send request. */
  readonly metadata: JsonObject | undefined;
  /** Identifier of the task. It is known before the task exists. */
  readonly taskId: string;
  /** Identifier of the conversation. */
  readonly contextId: string;
  /** Which turn of its task this is, from 1. */
  readonly number: number;
  /** Which attempt of this turn, from 1. */
  readonly attempt: number;
  /** Who sent the message. */
  readonly principal: Principal;
  /** URIs of all extensions that are active in the turn. */
  readonly extensions: readonly string[];
  /** Aborted when the result of the turn is no longer wanted. */
  readonly signal: AbortSignal;
  /** Time. */
  readonly clock: Clock;
  /** The log of the server. */
  readonly logger: Logger;
  /** Whether the agent is called again for a turn whose run was lost in a crash (`resumable`). */
  readonly resumable: boolean;
  /** What the extension keeps with the task. */
  readonly rows: TurnRows;
  /** Opens a request for an authorization, as `turn.requestAuthorization()` does. */
  requestAuthorization<Init extends AuthorizationInit>(init: Init): Promise<OpenAuthorization<Init["form"]>>;
  /** In `onTurnStart`: the agent is called when this has settled, such as a read of rows. It has to settle within `limits.hookTimeout`. */
  waitFor(work: Promise<unknown>): void;
  /** What `onTurnStart` of this extension has returned. `undefined` before that. */
  readonly started: unknown;
}

/** How a turn ended. */
export interface TurnEnd {
  /** What the agent has thrown. */
  readonly error?: unknown;
}

/** A request of a client. */
export interface RequestingCall<Name extends CoreName = CoreName> {
  /** The operation. */
  readonly operation: Name;
  /** The card of the agent. */
  readonly card: AgentCard;
  /** `params` of the extension on that card, checked; `undefined` where they do not fit, or there are none. */
  readonly params: unknown;
  /** Time. */
  readonly clock: Clock;
}
