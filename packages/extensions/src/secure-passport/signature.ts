import { fromBase64Url, isBase64Url } from "@parley/a2a/internal/base/base64";
import { type Clock, systemClock } from "@parley/a2a/internal/base/index";
import { canonicalJson } from "@parley/a2a/internal/jws/jcs";
import {
  acceptedAlgorithms,
  algorithmOf,
  bareKey,
  fitsAlgorithm,
  importSigningKey,
  isSigningKey,
  makeKey,
  outdated,
  type PrivateJwk,
  publicJwk,
  type SigningAlgorithm,
} from "@parley/a2a/internal/jws/keys";
import { A2AError, type AgentInterface, hasCode, invalidParams } from "@parley/a2a/internal/model/index";
import { isObject } from "@parley/a2a/internal/model/schema";
import type { CallerContext } from "./context.ts";
import type { PassportKey, PassportKeySet, PassportTrust } from "./trust.ts";

/** A private key as a JWK, which `makePassportKey()` makes. Keep it secret. */
export interface PrivatePassportKey extends PrivateJwk {}

/** Algorithms of signatures: ECDSA with P-256, Ed25519, RSA with PKCS #1 v1.5 (RFC 7518, RFC 8037). */
export type PassportAlgorithm = SigningAlgorithm;

/** For whom and for how long a passport is signed. */
export interface SignPassportOptions {
  /** The agent that it is for: an address of its card, followed by `#` and its tenant where it has one. It is no good at others. */
  readonly audience: string;
  /** How long it is valid, in seconds. Default 300. */
  readonly lifetime?: number;
  /** Name of the passport, for the agent to know it again. Default: a random one. */
  readonly jti?: string;
  /** Time. Default: that of the runtime. */
  readonly clock?: Clock;
}

/**
 * Why a passport is not verified.
 *
 * - `unsigned`: it has no signature.
 * - `unreadable`: its signature is none of this package, as that of the public sample.
 * - `untrusted`: its key is not one of its client.
 * - `outdated-key`: its key has expired or was revoked.
 * - `invalid`: it is not what the key has signed.
 * - `expired`: its time is over, not yet come, or longer than is accepted.
 * - `audience`: it is for another agent.
 * - `replayed`: it was used before, for something else.
 * - `unavailable`: the keys cannot be read now, or the store of nonces is full.
 */
export type PassportProblem =
  | "unsigned"
  | "unreadable"
  | "untrusted"
  | "outdated-key"
  | "invalid"
  | "expired"
  | "audience"
  | "replayed"
  | "unavailable";

/** What is known about the signature of a passport. */
export type PassportVerdict =
  | {
      /** Whether it is signed by a trusted key, for this agent and this time. */
      readonly verified: true;
      /** Name of the key. */
      readonly kid?: string;
      /** Name of the passport. */
      readonly jti: string;
      /** When it expires, in milliseconds since the Unix epoch. */
      readonly expires: number;
    }
  | {
      /** Whether it is signed by a trusted key, for this agent and this time. */
      readonly verified: false;
      /** Why not. */
      readonly problem: PassportProblem;
    };

/** What a verification needs. */
export interface VerifyPassportOptions {
  /** The keys. */
  readonly trust: PassportTrust;
  /** The addresses of this agent: the passport has to name one of them. */
  readonly audience: readonly string[];
  /** How far the clocks of others may be off, in seconds. Default 60. */
  readonly clockSkew?: number;
  /** Longest lifetime that is accepted, in seconds. Default 600. */
  readonly maxLifetime?: number;
  /** Time. Default: that of the runtime. */
  readonly clock?: Clock;
}

/** `typ` of the header: a signature of another kind with the same key is no passport. */
const type = "passport+jws";

/** Longest signature, in characters. */
const longest = 16_384;

/** Longest names in a header, in characters. */
const longestName = 1024;

/** Keys that are tried for one signature, at most. */
const maxTried = 8;

/**
 * Makes a key that signs passports. Keep it secret, and publish its `passportKeySet()`.
 *
 * @param algorithm - Default ES256.
 *
 * @example
 * ```ts
 * const key = await makePassportKey();
 * console.log(JSON.stringify(await passportKeySet([key])));
 * ```
 */
export async function makePassportKey(algorithm: PassportAlgorithm = "ES256"): Promise<PrivatePassportKey> {
  return makeKey(algorithm);
}

/**
 * The key set to publish for keys that sign passports: their public parts alone.
 *
 * @throws A2AError `InvalidParams` where one of them is no private key.
 */
export async function passportKeySet(keys: readonly PrivatePassportKey[]): Promise<PassportKeySet> {
  return { keys: await Promise.all(keys.map((key, at) => publicJwk(checkKey(key, `keys[${at}]`)))) };
}

/** Checks a private key. Throws `InvalidParams`, without anything of the key. */
export function checkKey(key: unknown, field: string): PrivatePassportKey {
  if (isSigningKey(key)) return key;
  const description =
    "must be a private key as a JWK: EC with P-256, OKP with Ed25519, or RSA. makePassportKey() makes one";
  throw invalidParams([{ field, description }]);
}

/**
 * Signs a passport: a compact JWS (RFC 7515) whose payload is left out, over the canonical form (JCS, RFC 8785) of `clientId`, `sessionId` and
 * `state`. Its protected header says for whom it is, from when, until when, and its name: `aud`, `iat`, `exp`, `jti`.
 *
 * @throws A2AError `InvalidParams` where the key cannot sign, or the passport has no canonical form.
 *
 * @example
 * ```ts
 * const context = { clientId: "a2a://desk.example.com", state: { tier: "Gold" } };
 * const signed = await signPassport(context, await makePassportKey(), { audience: "https://flights.example.com/" });
 * ```
 */
export async function signPassport<Context extends CallerContext>(
  context: Context,
  key: PrivatePassportKey,
  options: SignPassportOptions,
): Promise<Context & { readonly signature: string }> {
  const { audience, lifetime = 300, jti = crypto.randomUUID(), clock = systemClock } = options;
  checkKey(key, "key");
  const payload = new TextEncoder().encode(signedText(context));
  const { CompactSign } = await import("jose");
  const { kid = "" } = await publicJwk(key);
  const iat = Math.floor(clock.now() / 1000);
  const header = { alg: algorithmOf(key) ?? "", typ: type, kid, aud: audience, iat, exp: iat + lifetime, jti };
  const secret = await importSigningKey(key).catch((cause: unknown) => {
    throw new A2AError("InvalidParams", "A key for passports cannot be used", { cause });
  });
  const [head, , signature] = (await new CompactSign(payload).setProtectedHeader(header).sign(secret)).split(".");
  return { ...context, signature: `${head}..${signature}` };
}

/** What is signed. */
function signedText({ clientId, sessionId, state }: CallerContext): string {
  return canonicalJson({ clientId, ...(sessionId !== undefined && { sessionId }), state });
}

interface Header {
  readonly alg: string;
  readonly kid?: string;
  readonly aud: readonly string[];
  readonly iat: number;
  readonly exp: number;
  readonly jti: string;
}

/**
 * Verifies the signature of a passport, apart from whether it was used before. It never throws because of what the passport says.
 *
 * @example
 * ```ts
 * const trust = passportKeys({ "a2a://desk.example.com": "https://desk.example.com/.well-known/jwks.json" });
 * const passport = passportOf(turn.message);
 * const audience = ["https://flights.example.com/"];
 * const verified = passport !== undefined && (await verifyPassport(passport, { trust, audience })).verified;
 * ```
 */
export async function verifyPassport(context: CallerContext, options: VerifyPassportOptions): Promise<PassportVerdict> {
  const { trust, audience, clockSkew = 60, maxLifetime = 600, clock = systemClock } = options;
  if (context.signature === undefined) return not("unsigned");
  const jws = read(context.signature);
  if (jws === undefined) return not("unreadable");
  const { iat, exp, aud, jti, kid } = jws.header;
  const keyed = await byTrustedKey(context, jws, trust, clock.now());
  if (keyed !== "valid") return not(keyed);
  const now = clock.now() / 1000;
  const inTime = iat <= now + clockSkew && exp > now - clockSkew && exp > iat && exp - iat <= maxLifetime;
  if (!inTime) return not("expired");
  if (!aud.some((name) => audience.includes(name))) return not("audience");
  return { verified: true, jti, expires: (exp + clockSkew) * 1000, ...(kid !== undefined && { kid }) };
}

function not(problem: PassportProblem): PassportVerdict {
  return { verified: false, problem };
}

interface Signed {
  readonly head: string;
  readonly signature: string;
  readonly header: Header;
}

/** Reads a signature; `undefined` where it is none of this kind. */
function read(text: string): Signed | undefined {
  if (text.length > longest) return undefined;
  const [, head, signature] = /^([\w-]+)\.\.([\w-]+)$/.exec(text) ?? [];
  if (head === undefined || signature === undefined || !isBase64Url(signature)) return undefined;
  const bytes = fromBase64Url(head);
  if (bytes === undefined) return undefined;
  try {
    const header: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    // A critical extension changes what is signed, or how (RFC 7515 §4.1.11). None is known here.
    if (!isObject(header) || header["typ"] !== type || header["crit"] !== undefined) return undefined;
    const { alg, kid, iat, exp, jti } = header;
    const aud = [header["aud"]].flat();
    const isRead =
      typeof alg === "string" &&
      acceptedAlgorithms.includes(alg) &&
      (kid === undefined || isName(kid)) &&
      isName(jti) &&
      typeof iat === "number" &&
      typeof exp === "number" &&
      aud.every(isName);
    if (!isRead) return undefined;
    return { head, signature, header: { alg, ...(kid !== undefined && { kid }), aud, iat, exp, jti } };
  } catch {
    return undefined;
  }
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= longestName;
}

async function byTrustedKey(
  context: CallerContext,
  { head, signature, header: { alg, kid } }: Signed,
  trust: PassportTrust,
  now: number,
): Promise<PassportProblem | "valid"> {
  let keys: readonly PassportKey[];
  try {
    keys = [(await trust.keyFor(context.clientId, kid)) ?? []].flat();
  } catch (thrown) {
    if (hasCode(thrown, "Unavailable")) return "unavailable";
    throw thrown;
  }
  const fitting = keys.filter((key) => (key.kid === undefined || key.kid === kid) && fitsAlgorithm(key, alg));
  if (fitting.length === 0) return "untrusted";
  const usable = fitting.filter((key) => outdated(key, now) === undefined);
  if (usable.length === 0) return "outdated-key";
  let payload: Uint8Array;
  try {
    payload = new TextEncoder().encode(signedText(context));
  } catch {
    // It has no canonical form: nobody can have signed it.
    return "invalid";
  }
  const { base64url, flattenedVerify, importJWK } = await import("jose");
  const jws = { protected: head, signature, payload: base64url.encode(payload) };
  for (const key of usable.slice(0, maxTried)) {
    try {
      const bare = bareKey(key);
      if (bare === undefined) continue;
      await flattenedVerify(jws, await importJWK(bare, alg), { algorithms: [alg] });
      return "valid";
    } catch {
      // Another key of the client may fit.
    }
  }
  return "invalid";
}

/**
 * For whom a passport is that is sent to an interface: its URL. Agents with one gRPC address have a tenant each (A2A 1.0 §8.3.2), which is a
 * part of it: else a passport for one of them would be good for the others.
 */
export function audienceOf({ url, tenant }: Pick<AgentInterface, "url" | "tenant">): string {
  return tenant === undefined || tenant === "" ? url : `${url}#${tenant}`;
}
