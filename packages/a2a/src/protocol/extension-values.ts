import type { JsonObject, Part, StandardSchema, TaskState } from "../model/index.ts";
import type { ExtensionMethods } from "./extension-methods.ts";

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
