import type { EventReads, ExtensionTypes, MetadataField } from "../../protocol/index.ts";
import { defineExtension, type DefinedExtension } from "../index.ts";
import { standardSchema } from "../schemas.ts";
import { TurnPresentations, type Presentations } from "./authorize.ts";
import { metadataSchema, oid4vpUri, paramsSchema, type Oid4vpMetadata } from "./request.ts";

/** The types of the OID4VP extension. */
interface Oid4vpTypes extends ExtensionTypes {
  readonly metadata: { readonly message: Readonly<Record<"authorization", MetadataField<Oid4vpMetadata>>> };
  readonly data: Readonly<Record<never, never>>;
  readonly subStates: never;
  readonly methods: Readonly<Record<never, never>>;
  readonly turn: Presentations;
  readonly event: EventReads<Oid4vpTypes>;
}

/** The OID4VP extension. `event.ext(oid4vp)?.message.authorization` has the request of a status message. */
export type Oid4vpExtension = DefinedExtension<string, Oid4vpTypes>;

/**
 * The extension for OID4VP in-task authorization: an agent asks for a presentation of credentials in the middle of a task.
 *
 * @example
 * ```ts
 * const server = await serve(agent, { extensions: [oid4vp] });
 * ```
 */
export const oid4vp: Oid4vpExtension = defineExtension({
  uri: oid4vpUri,
  description: "Provides an option to use OpenID for Verifiable Presentations (OID4VP) for In-Task Authorization",
  params: { oid4vpVersions: ["1.0"] },
  paramsSchema: standardSchema(paramsSchema),
  metadata: { message: { authorization: { key: oid4vpUri, schema: standardSchema(metadataSchema) } } },
  onTurnStart: (turn): Presentations => new TurnPresentations(turn),
});
