import type { AgentExtension, JsonObject, StandardSchema, StreamResponse } from "../model/index.ts";
import type { StatusEvent } from "./agent-event.ts";
import type { DelegatingCall, DelegationWatch } from "./delegation.ts";
import type {
  AcceptedCall,
  AcceptedInput,
  ActivatingCall,
  AppendedEvent,
  AppendingTurn,
  ExtensionTurn,
  RequestingCall,
  TurnEnd,
} from "./extension-hooks.ts";
import type { EventReads, ExtensionTypes, SubState, TurnReads } from "./extension-values.ts";
import type { CoreName, Operations } from "./operations.ts";

/* An extension of the protocol (A2A 1.0 §4.6), as a server, an agent and a client are given it. `defineExtension()` makes one. */

/**
 * What an extension is about (A2A, topic "Extensions"). `data`: it adds data and changes nothing else, so it can neither be required nor
 * fail a task. `profile`: it narrows what messages may be. `method`: it adds methods. `state`: it refines the states of a task.
 */
export type ExtensionKind = "data" | "profile" | "method" | "state";

/**
 * An extension of the protocol, as servers, agents and clients are given it (A2A 1.0 §4.6). Make it with `defineExtension()`. Its hooks
 * run in calls and turns that have activated it, and in no others. They have fixed places; nothing else may change a message or an
 * event, and what they return is checked: they may put data into metadata and parts, and add neither fields nor enum values.
 *
 * A hook that throws loses nothing that is stored. `onActivate`, `onAccept` and `onRequest` refuse the call, `onTurnStart` and `onAppend`
 * fail the task, `onDeliver` fails the one answer or stream. An `A2AError` of `onActivate`, `onAccept` and `onDeliver` is told to the
 * caller; any other error is an `InternalError` to the caller and a line in the log. Of an extension of kind `data` any of these is a
 * line in the log and nothing else: the call goes on as if the extension were not active. A promise of a hook that does not settle within
 * `limits.hookTimeout` has failed likewise.
 */
export interface Extension<Types extends ExtensionTypes = ExtensionTypes> extends Omit<AgentExtension, "uri"> {
  /** The URI on the card, which callers ask for. */
  readonly uri: string;
  /** What it is about. Default `profile`. */
  readonly kind?: ExtensionKind;
  /** URIs of extensions that have to be active too. Clients ask for them by themselves. */
  readonly requires?: readonly string[];
  /** What its `params` on a card may be, for clients: they come from a stranger. */
  readonly paramsSchema?: StandardSchema;
  /** What it puts into metadata maps. Checked on both sides. */
  readonly metadata?: Types["metadata"];
  /** The data parts that are its own. Checked on both sides. */
  readonly data?: Types["data"];
  /** Its sub-states, by name. */
  readonly subStates?: Readonly<Record<string, SubState>>;
  /** The methods that it adds. */
  readonly methods?: Types["methods"];
  /**
   * Whether each new record of a task wakes the rows that the extension keeps with it: rows without `due` are due at once. It
   * holds for every record: messages, events of the agent, and states that the server sets. Default: no.
   */
  readonly wakeRows?: boolean;
  /**
   * Whether its methods search the texts of tasks: the store then keeps an index of them. A server whose store has no full text search
   * refuses the extension. Default: no, and there is no index.
   */
  readonly searchesTasks?: boolean;
  /**
   * A call has asked for the extension. `false` leaves it inactive: it is not in the answer's `A2A-Extensions`, and a required one refuses
   * the call.
   */
  onActivate?(call: ActivatingCall): boolean;
  /**
   * A message comes in, for the first time: repeated sends join the first one and do not come here. What it returns is stored and
   * given to the agent, so it may take secrets out. Ids and role of the message must stay.
   */
  onAccept?(input: AcceptedInput, call: AcceptedCall): AcceptedInput | Promise<AcceptedInput>;
  /** A turn begins. What it returns is what `turn.ext()` gives; absent: the values of the message, as `reads` has them. */
  onTurnStart?(turn: ExtensionTurn, reads: TurnReads<Types>): unknown;
  /**
   * The agent has said something, which is about to be stored or, for a direct reply, given. A run that is resumed after a crash
   * repeats events and comes here again: return the same for the same event. Rows that go with a repeated event are not set again.
   */
  onAppend?(event: AppendedEvent, turn: AppendingTurn): AppendedEvent;
  /**
   * An event or a task goes out to a reader who has activated the extension. It must depend on nothing but `event`, since what
   * it returns for a stored event is kept for other readers.
   */
  onDeliver?(event: StreamResponse): StreamResponse;
  /**
   * A turn ends with a status that the server sets: the agent's function has ended, or has failed. What it returns goes into the metadata
   * of the status update. Where it throws, that is a line in the log and nothing else.
   */
  onFinish?(status: Pick<StatusEvent, "state">, turn: ExtensionTurn): JsonObject | undefined;
  /**
   * The agent lets another one do a part of its work (`turn.delegate()`). What it returns is told of it. Where it throws, that is a line in
   * the log and nothing else.
   */
  onDelegate?(call: DelegatingCall, turn: ExtensionTurn): DelegationWatch | undefined;
  /** A turn is over: its agent has ended, was aborted, or has thrown. Nothing can be added to the task here. */
  onTurnEnd?(turn: ExtensionTurn, end: TurnEnd): void | Promise<void>;
  /**
   * A client calls an operation of the protocol, and asks for the extension. What it returns is sent: it may change the metadata of the
   * request, and metadata, parts and extensions of its message. Repeated attempts send the same.
   */
  onRequest?<Name extends CoreName>(
    request: Operations[Name]["request"],
    call: RequestingCall<Name>,
  ): Operations[Name]["request"] | Promise<Operations[Name]["request"]>;
  /**
   * A client has received an event, a message or a task, of which the hook gets a copy. What it returns is what `event.ext()` gives; absent:
   * `reads`.
   */
  onEvent?(event: StreamResponse, reads: EventReads<Types>): unknown;
  /** For the compiler alone: there is no such member. */
  readonly "~types"?: Types;
}

/** Any extension. */
export type AnyExtension = Omit<Extension, OwnTypes> & { readonly [Name in OwnTypes]?: unknown };

/** The members that depend on the types of an extension. */
type OwnTypes = "metadata" | "data" | "methods" | "onTurnStart" | "onEvent" | "~types";

/** What `turn.ext()` gives for an extension. */
export type TurnOf<E> = E extends { readonly "~types"?: infer Types extends ExtensionTypes } ? Types["turn"] : never;

/** What `event.ext()` gives for an extension. */
export type EventOf<E> = E extends { readonly "~types"?: infer Types extends ExtensionTypes } ? Types["event"] : never;

/** The extensions of an agent or a client: those of `{ extensions: [...] }`. */
export type ExtensionsOf<Types> = Types extends { readonly extensions: readonly (infer E extends AnyExtension)[] }
  ? E
  : never;
