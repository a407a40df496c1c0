/**
 * The extension for sends that can be repeated. Its README is the specification.
 * @packageDocumentation
 */

import { idempotentSendExtension, type EventReads, type ExtensionTypes, type TurnReads } from "../../protocol/index.ts";
import { defineExtension, type DefinedExtension } from "../index.ts";

/** The types of an extension that adds no data. */
interface NoData extends ExtensionTypes {
  readonly metadata: Readonly<Record<never, never>>;
  readonly data: Readonly<Record<never, never>>;
  readonly subStates: never;
  readonly methods: Readonly<Record<never, never>>;
  readonly turn: TurnReads<NoData>;
  readonly event: EventReads<NoData>;
}

/** The extension for sends that can be repeated. */
export type IdempotentSends = DefinedExtension<typeof idempotentSendExtension, NoData>;

/**
 * Sends that can be repeated. `client.ext(idempotentSends).declared` says whether an agent has them. Servers of this package declare
 * them by themselves, and its clients repeat sends wherever the card declares it, so neither needs this value.
 */
export const idempotentSends: IdempotentSends = defineExtension({
  uri: idempotentSendExtension,
  description: "A send repeated with its messageId and content joins the first one",
});
