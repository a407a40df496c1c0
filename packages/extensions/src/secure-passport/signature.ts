import { fromBase64Url, isBase64Url } from "@parley/a2a/internal/base/bytes";
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

/** A private key as a JWK from `makePassportKey()`. Keep it secret. */
export interface PrivatePassportKey extends PrivateJwk {}

/** Signature algorithms: ECDSA with P-256, Ed25519, RSA with PKCS #1 v1.5 (RFC 7518, RFC 8037). */
export type PassportAlgorithm = SigningAlgorithm;

/** Options of `signPassport()`. */
export interface SignPassportOptions {
  /**
   * The agent: an address of its card, followed by `#` and its tenant if it has one. Other agents reject the passport.
   */
  readonly audience: string;
  /** Validity in seconds. Default 300. */
  readonly lifetime?: number;
  /** Unique name of the passport. Default: random. */
  readonly jti?: string;
  /** Default: the system clock. */
  readonly clock?: Clock;
}

/**
 * Why a passport is not verified.
 *
 * - `unsigned`: it has no signature.
 * - `unreadable`: the signature has another form, such as the public sample's.
 * - `untrusted`: the key does not belong to the client.
 * - `outdated-key`: the key has expired or was revoked.
 * - `invalid`: the signature does not match.
 * - `expired`: expired, not yet valid, or valid for too long.
 * - `audience`: it is for another agent.
 * - `replayed`: it was used before for something else.
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

/** The result of a verification. */
export type PassportVerdict =
  | {
      /** Signed by a trusted key, for this agent and this time. */
      readonly verified: true;
      /** Name of the key. */
      readonly kid?: string;
      /** Name of the passport. */
      readonly jti: string;
      /** When it expires, in milliseconds since the Unix epoch. */
      readonly expires: number;
    }
  | {
      /** Not verified. */
      readonly verified: false;
      /** Why not. */
      readonly problem: PassportProblem;
    };

/** Options of `verifyPassport()`. */
export interface VerifyPassportOptions {
  /** The trusted keys. */
  readonly trust: PassportTrust;
  /** The addresses of this agent. The passport must name one. */
  readonly audience: readonly string[];
  /** Tolerated difference of clocks, in seconds. Default 60. */
  readonly clockSkew?: number;
  /** Longest accepted validity, in seconds. Default 600. */
  readonly maxLifetime?: number;
  /** Default: the system clock. */
  readonly clock?: Clock;
}

/** `typ` of the header, so that other signatures of the same key do not count as passports. */
const type = "passport+jws";

/** Longest signature, in characters. */
const longest = 16_384;

/** Longest names in a header, in characters. */
const longestName = 1024;

/** Maximum number of keys tried for one signature. */
const maxTried = 8;

/**
 * Creates a key that signs passports. Keep it secret, and publish its `passportKeySet()`.
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
 * The public key set of signing keys, to publish.
 *
 * @throws A2AError `InvalidParams` if one is not a private key.
 */
export async function passportKeySet(keys: readonly PrivatePassportKey[]): Promise<PassportKeySet> {
  return { keys: await Promise.all(keys.map((key, at) => publicJwk(checkKey(key, `keys[${at}]`)))) };
}

/** Checks a private key. The error contains nothing of the key. */
export function checkKey(key: unknown, field: string): PrivatePassportKey {
  if (isSigningKey(key)) return key;
  const description =
    "must be a private key as a JWK: EC with P-256, OKP with Ed25519, or RSA. Create one with makePassportKey()";
  throw invalidParams([{ field, description }]);
}

/**
 * Signs a passport: a compact JWS (RFC 7515) with detached payload over the canonical form (JCS, RFC 8785) of
 * `clientId`, `sessionId` and `state`. Its protected header has `aud`, `iat`, `exp` and `jti`.
 *
 * @throws A2AError `InvalidParams` if the key cannot sign, or the passport has no canonical form.
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
    throw new A2AError("InvalidParams", "The passport key cannot be used", { cause });
  });
  const [head, , signature] = (await new CompactSign(payload).setProtectedHeader(header).sign(secret)).split(".");
  return { ...context, signature: `${head}..${signature}` };
}

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
 * Verifies the signature of a passport, but not whether it was used before. Never throws because of the passport's
 * content.
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

/** Parses a signature; `undefined` if it has another form. */
function read(text: string): Signed | undefined {
  if (text.length > longest) return undefined;
  const [, head, signature] = /^([\w-]+)\.\.([\w-]+)$/.exec(text) ?? [];
  if (head === undefined || signature === undefined || !isBase64Url(signature)) return undefined;
  const bytes = fromBase64Url(head);
  if (bytes === undefined) return undefined;
  try {
    const header: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    // A critical extension changes what is signed (RFC 7515 §4.1.11). None is supported.
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
    // Without a canonical form it cannot have been signed.
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
      // Another key of the client may match.
    }
  }
  return "invalid";
}

/**
 * The audience of an interface: its URL and its tenant, since only the tenant distinguishes agents at one gRPC address
 * (A2A 1.0 §8.3.2).
 */
export function audienceOf({ url, tenant }: Pick<AgentInterface, "url" | "tenant">): string {
  return tenant === undefined || tenant === "" ? url : `${url}#${tenant}`;
}
