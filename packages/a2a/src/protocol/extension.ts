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

/* An extension of the protocol (A2A 1.0 §4.6), for servers, agents and clients. Created by `defineExtension()`. */

/**
 * The kind of an extension (A2A, topic "Extensions"). `data`: only adds data, so it cannot be required or fail a task. `profile`:
 * narrows messages. `method`: adds methods. `state`: refines states.
 */
export type ExtensionKind = "data" | "profile" | "method" | "state";

/**
 * An extension of the protocol, for servers, agents and clients (A2A 1.0 §4.6). Make it with `defineExtension()`. Hooks run
 * only in calls and turns that have activated it. Their results are checked: they may put data into metadata and parts, but add neither
 * fields nor enum values.
 *
 * If a hook throws, or does not settle within `limits.hookTimeout`, no stored data is lost: `onActivate`, `onAccept` and `onRequest` fail the call,
 * `onTurnStart` and `onAppend` fail the task, `onDeliver` fails the answer. If `onActivate`, `onAccept` or `onDeliver` throws an `A2AError`, the
 * caller gets it; other errors are logged, and the caller gets `InternalError`. Errors of kind `data` are only logged.
 */
export interface Extension<Types extends ExtensionTypes = ExtensionTypes> extends Omit<AgentExtension, "uri"> {
  /** The URI on the card, which callers request. */
  readonly uri: string;
  /** Its kind. Default `profile`. */
  readonly kind?: ExtensionKind;
  /** URIs of extensions that must be active, too. Clients request them automatically. */
  readonly requires?: readonly string[];
  /** Schema of its `params` on a card, for clients, which get them from untrusted agents. */
  readonly paramsSchema?: StandardSchema;
  /** Its fields in metadata maps. Checked on both sides. */
  readonly metadata?: Types["metadata"];
  /** Its own data parts. Checked on both sides. */
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
   * A new message has arrived. Not called for retries. Its result is stored and passed to the agent, so it can remove secrets. It must
   * not change ids and role.
   */
  onAccept?(input: AcceptedInput, call: AcceptedCall): AcceptedInput | Promise<AcceptedInput>;
  /** A turn starts. `turn.ext()` returns its result. Absent: the values of the message (`reads`). */
  onTurnStart?(turn: ExtensionTurn, reads: TurnReads<Types>): unknown;
  /**
   * An agent's event is about to be stored or sent as a reply. A resumed run repeats events, so return the same result for the same
   * event; rows of a repeated event are not set again.
   */
  onAppend?(event: AppendedEvent, turn: AppendingTurn): AppendedEvent;
  /**
   * An event or a task is delivered to a reader for which the extension is active. The result must depend only on `event`: it is cached for
   * other readers.
   */
  onDeliver?(event: StreamResponse): StreamResponse;
  /**
   * A turn ends with a status that the server sets. Its result is added to the metadata of the status update. Errors are only logged.
   */
  onFinish?(status: Pick<StatusEvent, "state">, turn: ExtensionTurn): JsonObject | undefined;
  /** The agent delegates (`turn.delegate()`). The returned object is notified of the delegation. Errors are only logged. */
  onDelegate?(call: DelegatingCall, turn: ExtensionTurn): DelegationWatch | undefined;
  /** A turn is over, because its agent has returned, thrown, or was aborted. The hook cannot add to the task. */
  onTurnEnd?(turn: ExtensionTurn, end: TurnEnd): void | Promise<void>;
  /**
   * A client calls an operation with the extension. Its result is sent, and sent again by retries. It may change metadata of the request, and
   * metadata, parts and extensions of its message.
   */
  onRequest?<Name extends CoreName>(
    request: Operations[Name]["request"],
    call: RequestingCall<Name>,
  ): Operations[Name]["request"] | Promise<Operations[Name]["request"]>;
  /** A client received an event, a message or a task; the hook gets a copy. Its result is `event.ext()`. Default: `reads`. */
  onEvent?(event: StreamResponse, reads: EventReads<Types>): unknown;
  /** Type-only; absent at runtime. */
  readonly "~types"?: Types;
}

/** Any extension. */
export type AnyExtension = Omit<Extension, OwnTypes> & { readonly [Name in OwnTypes]?: unknown };

/** The members that depend on the types of an extension. */
type OwnTypes = "metadata" | "data" | "methods" | "onTurnStart" | "onEvent" | "~types";

/** The result of `turn.ext()` for an extension. */
export type TurnOf<E> = E extends { readonly "~types"?: infer Types extends ExtensionTypes } ? Types["turn"] : never;

/** The result of `event.ext()` for an extension. */
export type EventOf<E> = E extends { readonly "~types"?: infer Types extends ExtensionTypes } ? Types["event"] : never;

/** The extensions of an agent or a client, from `{ extensions: [...] }`. */
export type ExtensionsOf<Types> = Types extends { readonly extensions: readonly (infer E extends AnyExtension)[] }
  ? E
  : never;

/* An extension's data in metadata and parts: declared fields, and reading and writing their values. */

/** The objects with metadata, in which an extension may put data. `request` is a `SendMessageRequest`. */
export type MetadataPlace = "request" | "message" | "part" | "artifact" | "task" | "statusUpdate" | "artifactUpdate";

/** A value in a metadata map. */
export interface MetadataField<Value = unknown> {
  /** Its key, or several: the first is written, and all are read. Default: the URI, a slash, and the name of the field. */
  readonly key?: string | readonly [string, ...string[]];
  /** Its schema. Must be synchronous. */
  readonly schema: StandardSchema<Value>;
  /**
   * Whether the value may differ in a retried message or a repeated event of a resumed run, such as a time. Default
   * false.
   */
  readonly volatile?: boolean;
}

/** Fields in a metadata map, by the names that agents and clients use. A schema is a field with the default key. */
export type MetadataFields = Readonly<Record<string, MetadataField | StandardSchema>>;

/** The metadata of an extension, by place. */
export type MetadataFieldsByPlace = Readonly<Partial<Record<MetadataPlace, MetadataFields>>>;

/** Data parts of an extension. */
export interface DataPartField<Value = unknown> {
  /** Whether a data part belongs to this field. Default: its `mediaType` is `mediaType`. */
  readonly matches?: (part: Part) => boolean;
  /** The media type of parts that are written. */
  readonly mediaType?: string;
  /** Schema of `data`. Must be synchronous. */
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
  /** The result of `turn.ext()`. */
  readonly turn: unknown;
  /** The result of `event.ext()`. */
  readonly event: unknown;
  /** The type of `client.ext().params`: a card's `params` after `paramsSchema`. */
  readonly params?: unknown;
}

/** The value of a schema or a field. */
type ValueOf<Field> =
  Field extends StandardSchema<infer Value>
    ? Value
    : Field extends { readonly schema: StandardSchema<infer Value> }
      ? Value
      : never;

/** The values of some fields, each absent if it is missing or invalid. */
export type ValuesOf<Fields> = { readonly [Name in keyof Fields]?: ValueOf<Fields[Name]> };

/** The values of the data parts of a message or an artifact, in their order. */
export type DataOf<Fields> = { readonly [Name in keyof Fields]: readonly ValueOf<Fields[Name]>[] };

/** The values of an extension at one place. */
export type ValuesAt<Types extends ExtensionTypes, Place extends MetadataPlace> = Types["metadata"] extends {
  readonly [P in Place]: infer Fields;
}
  ? ValuesOf<Fields>
  : object;

/** Writes an extension's values into metadata and parts. */
export interface ExtensionWrites<Types extends ExtensionTypes> {
  /**
   * The metadata of these values, to spread into the metadata of that object.
   *
   * @throws TypeError if a value does not match its schema.
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

/** An extension's values in a message, for the agent that answers it. */
export interface TurnReads<Types extends ExtensionTypes> extends ExtensionWrites<Types> {
  /** Values in the metadata of the message. */
  readonly message: ValuesAt<Types, "message">;
  /** Values in the metadata of the request. */
  readonly request: ValuesAt<Types, "request">;
  /** Values in the data parts of the message. */
  readonly data: DataOf<Types["data"]>;
}

/** An extension's values in an event, a message or a task, for a client. Missing and invalid values are absent. */
export interface EventReads<Types extends ExtensionTypes> {
  /** Values in the metadata of the message: the reply, or the message of the status. */
  readonly message: ValuesAt<Types, "message">;
  /** Values in the metadata of the artifact; for a task, of its last artifact. */
  readonly artifact: ValuesAt<Types, "artifact">;
  /** Values in the metadata of the task. */
  readonly task: ValuesAt<Types, "task">;
  /** Values in the metadata of the status update. */
  readonly statusUpdate: ValuesAt<Types, "statusUpdate">;
  /** Values in the metadata of the artifact update. */
  readonly artifactUpdate: ValuesAt<Types, "artifactUpdate">;
  /** Values in the data parts of the message or the artifact; for a task, of its artifacts. */
  readonly data: DataOf<Types["data"]>;
  /** The sub-state, if the state has one. */
  readonly subState: Types["subStates"] | undefined;
}
