import type { Principal, UniversalRequest } from "../protocol/index.ts";
import { challenge, problemParams } from "./challenge.ts";
import type { Authenticator } from "./port.ts";
import { defineScheme } from "./scheme.ts";
import { secretLookup } from "./secrets.ts";

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
 * @param tokens - The owners by their tokens, or by the hashes of these, as `hashKey()` and `parley key` make them; or a function
 * that finds the owner of a token.
 * @throws A2AError `InvalidParams` where a token contains characters that cannot be sent, or a hash is no hash.
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
  const what = "a bearer token is made of letters, digits and -._~+/, with = at its end (RFC 6750 §2.1)";
  const verify =
    typeof tokens === "function" ? tokens : secretLookup(tokens, (token) => tokenPattern.test(token), what);
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
    accessToken: (token) => token,
    verify: (token, request) => (tokenPattern.test(token) ? verify(token, request) : undefined),
    challenge: ({ metadataUrl }, problem) =>
      challenge("Bearer", { realm, ...problemParams(problem), resource_metadata: metadataUrl }),
  });
}

/** The token of `Authorization: Bearer`; `undefined` where there is none. It may contain anything. */
function bearerToken(request: UniversalRequest): string | undefined {
  const header = request.header("authorization");
  return header === undefined ? undefined : /^bearer +(\S.*)$/i.exec(header)?.[1]?.trimEnd();
}
