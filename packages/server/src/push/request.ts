import { type Clock, utf8Length } from "@parley/a2a/internal/base/index";
import { retryAfterOf } from "@parley/a2a/internal/base/retry-after";
import {
  A2AError,
  type Artifact,
  type JsonObject,
  type StreamResponse,
  type Task,
  type TaskStatus,
  toA2AError,
} from "@parley/a2a/internal/model/index";
import { guardedFetch, type GuardedFetch } from "@parley/a2a/internal/net/index";
import { type DeliveryResult, Payload } from "@parley/a2a/internal/protocol/index";
import { mutualTlsScheme, standardWebhooksScheme, webhookHeaders } from "@parley/a2a/internal/webhooks/index";
import { referenceKey } from "@parley/a2a/internal/webhooks/names";
import type { Codec } from "@parley/a2a/internal/wire/codec";
import type { Health } from "./circuit.ts";
import type { PushEvent } from "./events.ts";
import type { PushSecrets, PushSettings, PushSigner } from "./port.ts";
import type { StoredConfig } from "./stored.ts";

/* One attempt to deliver: the request, and what its answer means (docs/decisions/webhooks.md). */

/** What is sent. */
export interface PushMessage {
  /** The `webhook-id`. */
  readonly id: string;
  /** The number of the delivery among those of its config. */
  readonly sequence: number;
  /** From 1. */
  readonly attempt: number;
  readonly taskId: string;
  readonly generation: number | undefined;
  readonly trace: string | undefined;
  readonly contentType: string;
  readonly body: string;
}

/** What an attempt came to. */
export type Answer =
  | { readonly kind: "delivered"; readonly status: number }
  /** The receiver wants no more events (410). */
  | { readonly kind: "gone"; readonly status: number }
  /** Its last word on this event. */
  | { readonly kind: "refused"; readonly status: number; readonly reason: string }
  | {
      readonly kind: "failed";
      readonly reason: string;
      readonly status?: number;
      /** Seconds that the receiver asked for. */
      readonly retryAfter?: number;
      readonly health: Health;
      /** What happened, where there was no answer. */
      readonly error?: A2AError;
    }
  /** It was aborted by this server. */
  | { readonly kind: "aborted" };

/** What posts. */
export interface Post {
  readonly fetchFor: FetchFor;
  readonly clock: Clock;
  /** The requests that run, so that they can be aborted. One signal for all would have too many listeners. */
  readonly requests: Set<AbortController>;
}

/** Posts a body, and reads the whole answer. It never rejects. */
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
    await readToEnd(response);
    return answerOf(response.status, response.headers.get("retry-after"), clock.now());
  } catch (thrown) {
    const error = toA2AError(thrown);
    return signal.aborted ? { kind: "aborted" } : failureOf(error, url);
  } finally {
    requests.delete(controller);
  }
}

/** Reads to the end, so that the connection can be used again, and so that an answer that breaks off is no success. */
async function readToEnd({ body }: Response): Promise<void> {
  const reader = body?.getReader();
  while (reader !== undefined && !(await reader.read()).done);
}

/** The headers of a message. `now`: milliseconds since the Unix epoch. Rejects where it cannot be signed. */
export async function headersOf(
  signer: PushSigner,
  now: number,
  { url, version, scheme }: Pick<StoredConfig, "url" | "version" | "scheme">,
  { token, credentials }: PushSecrets,
  { id, sequence, attempt, taskId, generation, trace, contentType, body }: PushMessage,
): Promise<Record<string, string>> {
  const timestamp = Math.floor(now / 1000);
  const signed = { id, timestamp, body };
  const is = (name: string): boolean => scheme?.toLowerCase() === name.toLowerCase();
  const secret = is(standardWebhooksScheme) ? credentials : undefined;
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
  if (secret !== undefined || scheme === undefined || is(mutualTlsScheme)) return headers;
  if (credentials !== undefined) {
    headers["authorization"] = `${scheme} ${credentials}`;
    if (is("ApiKey")) headers["x-api-key"] = credentials;
  } else if (is("Bearer")) {
    headers["authorization"] = `Bearer ${await signer.jwt(signed, { audience: url, taskId })}`;
  }
  return headers;
}

/** Statuses below 500 that say that the same request may succeed later. */
const passing: readonly number[] = [408, 425, 429];
/** Statuses whose `Retry-After` counts. */
const asking: readonly number[] = [...passing, 503];
/** Statuses by which a proxy says that there is no server behind it. */
const dead: readonly number[] = [502, 503, 504];

function answerOf(status: number, wait: string | null, now: number): Answer {
  if (status >= 200 && status < 300) return { kind: "delivered", status };
  if (status === 410) return { kind: "gone", status };
  if (status >= 500 || passing.includes(status)) {
    const retryAfter = asking.includes(status) ? retryAfterOf(wait, now) : undefined;
    const health = dead.includes(status) ? "dead" : "unclear";
    const reason = `The receiver answered with the status ${status}`;
    return { kind: "failed", reason, status, ...(retryAfter !== undefined && { retryAfter }), health };
  }
  const isRedirect = status < 400;
  const what = isRedirect ? `a redirect (${status}), which is not followed` : `the status ${status}`;
  return { kind: "refused", status, reason: `The receiver answered with ${what}` };
}

/** Codes of Node and of its TLS, such as `ECONNREFUSED` and `DEPTH_ZERO_SELF_SIGNED_CERT`. Messages may have addresses. */
const safeCode = /^[A-Z][A-Z0-9_]{2,63}$/;

/** `url`: left out of the reason. What it is shown with elsewhere has no query. */
function failureOf(error: A2AError, url: string): Answer {
  // A request that this server refused to send tells nothing about the receiver.
  const health = error.code === "InvalidParams" ? "unclear" : "dead";
  return { kind: "failed", reason: reasonOf(error, url), health, error };
}

function reasonOf(error: A2AError, url: string): string {
  switch (error.code) {
    case "Timeout":
    case "InvalidResponse":
      return error.message;
    case "InvalidParams":
      return URL.canParse(url) ? error.message.replaceAll(new URL(url).hostname, "its host") : error.message;
    default: {
      const code = codeOf(error.cause);
      return code === undefined ? "The connection failed" : `The connection failed (${code})`;
    }
  }
}

function codeOf(cause: unknown): string | undefined {
  for (let at = cause, depth = 0; depth < 4 && typeof at === "object" && at !== null; depth += 1) {
    const { code, cause: next } = at as { readonly code?: unknown; readonly cause?: unknown };
    if (typeof code === "string" && safeCode.test(code)) return code;
    at = next;
  }
  return undefined;
}

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

/* What an answer means to others than its config. */

/** The origin of an address. Its path may be a secret. */
export function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : "";
}

/** What an answer shows about its origin. */
export function healthOf(answer: Exclude<Answer, { readonly kind: "aborted" }>): Health {
  return answer.kind === "failed" ? answer.health : "alive";
}

/** An answer, for the observer. */
export function resultOf(answer: Answer): DeliveryResult {
  switch (answer.kind) {
    case "delivered":
      return { status: answer.status };
    case "gone":
      return { status: answer.status, error: new A2AError("InvalidResponse", "The receiver wants no more events") };
    case "aborted":
      return { error: new A2AError("Aborted", "The server is stopping") };
    case "refused":
      return { status: answer.status, error: new A2AError("InvalidResponse", answer.reason) };
    case "failed": {
      const { status, reason, error = new A2AError("InvalidResponse", reason) } = answer;
      return status === undefined ? { error } : { status, error };
    }
  }
}

/** Calls the receivers of configs, by the scheme of their authentication. */
export type FetchFor = (scheme: string | undefined) => GuardedFetch;

/** A client certificate is shown to the receivers of configs that ask for it, and to no others. */
export function fetches({ net, dialer, mutualTls }: PushSettings, clock: Clock): FetchFor {
  const plain = guardedFetch(net, dialer, clock);
  const mutual = mutualTls === undefined ? withoutCertificate : guardedFetch(net, mutualTls, clock);
  return (scheme) => (scheme?.toLowerCase() === mutualTlsScheme.toLowerCase() ? mutual : plain);
}

/** A config may have asked for a certificate that the server had before. */
const withoutCertificate: GuardedFetch = () =>
  Promise.reject(new A2AError("InvalidParams", "This server has no client certificate"));

/* When a delivery is tried again (docs/decisions/webhooks.md). */

const day = 24 * 60 * 60 * 1000;
/** Each wait is longer or shorter by up to this share, so that what failed together does not come back together. */
const jitter = 0.2;
/** No wait is longer, whatever the options say: a row that is due later has been put off by a clock that was set back since. */
const longest = 30 * day;

/**
 * How long to wait after a failed attempt, in milliseconds; `undefined`: there is no attempt left.
 *
 * @param failures - How many attempts of this delivery failed, this one included.
 * @param waits - Waits between attempts, in milliseconds.
 * @param retryAfter - What the receiver asked for, in seconds. It counts for a day at most.
 * @param random - A random number from 0 to 1.
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
  const asked = Math.min(day, (retryAfter ?? 0) * 1000);
  return Math.ceil(Math.min(longest, Math.max(own, asked)));
}

/** The longest wait that `waitAfter` returns. */
export function longestWait(waits: readonly number[]): number {
  return Math.ceil(Math.min(longest, waits.reduce((most, wait) => Math.max(most, wait), day) * (1 + jitter)));
}
