import type { AgentExtension, JsonObject, StandardSchema, StreamResponse, Part, TaskState } from "../model/index.ts";
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
  ExtensionMethods,
} from "./extension-hooks.ts";
import type { CoreName, Operations } from "./operations.ts";

/* An extension of the protocol (A2A 1.0 §4.6), as a server, an agent and a client are given it. `defineExtension()` makes one. */

/**
 * What an extension is about (A2A, topic "Extensions"). `data`: it only adds data, so it cannot be required or fail a task. `profile`: it
 * narrows messages. `method`: it adds methods. `state`: it refines states.
 */
export type ExtensionKind = "data" | "profile" | "method" | "state";

/**
 * An extension of the protocol, as servers, agents and clients are given it (A2A 1.0 §4.6). Make it with `defineExtension()`. Hooks run
 * only in calls and turns that have activated it. Their results are checked: they may put data into metadata and parts, but add neither
 * fields nor enum values.
 *
 * A hook that throws, or does not settle within `limits.hookTimeout`, loses nothing that is stored: `onActivate`, `onAccept` and `onRequest`
 * refuse the call, `onTurnStart` and `onAppend` fail the task, `onDeliver` fails the answer. The caller gets an `A2AError` of `onActivate`,
 * `onAccept` and `onDeliver`; other errors are logged, and are an `InternalError` to the caller. Errors of kind `data` are only logged.
 */
export interface Extension<Types extends ExtensionTypes = ExtensionTypes> extends Omit<AgentExtension, "uri"> {
  /** The URI on the card, which callers ask for. */
  readonly uri: string;
  /** What it is about. Default `profile`. */
  readonly kind?: ExtensionKind;
  /** URIs of extensions that have to be active too. Clients ask for them on their own. */
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
  /** Whether each new record of a task wakes its rows of this extension that have no `due`. Default false. */
  readonly wakeRows?: boolean;
  /** Whether its methods search the texts of tasks, which needs a store with full text search. Default false: no index. */
  readonly searchesTasks?: boolean;
  /** A call has requested the extension. `false` leaves it inactive, and fails the call if the extension is required. */
  onActivate?(call: ActivatingCall): boolean;
  /**
   * A new message comes in (retries do not come here). What it returns is stored and given to the agent, so it can remove secrets. Ids and
   * role must stay.
   */
  onAccept?(input: AcceptedInput, call: AcceptedCall): AcceptedInput | Promise<AcceptedInput>;
  /** A turn begins. What it returns is what `turn.ext()` gives; absent: the values of the message, as `reads` has them. */
  onTurnStart?(turn: ExtensionTurn, reads: TurnReads<Types>): unknown;
  /**
   * The agent has said something that is about to be stored or replied. A resumed run repeats events, so return the same for the same
   * event; rows of a repeated event are not set again.
   */
  onAppend?(event: AppendedEvent, turn: AppendingTurn): AppendedEvent;
  /**
   * An event or a task goes out to a reader with the extension active. It must depend on `event` alone: the result is cached for other
   * readers.
   */
  onDeliver?(event: StreamResponse): StreamResponse;
  /**
   * A turn ends with a status that the server sets. What it returns goes into the metadata of the status update. Errors are only logged.
   */
  onFinish?(status: Pick<StatusEvent, "state">, turn: ExtensionTurn): JsonObject | undefined;
  /** The agent delegates (`turn.delegate()`). What it returns is told of the delegation. Errors are only logged. */
  onDelegate?(call: DelegatingCall, turn: ExtensionTurn): DelegationWatch | undefined;
  /** A turn is over: its agent has ended, was aborted, or has thrown. Nothing can be added to the task here. */
  onTurnEnd?(turn: ExtensionTurn, end: TurnEnd): void | Promise<void>;
  /**
   * A client calls an operation with the extension. What it returns is sent, also by retries: it may change metadata of the request, and
   * metadata, parts and extensions of its message.
   */
  onRequest?<Name extends CoreName>(
    request: Operations[Name]["request"],
    call: RequestingCall<Name>,
  ): Operations[Name]["request"] | Promise<Operations[Name]["request"]>;
  /** A client received an event, a message or a task, of which the hook gets a copy. What it returns is `event.ext()`. Default: `reads`. */
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

/* What an extension puts into metadata and parts: the fields that it declares, and the values that are read and written. */

/** The objects with metadata, in which an extension may put data. `request` is a `SendMessageRequest`. */
export type MetadataPlace = "request" | "message" | "part" | "artifact" | "task" | "statusUpdate" | "artifactUpdate";

/** A value in a metadata map. */
export interface MetadataField<Value = unknown> {
  /** Its key, or several: the first one is written, and any of them is read. Default: the URI, a slash, and the name of the field. */
  readonly key?: string | readonly [string, ...string[]];
  /** What it may be. It must answer at once, not by a promise. */
  readonly schema: StandardSchema<Value>;
  /**
   * Whether the value belongs to the moment, such as a time: a retried message and an event of a resumed run may have another one. Default
   * false.
   */
  readonly volatile?: boolean;
}

/** Values in a metadata map, by the names that agents and clients use. A schema alone stands for a field with the default key. */
export type MetadataFields = Readonly<Record<string, MetadataField | StandardSchema>>;

/** The metadata of an extension, by place. */
export type MetadataFieldsByPlace = Readonly<Partial<Record<MetadataPlace, MetadataFields>>>;

/** Data parts of an extension. */
export interface DataPartField<Value = unknown> {
  /** Whether a part with data is one of these. Default: its `mediaType` is `mediaType`. */
  readonly matches?: (part: Part) => boolean;
  /** Their media type, which is written. */
  readonly mediaType?: string;
  /** What `data` may be. It must answer at once, not by a promise. */
  readonly schema: StandardSchema<Value>;
}

/** Data parts of an extension, by the names that agents and clients use. */
export type DataPartFields = Readonly<Record<string, DataPartField>>;

/** A finer state: it annotates a state of the protocol, by a metadata field of the status message, and never replaces it. */
export interface SubState {
  /** The state that it annotates. */
  readonly state: TaskState;
  /** The key in `status.message.metadata`. Default: the name of the sub-state. */
  readonly key?: string;
  /** The value under that key. Default `true`. */
  readonly value?: string | number | boolean;
}

/** The types of an extension, for `turn.ext()`, `event.ext()` and `client.ext()`. */
export interface ExtensionTypes {
  /** Its metadata by place. */
  readonly metadata: MetadataFieldsByPlace;
  /** Its data parts. */
  readonly data: DataPartFields;
  /** The names of its sub-states. */
  readonly subStates: string;
  /** Its methods. */
  readonly methods: ExtensionMethods;
  /** What `turn.ext()` gives. */
  readonly turn: unknown;
  /** What `event.ext()` gives. */
  readonly event: unknown;
  /** What `client.ext().params` is: `params` of a card, as `paramsSchema` gives them. */
  readonly params?: unknown;
}

/** The value of a schema or a field. */
type ValueOf<Field> =
  Field extends StandardSchema<infer Value>
    ? Value
    : Field extends { readonly schema: StandardSchema<infer Value> }
      ? Value
      : never;

/** The values of some fields, each absent if it is missing or does not fit. */
export type ValuesOf<Fields> = { readonly [Name in keyof Fields]?: ValueOf<Fields[Name]> };

/** The values of the data parts of a message or an artifact, in their order. */
export type DataOf<Fields> = { readonly [Name in keyof Fields]: readonly ValueOf<Fields[Name]>[] };

/** The values of an extension at one place. */
export type ValuesAt<Types extends ExtensionTypes, Place extends MetadataPlace> = Types["metadata"] extends {
  readonly [P in Place]: infer Fields;
}
  ? ValuesOf<Fields>
  : object;

/** Writes what an extension puts into metadata and parts. */
export interface ExtensionWrites<Types extends ExtensionTypes> {
  /**
   * The metadata of these values, to be spread into the metadata of that object.
   *
   * @throws TypeError where a value does not fit its schema.
   *
   * @example
   * ```ts
   * import * as z from "zod";
   *
   * const stamps = defineExtension({ uri: "https://example.com/extensions/stamps/v1", metadata: { artifact: { at: z.string() } } });
   *
   * async function* answer(turn: Turn<{ extensions: [typeof stamps] }>): AsyncGenerator<AgentEvent> {
   *   const metadata = turn.ext(stamps)?.metadata("artifact", { at: turn.clock.now().toString() });
   *   yield turn.artifact({ parts: [text("Sunny")], metadata: metadata ?? {} });
   * }
   * ```
   */
  metadata<Place extends keyof Types["metadata"] & MetadataPlace>(
    place: Place,
    values: ValuesAt<Types, Place>,
  ): JsonObject;
  /** A data part of the extension. Throws TypeError if the value does not fit its schema. */
  part<Name extends keyof Types["data"] & string>(name: Name, value: DataOf<Types["data"]>[Name][number]): Part;
  /** The metadata of a status message that annotates its state. */
  subState(name: Types["subStates"]): JsonObject;
}

/** What an extension has put into a message, for the agent that answers it. */
export interface TurnReads<Types extends ExtensionTypes> extends ExtensionWrites<Types> {
  /** Of the metadata of the message. */
  readonly message: ValuesAt<Types, "message">;
  /** Of the metadata of the request. */
  readonly request: ValuesAt<Types, "request">;
  /** Of the data parts of the message. */
  readonly data: DataOf<Types["data"]>;
}

/** What an extension has put into an event, a message or a task, for a client. What is missing, or does not fit, is absent. */
export interface EventReads<Types extends ExtensionTypes> {
  /** Of the metadata of the message: the reply, or the message of the status. */
  readonly message: ValuesAt<Types, "message">;
  /** Of the metadata of the artifact. Of a task: of its last artifact. */
  readonly artifact: ValuesAt<Types, "artifact">;
  /** Of the metadata of the task. */
  readonly task: ValuesAt<Types, "task">;
  /** Of the metadata of the status update. */
  readonly statusUpdate: ValuesAt<Types, "statusUpdate">;
  /** Of the metadata of the artifact update. */
  readonly artifactUpdate: ValuesAt<Types, "artifactUpdate">;
  /** Of the data parts of the message or the artifact; of a task: of its artifacts. */
  readonly data: DataOf<Types["data"]>;
  /** The sub-state, if the state has one. */
  readonly subState: Types["subStates"] | undefined;
}
