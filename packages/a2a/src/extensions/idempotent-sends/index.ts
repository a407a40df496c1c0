/**
 * The extension for sends that can be repeated. Its README is the specification.
 * @packageDocumentation
 */

import { idempotentSendExtension } from "../../protocol/index.ts";
import { defineExtension, type DefinedExtension, type NoData } from "../index.ts";

/** The extension for sends that can be repeated. */
export type IdempotentSends = DefinedExtension<typeof idempotentSendExtension, NoData>;

/**
 * Sends that can be repeated. `client.ext(idempotentSends).declared` says whether an agent has them. Servers of Parley
 * declare them on their own, and its clients repeat sends if the card declares the extension, so neither needs this value.
 */
export const idempotentSends: IdempotentSends = defineExtension({
  uri: idempotentSendExtension,
  description: "A send repeated with its messageId and content joins the first one",
});
