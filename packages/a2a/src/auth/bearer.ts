import { A2AError, invalidParams } from "../model/index.ts";
import type { Principal, UniversalRequest } from "../protocol/index.ts";
import type { Authenticator } from "./port.ts";

export interface BearerOptions {
  /** Name of the scheme on the card. Default `bearer`. */
  readonly name?: string;
  /** Told to callers who come without a token (RFC 9110 §11.5). */
  readonly realm?: string;
  /** What the card says of the scheme. */
  readonly description?: string;
  /** A hint at how tokens look, such as `JWT` (A2A 1.0 §4.5.3). */
  readonly bearerFormat?: string;
}

/** Tells who a token belongs to; nothing: nobody. May throw an `A2AError` such as `PermissionDenied`. */
export type VerifyToken = (
  token: string,
  request: UniversalRequest,
) => Promise<Principal | undefined> | Principal | undefined;

/** RFC 6750 §2.1. */
const tokenPattern = /^[A-Za-z0-9\-._~+/]+=*$/;

/**
 * Authenticates by `Authorization: Bearer` (RFC 6750), with tokens that are known beforehand or a function that knows
 * them.
 *
 * @throws A2AError `InvalidParams` when a token could never be sent.
 */
export function bearer(
  tokens: Readonly<Record<string, Principal>> | VerifyToken,
  options: BearerOptions = {},
): Authenticator {
  const { name = "bearer", realm, description, bearerFormat } = options;
  const verify = typeof tokens === "function" ? tokens : knownTokens(tokens);
  const challenge = realm === undefined ? "Bearer" : `Bearer realm="${realm.replaceAll(/["\\]/g, "\\$&")}"`;
  const invalid = `${challenge}${realm === undefined ? " " : ", "}error="invalid_token"`;
  return {
    securitySchemes: {
      [name]: {
        httpAuthSecurityScheme: {
          scheme: "Bearer",
          ...(bearerFormat !== undefined && { bearerFormat }),
          ...(description !== undefined && { description }),
        },
      },
    },
    securityRequirements: [{ schemes: { [name]: { list: [] } } }],
    async authenticate(request) {
      const header = request.header("authorization");
      const token = header === undefined ? undefined : /^bearer +(\S.*)$/i.exec(header)?.[1]?.trimEnd();
      if (token === undefined) throw new A2AError("Unauthenticated", undefined, { challenge });
      const principal = tokenPattern.test(token) ? await verify(token, request) : undefined;
      if (principal === undefined)
        throw new A2AError("Unauthenticated", "The token is not valid", { challenge: invalid });
      return principal;
    },
  };
}

/**
 * Looks tokens up by a digest under a key that nobody knows: neither the time of the look-up nor anything stored here
 * says how close a guess came.
 */
function knownTokens(tokens: Readonly<Record<string, Principal>>): VerifyToken {
  const bad = Object.keys(tokens).filter((token) => !tokenPattern.test(token));
  if (bad.length > 0) {
    const description = "a bearer token is made of letters, digits and -._~+/, with = at its end (RFC 6750 §2.1)";
    throw invalidParams(
      [{ field: "tokens", description }],
      `${bad.length} of the tokens cannot be sent: ${description}`,
    );
  }
  const prepare = async (): Promise<VerifyToken> => {
    const encoder = new TextEncoder();
    const key = await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const digest = async (token: string) =>
      String.fromCharCode(...new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(token))));
    const rows = Object.entries(tokens).map(async ([token, principal]) => [await digest(token), principal] as const);
    const principals = new Map(await Promise.all(rows));
    return async (token) => principals.get(await digest(token));
  };
  let ready: Promise<VerifyToken> | undefined;
  return async (token, request) => (await (ready ??= prepare()))(token, request);
}
