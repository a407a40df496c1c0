import { utf8Length, type Clock } from "@parley/a2a/internal/base/index";
import { retryAfterOf } from "@parley/a2a/internal/base/http";
import {
  A2AError,
  toA2AError,
  type Artifact,
  type JsonObject,
  type StreamResponse,
  type Task,
  type TaskStatus,
} from "@parley/a2a/internal/model/index";
import { guardedFetch, type GuardedFetch } from "@parley/a2a/internal/net/index";
import { Payload, type DeliveryResult } from "@parley/a2a/internal/protocol/index";
import { mutualTlsScheme, standardWebhooksScheme, webhookHeaders } from "@parley/a2a/internal/webhooks/index";
import { referenceKey } from "@parley/a2a/internal/webhooks/names";
import type { Codec } from "@parley/a2a/internal/wire/codec";
import type { Health } from "./circuit.ts";
import type { PushEvent } from "./events.ts";
import type { PushSecrets, PushSettings, PushSigner } from "./port.ts";
import type { StoredConfig } from "./stored.ts";
import { isObject } from "@parley/a2a/internal/model/schema";

/* A delivery attempt: body, headers, request, the meaning of its answer, and when to retry (docs/decisions/webhooks.md). */

/** The part of a protocol version's codec that writes webhook bodies. */
export type WebhookCodec = Pick<Codec, "shapes" | "webhook" | "version" | "aliases">;

/** The body of an event. If the body exceeds `maxBytes`, the event is replaced by a reference without content. */
export function bodyOf(codec: WebhookCodec, event: PushEvent, maxBytes: number): string {
  const { payload, left } = event;
  const body = left === undefined ? write(codec, event) : undefined;
  const bytes = left ?? utf8Length(body ?? "");
  if (body !== undefined && bytes <= maxBytes) return body;
  return write(codec, { ...event, payload: new Payload(referenceTo(payload.read(), bytes)) });
}

function write({ shapes, webhook }: WebhookCodec, { payload, seq, generation }: PushEvent): string {
  if (webhook.sends === "event") {
    return shapes.encodeEvent({ payload, seq, ...(generation !== undefined && { generation }) });
  }
  return shapes.encodeResponse("GetTask", { payload: payload.map(({ task }) => task as Task) });
}

/** The event without content. `bytes`: the size that its body would have had. */
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

/** An artifact without content. It needs at least one part (A2A 1.0 §4.1.7). */
function empty({ artifactId }: Artifact): Artifact {
  return { artifactId, parts: [{ text: "" }] };
}

export interface PushMessage {
  /** The `webhook-id`. */
  readonly id: string;
  /** The number of the delivery among the deliveries of its config. */
  readonly sequence: number;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  readonly taskId: string;
  readonly generation: number | undefined;
  readonly trace: string | undefined;
  readonly contentType: string;
  readonly body: string;
}

/** Scheme names are case-insensitive in HTTP. */
export function isScheme(scheme: string | undefined, name: string): boolean {
  return scheme?.toLowerCase() === name.toLowerCase();
}

/** The headers of a delivery. `now`: milliseconds since the Unix epoch. Rejects if the delivery cannot be signed. */
export async function headersOf(
  signer: PushSigner,
  now: number,
  { url, version, scheme }: Pick<StoredConfig, "url" | "version" | "scheme">,
  { token, credentials }: PushSecrets,
  { id, sequence, attempt, taskId, generation, trace, contentType, body }: PushMessage,
): Promise<Record<string, string>> {
  const timestamp = Math.floor(now / 1000);
  const signed = { id, timestamp, body };
  const secret = isScheme(scheme, standardWebhooksScheme) ? credentials : undefined;
  const headers: Record<string, string> = {
    "content-type": contentType,
    [webhookHeaders.version]: version,
    [webhookHeaders.id]: id,
    [webhookHeaders.timestamp]: String(timestamp),
    [webhookHeaders.signature]: await signer.signature(signed, secret),
    [webhookHeaders.sequence]: String(sequence),
    [webhookHeaders.attempt]: String(attempt),
  };
  if (generation !== undefined) headers[webhookHeaders.generation] = String(generation);
  if (trace !== undefined) headers["traceparent"] = trace;
  if (token !== undefined) {
    headers[webhookHeaders.token] = token;
    headers[webhookHeaders.tokenOfGo] = token;
  }
  if (secret !== undefined || scheme === undefined || isScheme(scheme, mutualTlsScheme)) return headers;
  if (credentials !== undefined) {
    headers["authorization"] = `${scheme} ${credentials}`;
    if (isScheme(scheme, "ApiKey")) headers["x-api-key"] = credentials;
  } else if (isScheme(scheme, "Bearer")) {
    headers["authorization"] = `Bearer ${await signer.jwt(signed, { audience: url, taskId })}`;
  }
  return headers;
}

/** Returns the `fetch` for receivers with this authentication scheme. */
export type FetchFor = (scheme: string | undefined) => GuardedFetch;

/** Presents the client certificate only to configs that request it. */
export function fetches({ net, dialer, mutualTls }: PushSettings, clock: Clock): FetchFor {
  const plain = guardedFetch(net, dialer, clock);
  // A stored config may need a certificate that the server no longer has.
  const mutual: GuardedFetch =
    mutualTls === undefined
      ? () => Promise.reject(new A2AError("InvalidParams", "This server has no client certificate"))
      : guardedFetch(net, mutualTls, clock);
  return (scheme) => (isScheme(scheme, mutualTlsScheme) ? mutual : plain);
}

/** The result of an attempt. */
export type Answer =
  | { readonly kind: "delivered"; readonly status: number }
  /** The receiver wants no more events (410). */
  | { readonly kind: "gone"; readonly status: number }
  /** The receiver rejected the event permanently. */
  | { readonly kind: "refused"; readonly status: number; readonly reason: string }
  /** The attempt failed, but a later attempt may succeed. */
  | {
      readonly kind: "failed";
      readonly reason: string;
      readonly status?: number;
      /** `Retry-After` of the receiver, in seconds. */
      readonly retryAfter?: number | undefined;
      readonly health: Health;
      /** The error of the request. Set if there was no answer. */
      readonly error?: A2AError;
    }
  /** This server aborted the request. */
  | { readonly kind: "aborted" };

export interface Post {
  readonly fetchFor: FetchFor;
  readonly clock: Clock;
  /** One controller for each running request, to abort it. A signal shared by all requests would have too many listeners. */
  readonly requests: Set<AbortController>;
}

/** Posts a body, and reads the whole answer. Never rejects. */
export async function post(
  { fetchFor, clock, requests }: Post,
  { url, scheme }: Pick<StoredConfig, "url" | "scheme">,
  { headers, body }: { readonly headers: Readonly<Record<string, string>>; readonly body: string },
): Promise<Answer> {
  const controller = new AbortController();
  const { signal } = controller;
  requests.add(controller);
  try {
    const response = await fetchFor(scheme)(url, { method: "POST", headers, body, signal });
    const reader = response.body?.getReader();
    // Read to the end, so that the connection can be reused, and because a truncated answer is not a success.
    while (reader !== undefined && !(await reader.read()).done);
    return answerOf(response.status, response.headers.get("retry-after"), clock.now());
  } catch (thrown) {
    return signal.aborted ? { kind: "aborted" } : failureOf(toA2AError(thrown), url);
  } finally {
    requests.delete(controller);
  }
}

/** Statuses below 500 for which a retry may succeed. */
const transient: readonly number[] = [408, 425, 429];
/** Statuses of a proxy that does not reach its server. */
const dead: readonly number[] = [502, 503, 504];

function answerOf(status: number, wait: string | null, now: number): Answer {
  if (status >= 200 && status < 300) return { kind: "delivered", status };
  if (status === 410) return { kind: "gone", status };
  if (status >= 500 || transient.includes(status)) {
    const retryAfter = transient.includes(status) || status === 503 ? retryAfterOf(wait, now) : undefined;
    const health = dead.includes(status) ? "dead" : "unclear";
    return { kind: "failed", reason: `The receiver answered with the status ${status}`, status, retryAfter, health };
  }
  const what = status < 400 ? `a redirect (${status}), which is not followed` : `the status ${status}`;
  return { kind: "refused", status, reason: `The receiver answered with ${what}` };
}

/** The reason does not contain `url`, because its query may be secret. */
function failureOf(error: A2AError, url: string): Answer {
  // `InvalidParams`: the request was not sent, so nothing is known about the receiver.
  const health = error.code === "InvalidParams" ? "unclear" : "dead";
  return { kind: "failed", reason: reasonOf(error, url), health, error };
}

function reasonOf(error: A2AError, url: string): string {
  const { code, message, cause } = error;
  if (code === "Timeout" || code === "InvalidResponse") return message;
  if (code === "InvalidParams") {
    return URL.canParse(url) ? message.replaceAll(new URL(url).hostname, "its host") : message;
  }
  const found = codeOf(cause);
  return found === undefined ? "The connection failed" : `The connection failed (${found})`;
}

/** The error code of Node or its TLS, such as `ECONNREFUSED`. Error messages are not used, because they may contain addresses. */
function codeOf(cause: unknown): string | undefined {
  for (let at = cause, depth = 0; depth < 4 && isObject(at); depth += 1) {
    const { code, cause: next } = at;
    if (typeof code === "string" && /^[A-Z][A-Z0-9_]{2,63}$/.test(code)) return code;
    at = next;
  }
  return undefined;
}

/** The origin of a URL, without the path, which may be secret. */
export function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : "";
}

/** Converts an answer for the observer. */
export function resultOf(answer: Answer): DeliveryResult {
  switch (answer.kind) {
    case "delivered":
      return { status: answer.status };
    case "gone":
      return { status: answer.status, error: new A2AError("InvalidResponse", "The receiver wants no more events") };
    case "aborted":
      return { error: new A2AError("Aborted", "The server is stopping") };
    default: {
      const error =
        (answer.kind === "failed" ? answer.error : undefined) ?? new A2AError("InvalidResponse", answer.reason);
      return answer.status === undefined ? { error } : { status: answer.status, error };
    }
  }
}

const day = 24 * 60 * 60 * 1000;
/** Jitter: each wait varies by up to this share, so that simultaneous failures are not retried simultaneously. */
const jitter = 0.2;
/** Maximum wait. If a row is due later than this, it was deferred before the clock was set back. */
const maxWait = 30 * day;

/**
 * How long to wait after a failed attempt, in milliseconds; `undefined`: no attempt is left.
 *
 * @param failures - Failed attempts of this delivery, this one included.
 * @param waits - Waits between attempts, in milliseconds.
 * @param retryAfter - `Retry-After` in seconds. Limited to a day.
 * @param random - From 0 to 1.
 */
export function waitAfter(
  failures: number,
  waits: readonly number[],
  retryAfter: number | undefined,
  random: number,
): number | undefined {
  const wait = waits[failures - 1];
  if (wait === undefined) return undefined;
  const own = wait * (1 - jitter + 2 * jitter * random);
  return Math.ceil(Math.min(maxWait, Math.max(own, Math.min(day, (retryAfter ?? 0) * 1000))));
}

/** The longest wait that `waitAfter` returns. */
export function longestWait(waits: readonly number[]): number {
  return Math.ceil(Math.min(maxWait, Math.max(day, ...waits) * (1 + jitter)));
}
