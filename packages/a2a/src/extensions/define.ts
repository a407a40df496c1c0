import type {
  DataPartFields,
  EventReads,
  Extension,
  ExtensionCall,
  ExtensionMethod,
  ExtensionMethods,
  ExtensionTurn,
  ExtensionTypes,
  MetadataFieldsByPlace,
  SubState,
  TurnReads,
} from "../protocol/index.ts";
import { checkDefinition } from "./definition.ts";
import type { Part, StandardSchema, StreamResponse } from "../model/index.ts";

/** The types of an extension's declarations, before the types of `turn.ext()` and `event.ext()`. */
export interface DeclaredTypes<
  Metadata extends MetadataFieldsByPlace,
  Data extends DataPartFields,
  SubStates extends string,
  Methods extends ExtensionMethods,
> extends ExtensionTypes {
  readonly metadata: Metadata;
  readonly data: Data;
  readonly subStates: SubStates;
  readonly methods: Methods;
}

/** The argument of `defineExtension()`: an extension, with the types of its values. */
export type ExtensionDefinition<Uri extends string, Types extends ExtensionTypes, TurnApi, EventApi> = Omit<
  Extension<Types>,
  "uri" | "subStates" | "onTurnStart" | "onEvent" | "~types"
> & {
  /** The URI on the card, which callers request. */
  readonly uri: Uri;
  /** Its sub-states, by name. */
  readonly subStates?: { readonly [Name in Types["subStates"]]: SubState };
  /** Called when a turn starts. `turn.ext()` returns its result. */
  onTurnStart?(turn: ExtensionTurn, reads: TurnReads<Types>): TurnApi;
  /** Called when a client receives an event, a message or a task. `event.ext()` returns its result. */
  onEvent?(event: StreamResponse, reads: EventReads<Types>): EventApi;
};

/** A method of this name. */
type NamedMethod<Name, Method> = Name extends keyof ExtensionMethods
  ? Method
  : "The name of a method has a slash, such as notes/find";

type None = Readonly<Record<never, never>>;

/** The types of an extension without fields in messages, events or artifacts. */
export interface NoData extends ExtensionTypes {
  readonly metadata: None;
  readonly data: None;
  readonly subStates: never;
  readonly methods: None;
  readonly turn: TurnReads<NoData>;
  readonly event: EventReads<NoData>;
}

/** An extension with its types. */
export type DefinedExtension<Uri extends string, Types extends ExtensionTypes> = Extension<Types> & {
  /** The URI on the card. */
  readonly uri: Uri;
};

/**
 * Defines an extension of the protocol (A2A 1.0 §4.6): one value for servers, agents and clients.
 *
 * @throws A2AError `InvalidParams` that names each wrong field.
 *
 * @example
 * ```ts
 * import * as z from "zod";
 *
 * const drafts = defineExtension({
 *   uri: "https://example.com/extensions/drafts/v1",
 *   description: "Artifacts say that they are drafts",
 *   kind: "data",
 *   metadata: { artifact: { draft: z.boolean() } },
 * });
 * ```
 */
export function defineExtension<
  const Uri extends string,
  Metadata extends MetadataFieldsByPlace = object,
  Data extends DataPartFields = None,
  SubStates extends string = never,
  Methods extends ExtensionMethods = None,
  TurnApi = TurnReads<DeclaredTypes<Metadata, Data, SubStates, Methods>>,
  EventApi = EventReads<DeclaredTypes<Metadata, Data, SubStates, Methods>>,
  Params = unknown,
>(
  // Named again, so that the compiler knows the type of the part before it has inferred `Data`.
  definition: ExtensionDefinition<Uri, DeclaredTypes<Metadata, Data, SubStates, Methods>, TurnApi, EventApi> & {
    readonly data?: { readonly [Name in keyof Data]: Data[Name] & { readonly matches?: (part: Part) => boolean } };
    readonly paramsSchema?: StandardSchema<Params>;
    readonly methods?: { readonly [Name in keyof Methods]: NamedMethod<Name, Methods[Name]> };
  },
): DefinedExtension<
  Uri,
  DeclaredTypes<Metadata, Data, SubStates, Methods> & {
    readonly turn: TurnApi;
    readonly event: EventApi;
    readonly params: Params;
  }
> {
  const extension = { ...definition };
  checkDefinition(extension, "", true);
  return Object.freeze(extension) as never;
}

/**
 * A method of an extension, with the types of its schemas.
 *
 * @example
 * ```ts
 * import * as z from "zod";
 *
 * const search = extensionMethod({
 *   request: z.object({ text: z.string() }),
 *   response: z.object({ ids: z.array(z.string()) }),
 *   rest: { method: "POST", path: "/tasks:search" },
 *   grpc: "/example.tasks.v1.Search/SearchTasks",
 *   onCall: ({ text }) => ({ ids: [text] }),
 * });
 * ```
 */
export function extensionMethod<Request, Response>(
  method: Omit<ExtensionMethod<Request, Response>, "onCall"> & {
    onCall?(request: Request, call: ExtensionCall): Response | Promise<Response>;
  },
): ExtensionMethod<Request, Response> {
  return method;
}
