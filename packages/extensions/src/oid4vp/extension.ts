import type { EventReads, ExtensionTypes, MetadataField } from "@parley/a2a/internal/protocol/index";
import { defineExtension, type DefinedExtension } from "@parley/a2a/internal/extensions/index";
import { standardSchema } from "@parley/a2a/internal/extensions/schemas";
import { TurnPresentations, type Presentations } from "./authorize.ts";
import { metadataSchema, oid4vpUri, paramsSchema, type Oid4vpMetadata } from "./request.ts";
import { WalletSchemes, type WalletSchemesOptions } from "./schemes.ts";

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
export const oid4vp: Oid4vpExtension = oid4vpWith({});

/**
 * The same for links with schemes of apps. An agent whose requests have such a link takes it, and so do its clients.
 *
 * @throws TypeError for a scheme that can be none of a wallet, such as `javascript`.
 *
 * @example
 * ```ts
 * const presentations = oid4vpWith({ walletSchemes: ["com.example.wallet"] });
 * ```
 */
export function oid4vpWith(options: WalletSchemesOptions): Oid4vpExtension {
  const schemes = new WalletSchemes(options);
  return defineExtension({
    uri: oid4vpUri,
    description: "Provides an option to use OpenID for Verifiable Presentations (OID4VP) for In-Task Authorization",
    params: { oid4vpVersions: ["1.0"] },
    paramsSchema: standardSchema(paramsSchema),
    metadata: { message: { authorization: { key: oid4vpUri, schema: standardSchema(metadataSchema(schemes)) } } },
    onTurnStart: (turn): Presentations => new TurnPresentations(turn, schemes),
  });
}
