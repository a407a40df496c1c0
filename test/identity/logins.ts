import { createHash, randomBytes } from "node:crypto";
import { keepSecret } from "../secrets.ts";
import { providerSecret } from "./provider-clients.ts";
import type { TestProvider } from "./provider.ts";

/** Gets tokens from the provider for tests, independently of the tested code. */

/** The parameters of a token request in addition to `grant_type`. */
export interface TokenRequest {
  /** The client. Default `service`. */
  readonly client?: string;
  readonly grant_type?: string;
  readonly resource?: string;
  readonly scope?: string;
  readonly subject_token?: string;
  readonly subject_token_type?: string;
}

/** The part of a token response that tests read. */
export interface TokenAnswer {
  readonly access_token: string;
  readonly refresh_token?: string;
  readonly id_token?: string;
}

/** An access token by the client credentials grant, or by another one. `headers`: additional headers, such as a proof. */
export async function clientToken(
  { issuer }: Pick<TestProvider, "issuer">,
  { client = "service", grant_type = "client_credentials", ...rest }: TokenRequest,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const authorization = `Basic ${btoa(`${client}:${providerSecret}`)}`;
  const answer = await tokenOf({ issuer }, { grant_type, ...rest }, { authorization, ...headers });
  return answer.access_token;
}

/** Posts a form to the token endpoint, and reads the response. */
export async function tokenOf(
  { issuer }: Pick<TestProvider, "issuer">,
  form: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<TokenAnswer> {
  const response = await fetch(`${issuer}/token`, { method: "POST", headers, body: new URLSearchParams(form) });
  if (response.status !== 200) throw new Error(`The provider answered ${response.status}: ${await response.text()}`);
  const answer = (await response.json()) as TokenAnswer;
  for (const token of [answer.access_token, answer.refresh_token, answer.id_token]) keepSecret(token);
  return answer;
}

/**
 * Acts like a browser that opens a URL: follows redirects and keeps cookies, until a redirect leads to `end`. The provider logs the
 * user in on the way.
 *
 * @returns The URL that starts with `end`, with the provider's parameters.
 */
export async function browse(start: string, end: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = start;
  for (let hop = 0; hop < 20; hop += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: { cookie } });
    for (const set of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      cookies.set(name, value);
    }
    const text = await response.text();
    const location = response.headers.get("location");
    if (location === null) throw new Error(`${url} answered ${response.status} and no redirect: ${text}`);
    url = new URL(location, url).href;
    if (url.startsWith(end)) return new URL(url);
  }
  throw new Error(`${start} redirects without an end`);
}

/** The tokens of a user who logs in to the client `native`. */
export async function userToken(
  { issuer }: Pick<TestProvider, "issuer">,
  { resource, scope, user = "ada" }: { readonly resource: string; readonly scope: string; readonly user?: string },
): Promise<TokenAnswer> {
  const verifier = randomBytes(32).toString("base64url");
  const redirect_uri = "http://127.0.0.1:9/callback";
  const query = new URLSearchParams({
    client_id: "native",
    response_type: "code",
    redirect_uri,
    scope,
    resource,
    login_hint: user,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  });
  const callback = await browse(`${issuer}/auth?${query.toString()}`, redirect_uri);
  const code = callback.searchParams.get("code");
  if (code === null) throw new Error(`The provider has refused: ${callback.search}`);
  const form = { grant_type: "authorization_code", client_id: "native", code, redirect_uri, resource };
  return tokenOf({ issuer }, { ...form, code_verifier: verifier });
}
