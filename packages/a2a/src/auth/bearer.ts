import { secretDigest } from "../base/index.ts";
import { invalidParams } from "../model/index.ts";
import type { Principal, UniversalRequest } from "../protocol/index.ts";
import { challenge, problemParams } from "./challenge.ts";
import type { Authenticator } from "./port.ts";
import { defineScheme } from "./scheme.ts";

/** How bearer tokens are declared. */
export interface BearerOptions {
  /** Name of the scheme on the card. Default `bearer`. */
  readonly name?: string;
  /** The realm in `WWW-Authenticate`, for callers without a valid token (RFC 9110 §11.5). Default: none. */
  readonly realm?: string;
  /** Description of the scheme on the card. Default: none. */
  readonly description?: string;
  /** What the tokens are, such as `JWT`, on the card (A2A 1.0 §4.5.3). Default: none. */
  readonly bearerFormat?: string;
  /** The scopes that every caller needs: `Principal.scopes` must have them. Default: none. */
  readonly scopes?: readonly string[];
}

/** Returns the owner of a token, or `undefined` where the token is not valid. It may throw an `A2AError` such as `PermissionDenied`. */
export type VerifyToken = (
  token: string,
  request: UniversalRequest,
) => Promise<Principal | undefined> | Principal | undefined;

/** What a bearer token may look like (RFC 6750 §2.1). */
const tokenPattern = /^[A-Za-z0-9\-._~+/]+=*$/;

/**
 * Authenticates callers by `Authorization: Bearer` (RFC 6750).
 *
 * @param tokens - The tokens with their owners, or a function that finds the owner of a token.
 * @throws A2AError `InvalidParams` where a token contains characters that cannot be sent.
 *
 * @example
 * ```ts
 * await serve(agent, { authenticator: bearer({ "a-long-random-token": { subject: "ada" } }) });
 * ```
 */
export function bearer(
  tokens: Readonly<Record<string, Principal>> | VerifyToken,
  options: BearerOptions = {},
): Authenticator {
  const { name = "bearer", realm, description, bearerFormat, scopes } = options;
  const verify = typeof tokens === "function" ? tokens : knownTokens(tokens);
  return defineScheme({
    name,
    scheme: {
      httpAuthSecurityScheme: {
        scheme: "Bearer",
        ...(bearerFormat !== undefined && { bearerFormat }),
        ...(description !== undefined && { description }),
      },
    },
    scopes,
    credentials: (request) => bearerToken(request),
    verify: (token, request) => (tokenPattern.test(token) ? verify(token, request) : undefined),
    challenge: ({ metadataUrl }, problem) =>
      challenge("Bearer", { realm, ...problemParams(problem), resource_metadata: metadataUrl }),
  });
}

/** The token of `Authorization: Bearer`; `undefined` where there is none. It may contain anything. */
export function bearerToken(request: UniversalRequest): string | undefined {
  const header = request.header("authorization");
  return header === undefined ? undefined : /^bearer +(\S.*)$/i.exec(header)?.[1]?.trimEnd();
}

function knownTokens(tokens: Readonly<Record<string, Principal>>): VerifyToken {
  const bad = Object.keys(tokens).filter((token) => !tokenPattern.test(token));
  if (bad.length > 0) {
    const description = "a bearer token is made of letters, digits and -._~+/, with = at its end (RFC 6750 §2.1)";
    throw invalidParams(
      [{ field: "tokens", description }],
      `${bad.length} of the tokens cannot be sent: ${description}`,
    );
  }
  const digest = secretDigest();
  const prepare = async (): Promise<VerifyToken> => {
    const rows = Object.entries(tokens).map(async ([token, principal]) => [await digest(token), principal] as const);
    const principals = new Map(await Promise.all(rows));
    return async (token) => principals.get(await digest(token));
  };
  let ready: Promise<VerifyToken> | undefined;
  return async (token, request) => (await (ready ??= prepare()))(token, request);
}
