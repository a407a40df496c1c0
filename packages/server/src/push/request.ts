import { retryAfterOf } from "@parley/a2a/internal/base/http";
import type { Clock } from "@parley/a2a/internal/base/index";
import { toA2AError, type A2AError } from "@parley/a2a/internal/model/index";
import { mutualTlsScheme, standardWebhooksScheme, webhookHeaders } from "@parley/a2a/internal/webhooks/index";
import type { Health } from "./circuit.ts";
import type { FetchFor } from "./fetches.ts";
import type { PushSecrets, PushSigner } from "./port.ts";
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
