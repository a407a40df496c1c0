import type { Bytes, WebKey } from "../base/index.ts";
import { fromCanonicalBase64 } from "../base/bytes.ts";
import { A2AError, toBase64 } from "../model/index.ts";
import { webhookHeaders } from "./names.ts";

/* Signatures of Standard Webhooks: `v1` (HMAC-SHA256 with a shared secret) and `v1a` (Ed25519). */

/** A parsed key of Standard Webhooks. */
export interface WebhookKey {
  /** The form of its signatures. */
  readonly form: "v1" | "v1a";
  /** A `v1` key signs and verifies; a `v1a` key does one or the other. */
  readonly key: WebKey;
}

/** The signed content: `{id}.{timestamp}.{body}`. */
export interface SignedContent {
  /** The id of the delivery. It must not contain a dot, so that the signed text is unambiguous. */
  readonly id: string;
  /** The time of the attempt, in seconds since the Unix epoch. */
  readonly timestamp: number;
  /** The body, exactly as sent. */
  readonly body: string;
}

/** A received webhook. `UniversalRequest` has these members. */
export interface ReceivedWebhook {
  /** The value of a header, by its name in lower case. */
  header(name: string): string | undefined;
  /** The body, exactly as received. */
  readonly body: string;
}

const encoder = new TextEncoder();

/** The bytes before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410 §7). */
const pkcs8Start = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/** An Ed25519 key that signs, from its 32 random bytes. `extractable`: so that its public key can be exported. */
export function ed25519Key(seed: Uint8Array, extractable = false): Promise<WebKey> {
  const pkcs8 = new Uint8Array([...pkcs8Start, ...seed]);
  return crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", extractable, ["sign"]);
}

/** An Ed25519 key that verifies, from its 32 bytes. In some runtimes, rejects bytes that are not a point of the curve. */
function ed25519PublicKey(bytes: Bytes): Promise<WebKey> {
  return crypto.subtle.importKey("raw", bytes, "Ed25519", true, ["verify"]);
}

function bytesAfter(prefix: string, text: string): Bytes | undefined {
  const base64 = text.startsWith(prefix) ? text.slice(prefix.length) : "";
  return base64 !== "" && base64.length <= 128 ? fromCanonicalBase64(base64) : undefined;
}

/** The bytes of `whsec_…`: 24 to 64, as Standard Webhooks requires. */
function secretBytes(text: string): Bytes | undefined {
  const bytes = bytesAfter("whsec_", text);
  return bytes !== undefined && bytes.length >= 24 && bytes.length <= 64 ? bytes : undefined;
}

/** Whether a text is a shared secret of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. */
export function isWebhookSecret(text: string): boolean {
  return secretBytes(text) !== undefined;
}

/**
 * Reads a key: `whsec_…` signs and verifies `v1`, `whsk_…` signs `v1a`, `whpk_…` verifies `v1a`. A `whsk_` has the 32 bytes of the
 * private key, with or without the 32 bytes of the public key after them.
 *
 * @throws A2AError `InvalidParams` for any other text. The error does not contain it.
 */
export async function webhookKey(text: string): Promise<WebhookKey> {
  const secret = secretBytes(text);
  if (secret !== undefined) {
    const hmac = { name: "HMAC", hash: "SHA-256" };
    return { form: "v1", key: await crypto.subtle.importKey("raw", secret, hmac, false, ["sign", "verify"]) };
  }
  const pair = bytesAfter("whsk_", text);
  if (pair?.length === 32 || pair?.length === 64) return { form: "v1a", key: await signingKey(pair) };
  const open = bytesAfter("whpk_", text);
  if (open?.length === 32) return { form: "v1a", key: await ed25519PublicKey(open) };
  throw new A2AError(
    "InvalidParams",
    "A key of Standard Webhooks must be whsec_ with 24 to 64 bytes, whsk_ with 32 or 64, or whpk_ with 32, in base64",
  );
}

/** Also checks the public half, because every receiver would reject a signature by a mismatched pair. */
async function signingKey(pair: Uint8Array): Promise<WebKey> {
  const seed = pair.subarray(0, 32);
  if (pair.length === 64 && (await publicKeyOf(seed)) !== toBase64(pair.subarray(32))) {
    throw new A2AError("InvalidParams", "The public key of this whsk_ does not belong to its private key");
  }
  return ed25519Key(seed);
}

/** The public key of a private one, both as 32 bytes; the result is in base64. */
async function publicKeyOf(seed: Uint8Array): Promise<string> {
  const { x = "" } = await crypto.subtle.exportKey("jwk", await ed25519Key(seed, true));
  return `${x.replaceAll("-", "+").replaceAll("_", "/")}=`;
}

/**
 * Signs with each of the keys, and returns the value of the header `webhook-signature`. It has two signatures during a key rotation.
 *
 * @throws A2AError `InvalidParams` if the id or the timestamp is ambiguous.
 */
export async function signWebhook(keys: readonly WebhookKey[], content: SignedContent): Promise<string> {
  const { id, timestamp } = content;
  if (!idPattern.test(id))
    throw new A2AError("InvalidParams", "The id of a webhook must have only visible characters and no dot");
  if (!Number.isSafeInteger(timestamp) || timestamp < 0) {
    throw new A2AError("InvalidParams", "The timestamp of a webhook must be in whole seconds");
  }
  const bytes = bytesOf(id, String(timestamp), content.body);
  const signatures = keys.map(
    async ({ form, key }) => `${form},${toBase64(await crypto.subtle.sign(key.algorithm.name, key, bytes))}`,
  );
  return (await Promise.all(signatures)).join(" ");
}

const idPattern = /^[\x21-\x2d\x2f-\x7e]{1,256}$/;

function bytesOf(id: string, timestamp: string, body: string): Bytes {
  return encoder.encode(`${id}.${timestamp}.${body}`);
}

/** Options of the verification of a webhook. */
export interface VerifyWebhookOptions {
  /** The time now, in milliseconds since the Unix epoch. Default: `Date.now()`. */
  readonly now?: number;
  /** Maximum difference between the timestamp and now, in seconds. Default 300. */
  readonly tolerance?: number;
}

/** Maximum number of signatures checked per form, so that no header makes a receiver work for long. */
const maxSignatures = 8;

/**
 * Checks that one of the keys made one of the signatures of a webhook, and that its timestamp is recent. Returns the id, by which a
 * receiver recognizes repetitions.
 *
 * @throws A2AError `Unauthenticated`, with the reason.
 */
export async function verifyWebhook(
  keys: readonly WebhookKey[],
  webhook: ReceivedWebhook,
  { now = Date.now(), tolerance = 300 }: VerifyWebhookOptions = {},
): Promise<{ readonly id: string; readonly timestamp: number }> {
  const id = webhook.header(webhookHeaders.id) ?? "";
  const time = webhook.header(webhookHeaders.timestamp) ?? "";
  const header = webhook.header(webhookHeaders.signature) ?? "";
  if (!idPattern.test(id)) throw refused(`The header ${webhookHeaders.id} is missing or not valid`);
  if (!/^\d{1,12}$/.test(time)) throw refused(`The header ${webhookHeaders.timestamp} is missing or not valid`);
  const timestamp = Number(time);
  const age = now / 1000 - timestamp;
  if (age > tolerance) throw refused("The webhook is too old");
  if (age < -tolerance) throw refused("The webhook is from the future");
  const signatures = header.split(" ");
  const bytes = bytesOf(id, time, webhook.body);
  for (const form of ["v1", "v1a"] as const) {
    const ofForm = keys.filter((key) => key.form === form);
    const found = signatures.flatMap((each) => signatureOf(form, each));
    if (found.length > maxSignatures) throw refused("The webhook has too many signatures");
    for (const { key } of ofForm) {
      for (const signature of found) {
        // WebCrypto compares an HMAC in constant time.
        if (await crypto.subtle.verify(key.algorithm.name, key, signature, bytes)) return { id, timestamp };
      }
    }
  }
  throw refused(header === "" ? "The webhook is not signed" : "No signature of the webhook is by a known key");
}

function signatureOf(form: "v1" | "v1a", text: string): Bytes[] {
  const bytes = bytesAfter(`${form},`, text);
  return bytes?.length === (form === "v1" ? 32 : 64) ? [bytes] : [];
}

function refused(reason: string): A2AError {
  return new A2AError("Unauthenticated", reason);
}
