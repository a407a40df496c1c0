import { A2AError, type StreamResponse } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { Codec } from "../wire/codec.ts";

/** The two forms of bodies, and the versions that have them. */
export interface BodyForms {
  /** A StreamResponse, as since 1.0 (§4.3.3). */
  readonly streamResponse: Codec;
  /** An object that says by its `kind` what it is, most often the task, as in 0.3. */
  readonly kind: Codec;
}

/** The members of a StreamResponse. ProtoJSON may spell them as proto does (A2A 1.0 §5.5). */
const members = ["task", "message", "statusUpdate", "artifactUpdate", "status_update", "artifact_update"];

/**
 * The event in a body. The body itself tells its form, because SDKs send both forms with the same media type, and not all name
 * the version.
 *
 * @throws A2AError `InvalidParams` with the wrong fields.
 */
export function readEvent(value: unknown, { streamResponse, kind }: BodyForms): StreamResponse {
  if (!isObject(value)) throw new A2AError("InvalidParams", "The body is no event");
  const codec = members.some((name) => Object.hasOwn(value, name)) ? streamResponse : kind;
  try {
    return codec.shapes.decodeEvent(value);
  } catch (thrown) {
    if (!(thrown instanceof A2AError)) throw thrown;
    const { fields } = thrown;
    throw new A2AError("InvalidParams", "The body is no event of the protocol", { fields, cause: thrown });
  }
}

/**
 * The task of an event.
 *
 * @throws A2AError `InvalidParams` where a message names none: it belongs to no webhook.
 */
export function taskOf({ task, message, statusUpdate, artifactUpdate }: StreamResponse): string {
  const id = task?.id ?? (statusUpdate ?? artifactUpdate ?? message)?.taskId ?? "";
  if (id === "") throw new A2AError("InvalidParams", "The event names no task");
  return id;
}
