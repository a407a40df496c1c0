import { isCompactJws, toBase64Url } from "../../base/bytes.ts";
import { BoundedMap, memoryOf } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/index.ts";
import type { UniversalRequest } from "../../protocol/index.ts";
import type { AuthenticationPlace } from "../port.ts";
import { Nonces } from "./nonces.ts";
import { checkedAlgorithms } from "./options.ts";
import { WantedNonce, WrongToken } from "./token.ts";

/** How proofs of possession are checked (RFC 9449). */
export interface DpopOptions {
  /** Algorithms of proofs that are taken. Default: all asymmetric ones. */
  readonly algorithms?: readonly string[];
  /** How old a proof may be, in milliseconds. It may be as much newer than the clock of the server. Default 60 s. */
  readonly maxAge?: number;
  /**
   * Whether proofs need a nonce of this server (RFC 9449 §9), so that nobody can make proofs in advance. The nonce changes every five
   * minutes, and each change costs a client one repeated request. Processes that share callers need a common secret for it: a text.
   * Default false.
   */
  readonly nonce?: boolean | string;
  /**
   * Remembers a proof until it is too old, and says whether it was seen before. For servers of several processes, which share it.
   * Default: this process remembers the proofs that it sees, in at most 16 MiB.
   *
   * @param proof - Names the proof: a digest.
   * @param until - When it may be forgotten, in milliseconds since the Unix epoch.
   */
  readonly seen?: (proof: string, until: number) => boolean | Promise<boolean>;
}

/** Algorithms of proofs that are taken. */
export function dpopAlgorithms(options: DpopOptions | undefined): string[] {
  return checkedAlgorithms("dpop.algorithms", options?.algorithms);
}

/** Checks the proof of a request. `jkt`: the key that the token is bound to. */
export type CheckProof = (
  jkt: string,
  token: string,
  request: UniversalRequest,
  place: AuthenticationPlace,
) => Promise<void>;

/** Longest proof in characters. */
const longest = 8 * 1024;

/** Makes the check of proofs (RFC 9449 §4.3). */
export function proofCheck(options: DpopOptions, clock: Clock): CheckProof {
  const { maxAge = 60_000 } = options;
  const algorithms = dpopAlgorithms(options);
  const seen = options.seen ?? proofMemory(clock, maxAge);
  const nonces = options.nonce === undefined || options.nonce === false ? undefined : new Nonces(options.nonce, clock);
  return async (jkt, token, request, place) => {
    const proof = request.header("dpop");
    if (proof === undefined) throw wrong("The request has no proof");
    // Two headers of the name are joined by a comma, which no JWT has.
    if (proof.length > longest || !isCompactJws(proof)) throw wrong("The proof is not one JWT");
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
    if (thumbprint !== jkt) throw wrong("The proof is by another key");
    const { htm, htu, ath, jti, iat, nonce } = payload;
    if (htm !== request.method) throw wrong("The proof is for another method");
    if (!isSameTarget(htu, place.url)) throw wrong("The proof is for another URL");
    if (ath !== (await digest(token))) throw wrong("The proof is for another token");
    if (iat === undefined || Math.abs(iat * 1000 - clock.now()) > maxAge)
      throw wrong("The time of the proof is not now");
    if (nonces !== undefined && !(await nonces.accepts(nonce))) throw new WantedNonce(await nonces.current());
    if (typeof jti !== "string" || jti === "") throw wrong("The proof has no jti");
    if (await seen(await digest(`${thumbprint} ${jti}`), iat * 1000 + maxAge)) throw wrong("The proof was used before");
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

/** SHA-256 in base64url. */
async function digest(text: string): Promise<string> {
  return toBase64Url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}

/** Remembers proofs in this process. */
function proofMemory(clock: Clock, maxAge: number): (proof: string) => boolean {
  const proofs = new BoundedMap<number>({ bytes: 16 << 20, bytesOf: (proof) => memoryOf(proof) });
  return (proof) => {
    // By monotonic time: a clock that is set back does not make a proof new. It may be used until it is maxAge old, from maxAge before.
    const until = proofs.get(proof);
    if (until !== undefined && until > clock.elapsed()) return true;
    proofs.set(proof, clock.elapsed() + 2 * maxAge);
    return false;
  };
}
