import { A2AError, invalidParams, type SecurityScheme } from "../model/index.ts";
import {
  isOfOtherPage,
  judgeCredentials,
  withVerifiedToken,
  type Principal,
  type UniversalRequest,
} from "../protocol/index.ts";
import { challenge, problemParams, unauthenticated, type ChallengeParams } from "./challenge.ts";
import type { Authenticator } from "./port.ts";

/** The credentials that the framework checks: a bearer token, the cookie of a session, or another scheme (A2A 1.0 §4.5.1). */
export type HostScheme = "bearer" | HostCookie | SecurityScheme;

/** A session that a cookie names. */
export interface HostCookie {
  /** Name of the cookie: `connect.sid`. */
  readonly cookie: string;
}

/** Options of `hostUser()`. */
export interface HostUserOptions {
  /**
   * The credentials that clients send, for the card: `"bearer"`, `{ cookie: "connect.sid" }`, or a scheme of a card. The framework checks
   * them, not this server.
   */
  readonly scheme: HostScheme;
  /** Name of the scheme on the card. Default `bearer`, `session` for a cookie, and `host` for others. */
  readonly name?: string;
  /** The scopes that every caller needs: `Principal.scopes` must have them. Default: none. */
  readonly scopes?: readonly string[];
}

/**
 * Accepts callers that the surrounding web framework has authenticated, by Passport, a session, or a token that middleware has checked.
 * The option `principal` of `expressMount`, `fastifyMount`, `fetchMount` and `nodeListener` returns the caller of a request; headers cannot name it.
 * If `principal` returns no caller, the answer is 401; if it throws, 500.
 *
 * A browser sends a cookie with the requests of any page. So a request without a header of the scheme is rejected if the browser says
 * that the page has another origin. `serve()` has no surrounding framework, and rejects this authenticator.
 *
 * @throws A2AError `InvalidParams` if the scheme is missing.
 *
 * @example
 * ```ts
 * const authenticator = hostUser({ scheme: { cookie: "connect.sid" } });
 * ```
 */
export function hostUser({ scheme: given, name, scopes = [] }: HostUserOptions): Authenticator {
  const { scheme, usual } = schemeOf(given);
  const called = name ?? usual;
  const shown = headerOf(scheme);
  const showsToken = shown !== undefined && /^(?:bearer|dpop) $/.test(shown.begin);
  const carries = (request: UniversalRequest): boolean =>
    shown !== undefined && request.header(shown.name)?.toLowerCase().startsWith(shown.begin) === true;
  const challengeWith = challengeOf(scheme);
  return {
    needsMount: true,
    securitySchemes: { [called]: scheme },
    securityRequirements: [{ schemes: { [called]: { list: scopes } } }],
    // A cookie proves nothing, because its session may have no user.
    ...(shown !== undefined && { hasCredentials: carries }),
    challenges: (_place, problem) => ({ [called]: challengeWith(problemParams(problem)) }),
    async authenticate(request, place) {
      const found = await request.facts?.principal;
      const isShown = carries(request);
      if (isShown) judgeCredentials(request, shown?.name ?? "", Boolean(found));
      if (!found) {
        throw unauthenticated(undefined, [challengeWith(isShown ? { error: "invalid_token" } : {})]);
      }
      if (!isShown && isOfOtherPage(request, place.url)) {
        throw new A2AError("PermissionDenied", "Pages of other origins cannot use these credentials");
      }
      const caller = withScheme(found, called);
      const token = isShown && showsToken ? tokenIn(request) : undefined;
      return token === undefined ? caller : withVerifiedToken(caller, request, token);
    },
  };
}

function schemeOf(given: HostScheme): { readonly scheme: SecurityScheme; readonly usual: string } {
  if (given === "bearer") return { scheme: { httpAuthSecurityScheme: { scheme: "Bearer" } }, usual: "bearer" };
  if (typeof given === "object" && given !== null) {
    if (!("cookie" in given)) return { scheme: given, usual: "host" };
    const { cookie } = given;
    return { scheme: { apiKeySecurityScheme: { location: "cookie", name: cookie } }, usual: "session" };
  }
  const description = 'is required: "bearer", { cookie: "connect.sid" }, or a scheme of a card';
  throw invalidParams([{ field: "scheme", description }], `The option scheme of hostUser() ${description}`);
}

/** The header of a scheme that browsers never send on their own, unlike cookies, certificates and passwords. */
function headerOf(scheme: SecurityScheme): { readonly name: string; readonly begin: string } | undefined {
  const { apiKeySecurityScheme: key, httpAuthSecurityScheme: http, mtlsSecurityScheme } = scheme;
  if (mtlsSecurityScheme !== undefined) return undefined;
  if (key !== undefined) return key.location === "header" ? { name: key.name.toLowerCase(), begin: "" } : undefined;
  if (http === undefined) return { name: "authorization", begin: "bearer " };
  const begin = `${http.scheme.toLowerCase()} `;
  return /^(?:basic|digest|negotiate|ntlm) $/.test(begin) ? undefined : { name: "authorization", begin };
}

/** A 401 must have a challenge (RFC 9110 §15.5.2). */
function challengeOf(scheme: SecurityScheme): (params: ChallengeParams) => string {
  const { apiKeySecurityScheme: key, httpAuthSecurityScheme: http } = scheme;
  if (key !== undefined) return (params) => challenge("ApiKey", { in: key.location, name: key.name, ...params });
  return (params) => challenge(http?.scheme ?? "Bearer", params);
}

function withScheme(found: Principal, name: string): Principal {
  if (typeof found.subject === "string" && found.subject !== "") {
    return { ...found, schemes: found.schemes ?? { [name]: found.scopes ?? [] } };
  }
  throw new TypeError("The option `principal` returned a caller without a `subject`");
}

/** The token that the framework has checked, for token exchange (RFC 8693). */
function tokenIn(request: UniversalRequest): string | undefined {
  return /^(?:bearer|dpop) +(\S+)/i.exec(request.header("authorization") ?? "")?.[1];
}
