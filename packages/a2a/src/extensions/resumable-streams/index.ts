/**
 * The extension for streams that can be resumed. Its README is the specification.
 * @packageDocumentation
 */

import { resumeExtension, type EventReads, type ExtensionTypes, type TurnReads } from "../../protocol/index.ts";
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

/** The extension for streams that can be resumed. */
export type ResumableStreams = DefinedExtension<typeof resumeExtension, NoData>;

/**
 * Streams that can be resumed. `client.ext(resumableStreams).declared` says whether an agent has them. Servers of this package declare
 * them by themselves, and its clients resume streams wherever the card declares it, so neither needs this value.
 */
export const resumableStreams: ResumableStreams = defineExtension({
  uri: resumeExtension,
  description: "Streams continue after Last-Event-ID",
});
