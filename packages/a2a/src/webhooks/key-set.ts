import type { Bytes } from "../base/index.ts";
import { toBase64Url } from "../base/bytes.ts";
import { toBase64 } from "../model/index.ts";

/* Key sets (RFC 7517): how a server publishes the keys that its webhooks are signed with. */

/** A public Ed25519 key as a JWK (RFC 8037). */
export interface PublicJwk {
  readonly kty: "OKP";
  readonly crv: "Ed25519";
  /** The 32 bytes of the key as base64url. */
  readonly x: string;
  /** The thumbprint of the key (RFC 7638), by which a JWT names it. */
  readonly kid: string;
  readonly use: "sig";
  /** The algorithm of JWTs. */
  readonly alg: "EdDSA";
  /** The same key as the libraries of Standard Webhooks take it: `whpk_…`. */
  readonly whpk: string;
}

/** The keys that a server signs with, and those that it signed with before. */
export interface KeySet {
  readonly keys: readonly PublicJwk[];
}

/** The JWK of a public key, from its 32 bytes. */
export async function publicJwk(bytes: Bytes): Promise<PublicJwk> {
  const x = toBase64Url(bytes);
  // The members that the thumbprint covers, in the order that RFC 7638 §3 demands.
  const thumbprint = new TextEncoder().encode(JSON.stringify({ crv: "Ed25519", kty: "OKP", x }));
  const kid = toBase64Url(await crypto.subtle.digest("SHA-256", thumbprint));
  return { kty: "OKP", crv: "Ed25519", x, kid, use: "sig", alg: "EdDSA", whpk: `whpk_${toBase64(bytes)}` };
}
