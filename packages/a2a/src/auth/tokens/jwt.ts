import type { JWTPayload, JWTVerifyGetKey, JWTVerifyOptions } from "jose";
import { isCompactJws } from "../../base/bytes.ts";
import { A2AError } from "../../model/index.ts";
import type { Authenticator } from "../port.ts";
import { keySource } from "./issuer.ts";
import { checkedAlgorithms, checkedUrl, tokenHost, wrongOption, type JwtOptions, type TokenHost } from "./options.ts";
import { tokenAuthenticator } from "./token-authenticator.ts";
import { WrongToken, type CheckToken } from "./token.ts";
import { isObject } from "../../model/schema.ts";

/**
 * Authenticates callers by access tokens that are JWTs (RFC 9068), sent as `Authorization: Bearer` or `DPoP`. Verifies signatures with the
 * keys of the issuer, which it reads with the first token, and again for a token with an unknown key.
 *
 * @throws A2AError `InvalidParams` if an option is not valid.
 *
 * @example
 * ```ts
 * await serve(agent, { authenticator: jwt({ issuer: "https://login.example.com" }) });
 * ```
 */
export function jwt(options: JwtOptions): Authenticator {
  const { name = "jwt", description } = options;
  const scheme = {
    httpAuthSecurityScheme: {
      scheme: "Bearer",
      bearerFormat: "JWT",
      ...(description !== undefined && { description }),
    },
  };
  return jwtAuthenticator({ [name]: scheme }, options);
}

/** An authenticator for JWTs. `schemes`: its entries on the card. */
export function jwtAuthenticator(schemes: Authenticator["securitySchemes"], options: JwtOptions): Authenticator {
  const { issuer, keySet } = options;
  if (typeof issuer !== "string" || issuer === "") throw wrongOption("issuer", "is required");
  // With `keySet` the issuer may be any text. Without it, the keys are found by the URL of the issuer.
  const named = keySet === undefined || URL.canParse(issuer) ? checkedUrl("issuer", issuer) : undefined;
  const host = tokenHost(options, [named, typeof keySet === "string" ? checkedUrl("keySet", keySet) : undefined]);
  return tokenAuthenticator({ schemes, options, host, issuer, check: jwtCheck(options, host) });
}

function jwtCheck(options: JwtOptions, host: TokenHost): CheckToken {
  const { issuer, type = "at+jwt" } = options;
  const algorithms = checkedAlgorithms("algorithms", options.algorithms);
  const keys = keySource(options, host);
  return async (token) => {
    const { decodeJwt, decodeProtectedHeader, errors } = await import("jose");
    // A token must have only one spelling. Otherwise a token that was revoked by its text would be accepted in another spelling.
    if (!isCompactJws(token)) throw new WrongToken("The token is not a JWT");
    try {
      // Reject invalid tokens before reading any keys.
      const { alg, typ } = decodeProtectedHeader(token);
      if (typeof alg !== "string" || !algorithms.includes(alg))
        throw new WrongToken("The algorithm of the token is not accepted");
      if (!isOfType(typ, type)) throw new WrongToken(`The type of the token is not ${type}`);
      if (decodeJwt(token).iss !== issuer) throw new WrongToken("The token is from another issuer");
      const currentDate = new Date(host.clock.now());
      const rules = { algorithms, issuer, currentDate, clockTolerance: host.tolerance / 1000, requiredClaims: ["exp"] };
      const known = await keys.current();
      const payload = await verified(token, known, rules).catch(async (thrown: unknown) => {
        if (!(thrown instanceof errors.JWKSNoMatchingKey)) throw thrown;
        const newer = await keys.again();
        if (newer === undefined) throw thrown;
        return verified(token, newer, rules);
      });
      const { iat, exp = 0 } = payload;
      if (iat !== undefined && iat * 1000 > host.clock.now() + host.tolerance)
        throw new WrongToken("The token was issued in the future");
      return { claims: payload, expires: exp * 1000 };
    } catch (thrown) {
      if (thrown instanceof A2AError || thrown instanceof WrongToken) throw thrown;
      throw new WrongToken(described(isObject(thrown) ? thrown["code"] : undefined), undefined, thrown);
    }
  };
}

/** Compares media types (RFC 7515 §4.1.9). */
function isOfType(typ: unknown, wanted: string): boolean {
  const whole = (type: string): string => (type.includes("/") ? type : `application/${type}`).toLowerCase();
  return typeof typ === "string" && whole(typ) === whole(wanted);
}

/** Maximum number of keys tried for a token without a key id: each try costs as much as verifying a token. */
const maxTries = 8;

/** Verifies with the matching key, or tries each of several. */
async function verified(token: string, keys: JWTVerifyGetKey, rules: JWTVerifyOptions): Promise<JWTPayload> {
  const { errors, jwtVerify } = await import("jose");
  try {
    return (await jwtVerify(token, keys, rules)).payload;
  } catch (thrown) {
    if (!(thrown instanceof errors.JWKSMultipleMatchingKeys)) throw thrown;
    let tries = 0;
    for await (const key of thrown) {
      if (++tries > maxTries) break;
      try {
        return (await jwtVerify(token, key, rules)).payload;
      } catch (failed) {
        if (!(failed instanceof errors.JWSSignatureVerificationFailed)) throw failed;
      }
    }
    throw new errors.JWKSNoMatchingKey();
  }
}

function described(code: unknown): string {
  switch (code) {
    case "ERR_JWT_EXPIRED":
      return "The token has expired";
    case "ERR_JWT_CLAIM_VALIDATION_FAILED":
      return "One of its claims is missing or not valid";
    case "ERR_JWKS_NO_MATCHING_KEY":
      return "The issuer has no such key";
    case "ERR_JWS_SIGNATURE_VERIFICATION_FAILED":
      return "The signature of the token is not valid";
    default:
      return "The token is not a JWT";
  }
}
