import { partsOf, type Content, type JsonObject, type Part, type TaskState } from "../model/index.ts";
import type { AgentEvent, AgentMessage, ArtifactEvent, ArtifactInit } from "../protocol/index.ts";

/* The events that the builders of a turn make. */

export interface StatusOptions<Metadata> {
  readonly keep?: boolean;
  readonly metadata?: Metadata;
  readonly messageMetadata?: JsonObject;
}

/** Metadata without a content makes a message without parts, which is refused with what is missing. */
function messageOf(content?: Content, metadata?: JsonObject): { readonly message?: AgentMessage } {
  if (metadata !== undefined) return { message: { parts: content === undefined ? [] : partsOf(content), metadata } };
  return content === undefined ? {} : { message: { parts: partsOf(content) } };
}

export function status(state: TaskState, content?: Content, options?: StatusOptions<unknown>): AgentEvent {
  return {
    kind: "status",
    state,
    ...messageOf(content, options?.messageMetadata),
    ...(options?.metadata === undefined ? {} : { metadata: options.metadata as JsonObject }),
    ...(options?.keep === undefined ? {} : { keep: options.keep }),
  };
}

export function artifactOf({ open = false, ...artifact }: ArtifactInit & { artifactId: string }): ArtifactEvent {
  return open ? { kind: "artifact", artifact } : { kind: "artifact", artifact, lastChunk: true };
}

export function appendTo(artifactId: string, parts: readonly Part[], last: boolean): ArtifactEvent {
  return {
    kind: "artifact",
    artifact: { artifactId, parts },
    append: true,
    ...(last ? { lastChunk: true } : {}),
  };
}
