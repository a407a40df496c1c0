import { utf8Length } from "@parley/a2a/internal/base/index";
import type { Artifact, JsonObject, StreamResponse, Task, TaskStatus } from "@parley/a2a/internal/model/index";
import { Payload } from "@parley/a2a/internal/protocol/index";
import { referenceKey } from "@parley/a2a/internal/webhooks/names";
import type { Codec } from "@parley/a2a/internal/wire/codec";
import type { PushEvent } from "./events.ts";

/* Writes the body of a delivery for the version of its config. */

/** What a version needs to write the body of a webhook. */
export type WebhookCodec = Pick<Codec, "shapes" | "webhook" | "version" | "aliases">;

/** The body of an event as text. One of more than `most` bytes is replaced by a reference. */
export function bodyOf(codec: WebhookCodec, event: PushEvent, most: number): string {
  const { left, payload } = event;
  if (left === undefined) {
    const body = write(codec, event);
    const bytes = utf8Length(body);
    if (bytes <= most) return body;
    return write(codec, { ...event, payload: new Payload(referenceTo(payload.read(), bytes)) });
  }
  return write(codec, { ...event, payload: new Payload(referenceTo(payload.read(), left)) });
}

function write({ shapes, webhook }: WebhookCodec, { payload, seq, generation }: PushEvent): string {
  if (webhook.sends === "event") {
    return shapes.encodeEvent({ payload, seq, ...(generation !== undefined && { generation }) });
  }
  const task = payload.map(({ task }) => task as Task);
  return shapes.encodeResponse("GetTask", { payload: task });
}

/** The same event without content. `bytes`: the size that its body would have had. */
function referenceTo(event: StreamResponse, bytes: number): StreamResponse {
  const { task, statusUpdate, artifactUpdate } = event;
  const metadata: JsonObject = { [referenceKey]: bytes };
  if (statusUpdate !== undefined) {
    const { taskId, contextId, status } = statusUpdate;
    return { statusUpdate: { taskId, contextId, status: bare(status), metadata } };
  }
  if (artifactUpdate !== undefined) {
    const { taskId, contextId, artifact, append, lastChunk } = artifactUpdate;
    const flags = { ...(append !== undefined && { append }), ...(lastChunk !== undefined && { lastChunk }) };
    return { artifactUpdate: { taskId, contextId, artifact: empty(artifact), ...flags, metadata } };
  }
  if (task === undefined) return event;
  const { id, contextId, status } = task;
  return { task: { id, ...(contextId !== undefined && { contextId }), status: bare(status), metadata } };
}

function bare({ state, timestamp }: TaskStatus): TaskStatus {
  return timestamp === undefined ? { state } : { state, timestamp };
}

/** An artifact has at least one part (A2A 1.0 §4.1.7). */
function empty({ artifactId }: Artifact): Artifact {
  return { artifactId, parts: [{ text: "" }] };
}
