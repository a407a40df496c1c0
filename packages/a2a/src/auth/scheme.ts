import { A2AError, hasCode, type SecurityScheme } from "../model/index.ts";
import {
  isOfOtherPage,
  judgeCredentials,
  withVerifiedToken,
  type Principal,
  type UniversalRequest,
} from "../protocol/index.ts";
import { unauthenticated } from "./challenge.ts";
import { checkSubject } from "./guarded.ts";
import type { AuthenticationPlace, Authenticator, ChallengeProblem, ProtectedResource } from "./port.ts";

/** One scheme of a card: its declaration, the place of its credentials in a request, and their check. */
export interface SchemeDefinition<Credentials> {
  /** Its name on the card. */
  readonly name: string;
  /** Its entry on the card (A2A 1.0 §4.5.1). */
  readonly scheme: SecurityScheme;
  /** The scopes that every caller needs. They are in the requirement on the card. Default: none. */
  readonly scopes?: readonly string[] | undefined;
  /** Facts about its tokens for the metadata of the protected resource (RFC 9728). */
  readonly resource?: ProtectedResource | undefined;
  /**
   * Whether browsers add the credentials to requests on their own, such as cookies, Basic and certificates. Requests from pages of other
   * origins are then rejected (CSRF). Default false.
   */
  readonly isAmbient?: boolean;
  /** The credentials of a request, unchecked; `undefined` if it has none. */
  credentials(request: UniversalRequest): Credentials | undefined;
  /**
   * The caller; `undefined` if the credentials are invalid. You need not set `Principal.schemes`: by default it has this scheme, with the
   * `scopes` of the principal.
   *
   * @throws A2AError `Unauthenticated` to describe the problem, `Unavailable` if the credentials cannot be checked now.
   */
  verify(
    credentials: Credentials,
    request: UniversalRequest,
    place: AuthenticationPlace,
  ): Promise<Principal | undefined> | Principal | undefined;
  /**
   * The access token in credentials that `verify` has accepted. `tokenExchange()` exchanges it when an agent acts for the caller (RFC
   * 8693). Default: none, and an exchange fails.
   */
  accessToken?(credentials: Credentials): string | undefined;
  /** The challenge for callers without credentials, or whose credentials have a problem. */
  challenge(place: AuthenticationPlace, problem?: ChallengeProblem): string;
}

const invalidToken: ChallengeProblem = { error: "invalid_token" };

/**
 * Makes an authenticator for one scheme of a card. `apiKey()`, `basic()`, `bearer()` and others use it.
 *
 * @example
 * ```ts
 * const signed = defineScheme({
 *   name: "signature",
 *   scheme: { httpAuthSecurityScheme: { scheme: "Signature" } },
 *   credentials: (request) => request.header("x-signature"),
 *   verify: (signature) => (signature === "expected" ? { subject: "ada" } : undefined),
 *   challenge: (_place, problem) => challenge("Signature", { error: problem?.error }),
 * });
 * ```
 */
export function defineScheme<Credentials>(definition: SchemeDefinition<Credentials>): Authenticator {
  const { name, scheme, scopes = [], resource, isAmbient = false } = definition;
  const from = sourceOf(scheme);
  const verify: typeof definition.verify = async (credentials, request, place) => {
    try {
      const principal = await definition.verify(credentials, request, place);
      if (from !== undefined) judgeCredentials(request, from, principal !== undefined);
      return principal;
    } catch (thrown) {
      if (from !== undefined) judgeCredentials(request, from, !hasCode(thrown, "Unauthenticated"));
      throw thrown;
    }
  };
  // `verify` often returns the same objects, so the copy with schemes is cached.
  const named = new WeakMap<Principal, Principal>();
  const satisfying = (principal: Principal): Principal => {
    checkSubject(principal);
    if (principal.schemes !== undefined) return principal;
    const made = named.get(principal) ?? { ...principal, schemes: { [name]: principal.scopes ?? [] } };
    named.set(principal, made);
    return made;
  };
  return {
    securitySchemes: { [name]: scheme },
    securityRequirements: [{ schemes: { [name]: { list: scopes } } }],
    ...(resource !== undefined && { resource }),
    hasCredentials: (request) => definition.credentials(request) !== undefined,
    challenges: (place, problem) => ({ [name]: definition.challenge(place, problem) }),
    async authenticate(request, place) {
      const credentials = definition.credentials(request);
      if (credentials === undefined) throw unauthenticated(undefined, [definition.challenge(place)]);
      if (isAmbient && isOfOtherPage(request, place.url)) {
        throw new A2AError("PermissionDenied", "Pages of other origins cannot use these credentials");
      }
      const principal = await verify(credentials, request, place);
      if (principal !== undefined) {
        const caller = satisfying(principal);
        const token = definition.accessToken?.(credentials);
        return token === undefined ? caller : withVerifiedToken(caller, request, token);
      }
      throw unauthenticated("The credentials are not valid", [definition.challenge(place, invalidToken)]);
    },
  };
}

/** The place of a scheme's credentials in a request. `undefined`: the credentials are certificates, which cannot be guessed. */
function sourceOf({ apiKeySecurityScheme: key, mtlsSecurityScheme }: SecurityScheme): string | undefined {
  if (mtlsSecurityScheme !== undefined) return undefined;
  return key === undefined ? "authorization" : `${key.location} ${key.name.toLowerCase()}`;
}
