import type { Clock, Logger } from "../base/index.ts";
import type {
  AgentCard,
  AgentExtension,
  JsonObject,
  Message,
  Part,
  SendMessageRequest,
  StandardSchema,
  StreamResponse,
  Task,
  TaskState,
} from "../model/index.ts";
import type { AgentEvent, StatusEvent } from "./agent-event.ts";
import type { DelegatingCall, DelegationWatch } from "./delegation.ts";
import type { AuthorizationInit, OpenAuthorization } from "./authorization.ts";
import type { TurnRows } from "./extension-rows.ts";
import type { CoreName, OperationName, Operations } from "./operations.ts";
import type { AgentService, CallContext, Principal } from "./service.ts";

/* An extension of the protocol (A2A 1.0 §4.6), as a server, an agent and a client are given it. `defineExtension()` makes one. */

/**
 * What an extension is about (A2A, topic "Extensions"). `data`: it adds data and changes nothing else, so it can neither be required nor
 * fail a task. `profile`: it narrows what messages may be. `method`: it adds methods. `state`: it refines the states of a task.
 */
export type ExtensionKind = "data" | "profile" | "method" | "state";

/** The objects with metadata, in which an extension may put data. `request` is a `SendMessageRequest`. */
export type MetadataPlace = "request" | "message" | "part" | "artifact" | "task" | "statusUpdate" | "artifactUpdate";

/** A value in a metadata map. */
export interface MetadataField<Value = unknown> {
  /** Its key, or several: the first one is written, and any of them is read. Default: the URI, a slash, and the name of the field. */
  readonly key?: string | readonly [string, ...string[]];
  /** What it may be. It must answer at once, not by a promise. */
  readonly schema: StandardSchema<Value>;
  /**
   * Whether the value is one of the moment, such as a time, and not of the content: a message that is sent again may have another one and is
   * the same message, and so is an event that a resumed run repeats. Default false.
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

/** A method that an extension adds. Callers have to activate the extension. `extensionMethod()` makes one. */
export interface ExtensionMethod<Request = unknown, Response = unknown> {
  /** What a request may be: a JSON object. It must answer at once. */
  readonly request: StandardSchema<Request>;
  /** What a response may be: a JSON object. It must answer at once. */
  readonly response: StandardSchema<Response>;
  /** Whether the same call twice does what one call does, so that a client may repeat it. Default false. */
  readonly idempotent?: boolean;
  /** Its name over JSON-RPC. Default: its name in `methods`. */
  readonly jsonrpc?: string;
  /** Its HTTP method and its path below the base, such as `/tasks:search`. A GET has its fields in the query, as texts. */
  readonly rest: { readonly method: "GET" | "POST"; readonly path: `/${string}` };
  /** Its path over gRPC, such as `/example.tasks.v1.Search/SearchTasks`. Request and response are `google.protobuf.Struct`. */
  readonly grpc: `/${string}/${string}`;
  /**
   * Answers at the server. The caller has been authenticated and authorized as for any operation. Absent in a value that only clients
   * use: a server refuses it.
   *
   * @throws A2AError what the caller is told. Any other error is an `InternalError` to the caller and a line in the log.
   */
  onCall?(request: Request, call: ExtensionCall): Response | Promise<Response>;
}

/** The methods of an extension by their names, which have a slash, as `tasks/search`: no operation of the protocol has one. */
export type ExtensionMethods = Readonly<Record<`${string}/${string}`, ExtensionMethod>>;

/** What the hooks and the methods of an extension are called with. */
export interface ExtensionCall {
  /** Who calls. */
  readonly principal: Principal;
  /** URIs of all extensions that are active in the call. */
  readonly extensions: readonly string[];
  /** The call itself: its version, its headers, its signal. */
  readonly context: CallContext;
  /** The card of the agent. */
  readonly card: AgentCard;
  /** The operations of the agent, as this caller may use them: with the same authorization, and without interceptors. */
  readonly service: AgentService;
  /**
   * Finds tasks of the caller by their texts: those that `ListTasks` of `service` gives. For extensions with `searchesTasks`; of others it
   * rejects.
   *
   * @throws A2AError `InvalidParams` for a text without a word, what `ListTasks` refuses the caller with, and `Unavailable` while the store
   * makes its index.
   */
  readonly searchTasks: (query: TaskTextQuery) => Promise<FoundTasks>;
  /** Time. */
  readonly clock: Clock;
  /** The log of the server. */
  readonly logger: Logger;
}

/** Which tasks to find by their texts. */
export interface TaskTextQuery {
  /** Words, phrases in quotes, and beginnings of words, which end in `*`. All of them are in the task. Anything else separates words. */
  readonly text: string;
  /** Only tasks of this conversation. */
  readonly contextId?: string;
  /** Only tasks in this state. */
  readonly status?: TaskState;
  /** Most tasks. */
  readonly limit: number;
  /** How many of the first tasks to leave out: those of the pages before. Default 0. */
  readonly skip?: number;
}

/** Tasks that were found by their texts, the best first. */
export interface FoundTasks {
  /** The tasks. One that is deleted meanwhile is missing. */
  readonly tasks: readonly FoundTask[];
  /** How many there are on all pages. */
  readonly total: number;
}

/** A task that was found by its texts. */
export interface FoundTask {
  /** The task, without its history and its artifacts. */
  readonly task: Task;
  /** Parts of its texts with the words, the best first. At most three. */
  readonly snippets: readonly TaskSnippet[];
}

/** A part of a text of a task. */
export interface TaskSnippet {
  /** The message of the history that has the text. */
  readonly messageId?: string;
  /** The artifact that has it. */
  readonly artifactId?: string;
  /** About 160 characters of the text. */
  readonly text: string;
  /** Where the words are in `text`, in UTF-16 units, in order. */
  readonly marks: readonly { readonly start: number; readonly end: number }[];
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

/**
 * The rows that an extension keeps with a task. Changes are stored in the transaction of what the hook returns, or not at all.
 * Only this extension sees the rows. They are deleted with the task. The store bounds them (`featureBounds`).
 */
export interface TaskRows {
  /**
   * Sets a row. `value` is JSON text. `due`: when somebody has to look at it, in whole milliseconds since the Unix epoch;
   * `Store.dueFeatures` returns the row from then on, under the URI of the extension.
   *
   * @throws TypeError for what the store does not accept, and after the hook has returned.
   */
  set(key: string, value: string, options?: { readonly due?: number }): void;
  /** Deletes a row. Throws as `set` does. */
  delete(key: string): void;
  /**
   * What is stored, in the order in which keys were set first. Empty where the message makes its task. What is set after it is stored only
   * where those rows are still as they were read. Else the hook runs again: of two messages at a time, one comes first.
   */
  read(): Promise<readonly ExtensionRow[]>;
}

/** A row that an extension keeps with a task. */
export interface ExtensionRow {
  /** Its key, unique in its task and extension. */
  readonly key: string;
  /** JSON text. */
  readonly value: string;
  /** When somebody has to look at it, in milliseconds since the Unix epoch. */
  readonly due?: number;
}

/** A status, an artifact, or a reply of the agent. */
export type AppendedEvent = Exclude<AgentEvent, { readonly kind: "checkpoint" }>;

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

/* What an extension's metadata and data are for those who read and write them. */

/** The value of a schema or a field. */
type ValueOf<Field> =
  Field extends StandardSchema<infer Value>
    ? Value
    : Field extends { readonly schema: StandardSchema<infer Value> }
      ? Value
      : never;

/** The values of some fields, each absent where it is missing or does not fit. */
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
  /**
   * A data part of the extension.
   *
   * @throws TypeError where the value does not fit its schema.
   */
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
  /** The sub-state, where the state has one. */
  readonly subState: Types["subStates"] | undefined;
}

/** What `turn.ext()` gives for an extension. */
export type TurnOf<E> = E extends { readonly "~types"?: infer Types extends ExtensionTypes } ? Types["turn"] : never;

/** What `event.ext()` gives for an extension. */
export type EventOf<E> = E extends { readonly "~types"?: infer Types extends ExtensionTypes } ? Types["event"] : never;

/** The extensions of an agent or a client: those of `{ extensions: [...] }`. */
export type ExtensionsOf<Types> = Types extends { readonly extensions: readonly (infer E extends AnyExtension)[] }
  ? E
  : never;
