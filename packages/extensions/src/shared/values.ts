import { jsonBytes } from "@parley/a2a/internal/extensions/schemas";
import {
  A2AError,
  check,
  type JsonLike,
  type JsonObject,
  type JsonValue,
  type Message,
  type SendMessageRequest,
} from "@parley/a2a/internal/model/index";
import { satisfying, string, type Schema } from "@parley/a2a/internal/model/schema";

/** Text of limited length, in characters. */
export function text(max: number, min = 1): Schema<string> {
  const description = `must be a string of ${min} to ${max} characters`;
  return satisfying(string, description, ({ length }) => length >= min && length <= max);
}

/** A value of limited size, in bytes of JSON. */
export function atMost<T>(maxBytes: number, schema: Schema<T>): Schema<T> {
  return satisfying(
    schema,
    `must not be larger than ${maxBytes} bytes of JSON`,
    (value) => jsonBytes(value) <= maxBytes,
  );
}

/** A checked copy of a value; `undefined` if it does not fit. */
export function fitting<T>(schema: Schema<T>, value: unknown): T | undefined {
  const checked = check(schema, value, "copy");
  return checked.ok ? checked.value : undefined;
}

/** The SHA-256 of a value as JSON, in hexadecimal digits. The order of members counts. */
export async function digestOf(value: unknown): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify(value)));
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A mistake of the agent in a call such as `charge()`. The operator sees it, and the task fails. */
export function mistake(call: string, description: string): A2AError {
  return new A2AError("InvalidAgentResponse", `${call}: ${description}`);
}

/** The request that sends a message. A string is its text. */
export function requestOf(message: string | SendMessageRequest): SendMessageRequest {
  if (typeof message !== "string") return message;
  return { message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: message }] } };
}

/** `value`: parsed JSON. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `value`: parsed JSON. */
export function isJsonList(value: unknown): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** Types a value as JSON. Only needed if its type is an interface, because interfaces have no index signature. */
export function jsonOf<T extends JsonLike<T> & object>(value: T): JsonObject {
  return value as JsonObject;
}

/** Whether a client's request sends a message. */
export function sendsMessage<Request>(
  request: Request,
  operation: string,
): request is Request & { readonly message: Message } {
  return (operation === "SendMessage" || operation === "SendStreamingMessage") && isJsonObject(request);
}
