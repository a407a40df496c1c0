/**
 * The extension for idempotent sends. Its README is the specification.
 * @packageDocumentation
 */

import { idempotentSendExtension } from "../../protocol/index.ts";
import { defineExtension, type DefinedExtension, type NoData } from "../index.ts";

/** The extension for idempotent sends. */
export type IdempotentSends = DefinedExtension<typeof idempotentSendExtension, NoData>;

/**
 * Idempotent sends, which a client can retry. `client.ext(idempotentSends).declared` shows whether an agent supports them. Parley servers declare the
 * extension themselves, and Parley clients retry sends if the card declares it, so neither needs this value.
 */
export const idempotentSends: IdempotentSends = defineExtension({
  uri: idempotentSendExtension,
  description: "A send repeated with its messageId and content joins the first one",
});
