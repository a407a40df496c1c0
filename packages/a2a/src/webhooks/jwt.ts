import { sha256, toHex, isCompactJws, toBase64Url } from "../base/bytes.ts";
import type { WebKey, Bytes } from "../base/index.ts";
import { A2AError, toBase64 } from "../model/index.ts";

/*
 * JWTs of webhooks, as the guides of A2A describe them: sender, audience, task, and a hash of the body.
 * The library is loaded when the first one is signed or verified.
 */

/** The claims of a webhook's JWT. */
export interface WebhookTokenContent {
  /** `iss`: the URL of the agent, as its card names it. */
  readonly issuer: string;
  /** `aud`: see `audienceOf`. */
  readonly audience: string;
  /** `jti`: the id of the delivery, equal for all attempts. */
  readonly id: string;
  /** `iat`: the time of the attempt, in seconds since the Unix epoch. The JWT expires 5 minutes later. */
  readonly timestamp: number;
  /** `taskId`. */
  readonly taskId: string;
  /** The body. The claim `request_body_sha256` is its SHA-256 in hexadecimal. */
  readonly body: string;
}

/** `aud` for a URL: without its query, which often contains a secret, because proxies log JWTs. */
export function audienceOf(address: string): string {
  const { origin, pathname } = new URL(address);
  return origin + pathname;
}

/** How long a JWT is valid, in seconds. Equal to the tolerance for a timestamp of Standard Webhooks. */
const lifetime = 300;

/** Signs a JWT, for `Authorization: Bearer`. `kid`: the name of the key in the key set. */
export async function signWebhookToken(key: WebKey, kid: string, content: WebhookTokenContent): Promise<string> {
  const { SignJWT } = await import("jose");
  const { issuer, audience, id, timestamp, taskId, body } = content;
  return new SignJWT({ taskId, request_body_sha256: toHex(await sha256(body)) })
    .setProtectedHeader({ alg: "EdDSA", typ: "JWT", kid })
    .setIssuer(issuer)
    .setAudience(audience)
    .setIssuedAt(timestamp)
    .setExpirationTime(timestamp + lifetime)
    .setJti(id)
    .sign(key);
}

/** The expectations of a receiver. */
export interface VerifyTokenOptions {
  /** `iss`: the URLs of the agents that may send. */
  readonly issuer: string | readonly string[];
  /** `aud`: the URL of this receiver. */
  readonly audience: string | readonly string[];
  /** The body, exactly as received. */
  readonly body: string;
  /** The time now, in milliseconds since the Unix epoch. Default: `Date.now()`. */
  readonly now?: number;
  /** How far clocks may differ, in seconds. Default 60. */
  readonly tolerance?: number;
}

interface VerifiedToken {
  readonly id: string;
  readonly taskId: string;
}

/**
 * Verifies a JWT of a webhook with a key set: its signature, times, audience, and the hash of the body. Accepts only
 * asymmetric algorithms.
 *
 * @param keySet - The key set of the server, parsed from JSON.
 * @throws A2AError `Unauthenticated`, with the reason.
 */
export async function verifyWebhookToken(
  token: string,
  keySet: { readonly keys: readonly object[] },
  { issuer, audience, body, now = Date.now(), tolerance = 60 }: VerifyTokenOptions,
): Promise<VerifiedToken> {
  if (!isCompactJws(token)) throw new A2AError("Unauthenticated", "The JWT of the webhook is not valid");
  const { createLocalJWKSet, jwtVerify } = await import("jose");
  const verified = await jwtVerify(token, createLocalJWKSet(keySet as Parameters<typeof createLocalJWKSet>[0]), {
    algorithms: ["EdDSA", "Ed25519", "ES256", "ES384", "RS256", "PS256"],
    issuer: [issuer].flat(),
    audience: [audience].flat(),
    requiredClaims: ["iat", "exp", "jti", "taskId", "request_body_sha256"],
    currentDate: new Date(now),
    clockTolerance: tolerance,
    maxTokenAge: lifetime,
  }).catch((cause: unknown) => {
    throw new A2AError("Unauthenticated", "The JWT of the webhook is not valid", { cause });
  });
  const { jti = "", taskId, request_body_sha256: hash } = verified.payload;
  if (typeof taskId !== "string") throw new A2AError("Unauthenticated", "The JWT of the webhook names no task");
  if (hash !== toHex(await sha256(body))) {
    throw new A2AError("Unauthenticated", "The JWT of the webhook does not match its body");
  }
  return { id: jti, taskId };
}

/* Key sets (RFC 7517): how a server publishes the keys that its webhooks are signed with. */

/** A public Ed25519 key as a JWK (RFC 8037). */
export interface PublicJwk {
  readonly kty: "OKP";
  readonly crv: "Ed25519";
  /** The 32 bytes of the key as base64url. */
  readonly x: string;
  /** The thumbprint of the key (RFC 7638), its name in JWTs. */
  readonly kid: string;
  readonly use: "sig";
  /** The algorithm of JWTs. */
  readonly alg: "EdDSA";
  /** The same key in the form for libraries of Standard Webhooks: `whpk_…`. */
  readonly whpk: string;
}

/** The keys that a server signs with now, and its earlier ones. */
export interface KeySet {
  readonly keys: readonly PublicJwk[];
}

/** The JWK of a public key, from its 32 bytes. */
export async function publicJwk(bytes: Bytes): Promise<PublicJwk> {
  const x = toBase64Url(bytes);
  // The members of the thumbprint, in the order of RFC 7638 §3.
  const kid = toBase64Url(await sha256(JSON.stringify({ crv: "Ed25519", kty: "OKP", x })));
  return { kty: "OKP", crv: "Ed25519", x, kid, use: "sig", alg: "EdDSA", whpk: `whpk_${toBase64(bytes)}` };
}
