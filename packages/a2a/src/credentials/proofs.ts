import { systemClock, type Clock } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import type { CredentialTarget } from "./port.ts";

/** A key of proofs (RFC 9449): the pair, and the private key as a JWK for a store. */
export interface ProofKey {
  readonly pair: { readonly privateKey: CryptoKey; readonly publicKey: CryptoKey };
  readonly jwk: Readonly<Record<string, unknown>>;
}

type CryptoKey = Extract<Awaited<ReturnType<typeof import("jose").importJWK>>, { readonly type: unknown }>;

const algorithm = "ES256";

/** Makes a key, or reads one that was stored. */
export async function proofKey(stored?: Readonly<Record<string, unknown>>): Promise<ProofKey> {
  const { exportJWK, generateKeyPair, importJWK } = await import("jose");
  if (stored === undefined) {
    const pair = await generateKeyPair(algorithm, { extractable: true });
    return { pair, jwk: { ...(await exportJWK(pair.privateKey)), alg: algorithm } };
  }
  const { d: _d, ...open } = stored;
  const [privateKey, publicKey] = await Promise.all([
    importJWK(stored, algorithm, { extractable: true }),
    importJWK(open, algorithm, { extractable: true }),
  ]);
  if (!("type" in privateKey) || !("type" in publicKey))
    throw new A2AError("InvalidParams", "The stored key is no key");
  return { pair: { privateKey, publicKey }, jwk: stored };
}

/** A proof for one request with a token (RFC 9449 §4.2, §7). `nonce`: the last one that the server has given. */
export async function proofFor(
  key: ProofKey,
  token: string,
  target: CredentialTarget,
  nonce: string | undefined,
  clock: Clock = systemClock,
): Promise<string> {
  const { base64url, exportJWK, SignJWT } = await import("jose");
  const { origin, pathname } = new URL(target.url);
  const ath = base64url.encode(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token))));
  return new SignJWT({ htm: target.method, htu: origin + pathname, ath, ...(nonce !== undefined && { nonce }) })
    .setProtectedHeader({ alg: algorithm, typ: "dpop+jwt", jwk: await exportJWK(key.pair.publicKey) })
    .setIssuedAt(Math.floor(clock.now() / 1000))
    .setJti(crypto.randomUUID())
    .sign(key.pair.privateKey);
}
