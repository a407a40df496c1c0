import { A2AError, invalidParams, type StreamResponse } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { Codec } from "../wire/codec.ts";
import type { UniversalResponse } from "../protocol/index.ts";
import type { WebhookReceiverOptions } from "./port.ts";

/** The two forms of bodies, and the versions that have them. */
export interface BodyForms {
  /** A StreamResponse, as in 1.0 and later (§4.3.3). */
  readonly streamResponse: Codec;
  /** An object with a discriminator `kind`, most often a task, as in 0.3. */
  readonly kind: Codec;
}

/** The members of a StreamResponse. ProtoJSON may spell them as proto does (A2A 1.0 §5.5). */
const members = ["task", "message", "statusUpdate", "artifactUpdate", "status_update", "artifact_update"];

/**
 * The event in a body. The body itself shows its form, because SDKs send both forms with the same media type, and not all name
 * the version.
 *
 * @throws A2AError `InvalidParams` with the wrong fields.
 */
export function readEvent(value: unknown, { streamResponse, kind }: BodyForms): StreamResponse {
  if (!isObject(value)) throw new A2AError("InvalidParams", "The body is not an event");
  const codec = members.some((name) => Object.hasOwn(value, name)) ? streamResponse : kind;
  try {
    return codec.shapes.decodeEvent(value);
  } catch (thrown) {
    if (!(thrown instanceof A2AError)) throw thrown;
    const { fields } = thrown;
    throw new A2AError("InvalidParams", "The body is not a valid event", { fields, cause: thrown });
  }
}

/**
 * The task of an event.
 *
 * @throws A2AError `InvalidParams` if a message has no task id: webhooks always belong to a task.
 */
export function taskOf({ task, message, statusUpdate, artifactUpdate }: StreamResponse): string {
  const id = task?.id ?? (statusUpdate ?? artifactUpdate ?? message)?.taskId ?? "";
  if (id === "") throw new A2AError("InvalidParams", "The event names no task");
  return id;
}

const longest = 1024;

/**
 * The answer to a challenge, by which a server verifies that the receiver wants the events of a webhook. `undefined` if the body is not a challenge.
 * Events have no member `challenge`.
 */
export function challengeOf(body: string): UniversalResponse | undefined {
  if (body.length > longest || !body.includes('"challenge"')) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (!isObject(value) || typeof value["challenge"] !== "string" || Object.keys(value).length > 1) return undefined;
  return {
    status: 200,
    headers: { "content-type": "application/json", "cache-control": "no-store" },
    body: JSON.stringify({ challenge: value["challenge"] }),
  };
}

/**
 * Checks options at start that would otherwise fail at the first delivery.
 *
 * @throws A2AError `InvalidParams` with the field that is wrong.
 */
export function checkReceiver({ accept, client, memory, onEvent, tolerance }: WebhookReceiverOptions): void {
  if (accept === undefined) throw wrongOption("accept", "must name the trusted senders");
  if (client !== undefined && typeof client.getTask !== "function")
    throw wrongOption("client", "must be a client. connect() returns a promise of one: await it");
  if (memory !== undefined && typeof memory.recall !== "function")
    throw wrongOption("memory", "must be a memory. sqliteWebhookMemory() returns a promise of one: await it");
  if (onEvent !== undefined && typeof onEvent !== "function") throw wrongOption("onEvent", "must be a function");
  if (tolerance !== undefined && !(tolerance >= 0))
    throw wrongOption("tolerance", "must be a number of milliseconds, at least 0");
}

/** The error for an option of a receiver. */
export function wrongOption(field: string, description: string): A2AError {
  return invalidParams([{ field, description }], `Invalid receiver options: ${field} ${description}`);
}
