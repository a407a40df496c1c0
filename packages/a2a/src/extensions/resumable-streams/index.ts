/**
 * The extension for streams that can be resumed. Its README is the specification.
 * @packageDocumentation
 */

import { resumeExtension } from "../../protocol/index.ts";
import { defineExtension, type DefinedExtension, type NoData } from "../index.ts";

/** The extension for streams that can be resumed. */
export type ResumableStreams = DefinedExtension<typeof resumeExtension, NoData>;

/**
 * Streams that can be resumed. `client.ext(resumableStreams).declared` says whether an agent has them. Servers of Parley
 * declare them on their own, and its clients resume streams if the card declares the extension, so neither needs this value.
 */
export const resumableStreams: ResumableStreams = defineExtension({
  uri: resumeExtension,
  description: "Streams continue after Last-Event-ID",
});
