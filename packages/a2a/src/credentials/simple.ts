import { type SecurityScheme, A2AError } from "../model/index.ts";
import type { CredentialProvider, RequestCredentials, SchemeRequest, Secret } from "./port.ts";

/* Credentials that the user already has: tokens, keys, passwords. */

/** Options of `bearerToken()`, `apiKeyCredential()` and the like. */
export interface SimpleOptions {
  /** Name of the scheme on the card. Default: every scheme of the credential's kind. */
  readonly scheme?: string;
}

/**
 * A token that was issued elsewhere, as `Authorization: Bearer` (RFC 6750). It satisfies the schemes `Bearer` of HTTP, OAuth 2.0 and
 * OpenID Connect.
 *
 * @example
 * ```ts
 * const client = await connect("https://example.com/agent", { credentials: [bearerToken("a-long-random-token")] });
 * ```
 */
export function bearerToken(token: Secret, options: SimpleOptions = {}): CredentialProvider {
  return provider(token, options, isBearer, (_scheme, text) => ({ headers: { authorization: `Bearer ${text}` } }));
}

/**
 * An API key, sent in the place that the card names: in a header, in the query or in a cookie (A2A 1.0 §4.5.2). gRPC cannot
 * send a query, and pages in a browser cannot set cookies.
 *
 * @example
 * ```ts
 * const client = await connect("https://example.com/agent", { credentials: [apiKeyCredential("the-key")] });
 * ```
 */
export function apiKeyCredential(key: Secret, options: SimpleOptions = {}): CredentialProvider {
  return provider(key, options, isPlace, placeKey);
}

/**
 * A user name and a password, as `Authorization: Basic` (RFC 7617), in UTF-8.
 *
 * @throws A2AError `InvalidParams` if the user name contains a colon, which Basic does not allow.
 *
 * @example
 * ```ts
 * const credentials = [basicCredential("ada", "her password")];
 * ```
 */
export function basicCredential(username: string, password: Secret, options: SimpleOptions = {}): CredentialProvider {
  if (username.includes(":")) throw new A2AError("InvalidParams", "A Basic user name must not contain a colon");
  return provider(
    password,
    options,
    ({ httpAuthSecurityScheme: http }) => http?.scheme.toLowerCase() === "basic",
    (_scheme, text) => ({ headers: { authorization: `Basic ${base64(`${username}:${text}`)}` } }),
    true,
  );
}

/**
 * Declares that the client has a certificate for mutual TLS (A2A 1.0 §4.5.6). The connection must send it: `connect()` of `@parley/node`
 * does, with its option `tls`, and adds this declaration.
 */
export function certificateCredential(options: SimpleOptions = {}): CredentialProvider {
  return {
    supports: ({ name, scheme }) =>
      scheme.mtlsSecurityScheme !== undefined && (options.scheme === undefined || options.scheme === name),
    credentials: async () => ({}),
  };
}

/** Whether a scheme uses bearer tokens. */
export function isBearer(scheme: SecurityScheme): boolean {
  const { oauth2SecurityScheme, openIdConnectSecurityScheme, httpAuthSecurityScheme } = scheme;
  if (oauth2SecurityScheme !== undefined || openIdConnectSecurityScheme !== undefined) return true;
  return httpAuthSecurityScheme?.scheme.toLowerCase() === "bearer";
}

function provider(
  secret: Secret,
  { scheme: only }: SimpleOptions,
  fits: (scheme: SecurityScheme) => boolean,
  place: (scheme: SecurityScheme, text: string) => RequestCredentials,
  mayBeEmpty = false,
): CredentialProvider {
  let last: string | undefined;
  const read = async (): Promise<string> =>
    checked(await (typeof secret === "function" ? secret() : secret), mayBeEmpty);
  return {
    supports: ({ name, scheme }) => (only === undefined || only === name) && fits(scheme),
    async credentials({ scheme }: SchemeRequest) {
      last = await read();
      return place(scheme, last);
    },
    // Only a function can return another secret than the rejected one.
    refused: async () => typeof secret === "function" && (await read()) !== last,
  };
}

/** Rejects values that result from an unset variable, because the agent would only report wrong or missing credentials. */
function checked(secret: unknown, mayBeEmpty: boolean): string {
  if (typeof secret === "string" && (secret !== "" || mayBeEmpty)) return secret;
  const what = secret === "" ? "empty" : secret === undefined ? "undefined" : `of type ${typeof secret}`;
  throw new A2AError("InvalidParams", `A credential is ${what}. Is an environment variable not set?`);
}

/** Where a scheme expects a key, and whether a request can carry it there. The name comes from the card, so it is not trusted. */
function isPlace({ apiKeySecurityScheme: at }: SecurityScheme): boolean {
  if (at === undefined) return false;
  return (
    at.location === "query" || (/^(header|cookie)$/.test(at.location) && /^[\w!#$%&'*+.^`|~-]{1,256}$/.test(at.name))
  );
}

function placeKey({ apiKeySecurityScheme }: SecurityScheme, key: string): RequestCredentials {
  const { location = "", name = "" } = apiKeySecurityScheme ?? {};
  if (location === "header") return { headers: { [name.toLowerCase()]: key } };
  return location === "query" ? { query: { [name]: key } } : { cookies: { [name]: key } };
}

function base64(text: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}
