/**
 * The extension for resumable streams. Its README is the specification.
 * @packageDocumentation
 */

import { resumeExtension } from "../../protocol/index.ts";
import { defineExtension, type DefinedExtension, type NoData } from "../index.ts";

/** The extension for resumable streams. */
export type ResumableStreams = DefinedExtension<typeof resumeExtension, NoData>;

/**
 * Resumable streams. `client.ext(resumableStreams).declared` shows whether an agent supports them. Parley servers declare the extension themselves,
 * and Parley clients resume streams if the card declares it, so neither needs this value.
 */
export const resumableStreams: ResumableStreams = defineExtension({
  uri: resumeExtension,
  description: "Streams continue after Last-Event-ID",
});
