import { sha256, toBase64Url, isCompactJws } from "../../base/bytes.ts";
import type { Clock, WebKey } from "../../base/index.ts";
import type { UniversalRequest } from "../../protocol/index.ts";
import type { AuthenticationPlace } from "../port.ts";
import { WrongToken, WantedNonce, type Confirmation, type PresentedToken } from "./token.ts";
import { BoundedMap, memoryOf } from "../../base/bounded-map.ts";
import { checkedAlgorithms, type DpopOptions } from "./options.ts";

/* Tokens that are bound to a key of their caller: with DPoP (RFC 9449) or with a certificate (RFC 8705). */

/** Checks that a caller has the key that its token is bound to. Throws a `WrongToken` if it does not. */
export type CheckBinding = (
  presented: PresentedToken,
  confirmation: Confirmation | undefined,
  request: UniversalRequest,
  place: AuthenticationPlace,
) => Promise<void> | void;

interface BindingRules {
  readonly bound: "dpop" | "certificate" | undefined;
  readonly dpop: DpopOptions | undefined;
  readonly clock: Clock;
}

/** Makes the check of bindings. */
export function bindingCheck({ bound, dpop, clock }: BindingRules): CheckBinding {
  const checkProof = proofCheck(dpop ?? {}, clock);
  return (presented, confirmation, request, place) => {
    const { jkt, x5t } = confirmation ?? {};
    if (bound === "dpop" && jkt === undefined) throw new WrongToken("The token is not bound to a key (DPoP)");
    if (bound === "certificate" && x5t === undefined) throw new WrongToken("The token is not bound to a certificate");
    if (x5t !== undefined) checkCertificate(x5t, request);
    // A bound token must not be accepted as a bearer token, nor a bearer token as a bound one (RFC 9449 §7.1, §7.2).
    if ((jkt !== undefined) !== (presented.scheme === "dpop")) {
      throw new WrongToken(jkt === undefined ? "The token is a bearer token" : "The token needs a proof (DPoP)");
    }
    return jkt === undefined ? undefined : checkProof(jkt, presented.token, request, place);
  };
}

/**
 * The certificate of the connection must be the token's (RFC 8705 §3). Its authority may be unknown, because the authorization server has
 * accepted the certificate, and the handshake has proved its key.
 */
function checkCertificate(thumbprint: string, { facts }: UniversalRequest): void {
  const fingerprint = facts?.certificate?.fingerprint;
  if (fingerprint === undefined)
    throw new WrongToken("The token is bound to a certificate, and the connection has none");
  if (toBase64Url(bytesOf(fingerprint)) !== thumbprint)
    throw new WrongToken("The token is bound to another certificate");
}

function bytesOf(hexadecimal: string): Uint8Array {
  return Uint8Array.from(hexadecimal.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** The algorithms of proofs that are accepted. */
export function dpopAlgorithms(options: DpopOptions | undefined): string[] {
  return checkedAlgorithms("dpop.algorithms", options?.algorithms);
}

/** Checks the proof of a request. `jkt`: the key that the token is bound to. */
type CheckProof = (jkt: string, token: string, request: UniversalRequest, place: AuthenticationPlace) => Promise<void>;

const maxProofLength = 8 * 1024;

function proofCheck(options: DpopOptions, clock: Clock): CheckProof {
  const { maxAge = 60_000 } = options;
  const algorithms = dpopAlgorithms(options);
  const seen = options.seen ?? proofMemory(clock, maxAge);
  const nonces = options.nonce === undefined || options.nonce === false ? undefined : new Nonces(options.nonce, clock);
  return async (jkt, token, request, place) => {
    const proof = request.header("dpop");
    if (proof === undefined) throw wrong("The request has no proof");
    // Two headers of this name are joined by a comma, which JWTs do not contain.
    if (proof.length > maxProofLength || !isCompactJws(proof)) throw wrong("The proof is not one JWT");
    const { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } = await import("jose");
    const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, {
      algorithms,
      typ: "dpop+jwt",
      currentDate: new Date(clock.now()),
      clockTolerance: maxAge / 1000,
    }).catch((cause: unknown) => {
      throw wrong("The proof is not valid", cause);
    });
    const thumbprint = await calculateJwkThumbprint(protectedHeader.jwk ?? {});
    if (thumbprint !== jkt) throw wrong("The proof is signed with another key");
    const { htm, htu, ath, jti, iat, nonce } = payload;
    if (htm !== request.method) throw wrong("The proof is for another method");
    if (!isSameTarget(htu, place.url)) throw wrong("The proof is for another URL");
    if (ath !== toBase64Url(await sha256(token))) throw wrong("The proof is for another token");
    if (iat === undefined || Math.abs(iat * 1000 - clock.now()) > maxAge)
      throw wrong("The proof is too old, or from the future");
    if (nonces !== undefined && !(await nonces.accepts(nonce))) throw new WantedNonce(await nonces.current());
    if (typeof jti !== "string" || jti === "") throw wrong("The proof has no jti");
    if (await seen(toBase64Url(await sha256(`${thumbprint} ${jti}`)), iat * 1000 + maxAge))
      throw wrong("The proof was used before");
  };
}

function wrong(message: string, cause?: unknown): WrongToken {
  return new WrongToken(message, "invalid_dpop_proof", cause);
}

/** Compares URLs after normalization, without query and fragment (RFC 9449 §4.3). */
function isSameTarget(htu: unknown, url: string): boolean {
  if (typeof htu !== "string" || !URL.canParse(htu)) return false;
  const bare = (text: string): string => {
    const { origin, pathname } = new URL(text);
    return origin + pathname;
  };
  return bare(htu) === bare(url);
}

function proofMemory(clock: Clock, maxAge: number): (proof: string) => boolean {
  const proofs = new BoundedMap<number>({ bytes: 16 << 20, bytesOf: (proof) => memoryOf(proof) });
  return (proof) => {
    // Uses monotonic time, so that setting the clock back does not make a proof new. A proof is valid from `maxAge` before its `iat` until
    // `maxAge` after it, so remembering it for twice `maxAge` is enough.
    const until = proofs.get(proof);
    if (until !== undefined && until > clock.elapsed()) return true;
    proofs.set(proof, clock.elapsed() + 2 * maxAge);
    return false;
  };
}

/** How long a nonce is current, in milliseconds. It is still accepted in the next period. */
const period = 5 * 60_000;

/**
 * Nonces for proofs (RFC 9449 §8, §9). They are computed from the time and a secret, so they need no storage, and processes with the same
 * secret accept each other's nonces.
 */
class Nonces {
  readonly #secret: Uint8Array<ArrayBuffer>;
  readonly #clock: Clock;
  #key: Promise<WebKey> | undefined;

  /** `secret`: `true` creates a random secret. */
  constructor(secret: true | string, clock: Clock) {
    this.#secret =
      secret === true ? crypto.getRandomValues(new Uint8Array(32)) : new TextEncoder().encode(`dpop nonce ${secret}`);
    this.#clock = clock;
  }

  current(): Promise<string> {
    return this.#nonce(this.#period);
  }

  /** Whether a proof may have this nonce: the current or the previous one. */
  async accepts(nonce: unknown): Promise<boolean> {
    return nonce === (await this.#nonce(this.#period)) || nonce === (await this.#nonce(this.#period - 1));
  }

  get #period(): number {
    return Math.floor(this.#clock.now() / period);
  }

  async #nonce(at: number): Promise<string> {
    this.#key ??= crypto.subtle.importKey("raw", this.#secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const signature = await crypto.subtle.sign("HMAC", await this.#key, new TextEncoder().encode(String(at)));
    return toBase64Url(signature);
  }
}
