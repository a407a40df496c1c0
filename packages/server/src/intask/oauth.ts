import * as oauth from "oauth4webapi";
import { isLoopback } from "@parley/a2a/internal/base/index";
import type { JsonObject } from "@parley/a2a/internal/model/index";
import type { OAuthInit, OAuthTokens } from "@parley/a2a/internal/protocol/index";
import { defined } from "@parley/a2a/internal/base/defined";

/* The authorization code flow of a request (RFC 6749 §4.1), with PKCE (RFC 7636) and the check of the issuer (RFC 9207). */

/** How long an answer of the authorization server may take, in milliseconds. */
const timeout = 10_000;

interface Started {
  readonly redirectUri: string;
  readonly state: string;
}

/** The URL that a person is sent to, and the verifier for the exchange of the code. */
export async function authorizationUrl(
  init: OAuthInit,
  { redirectUri, state }: Started,
): Promise<{ readonly url: string; readonly verifier: string }> {
  const server = await serverOf(init);
  const endpoint = server.authorization_endpoint;
  if (endpoint === undefined) throw new Error(`${server.issuer} has no authorization endpoint`);
  const url = new URL(endpoint);
  if (!mayCall(url)) throw new Error(`${server.issuer} has an authorization endpoint without TLS`);
  const verifier = oauth.generateRandomCodeVerifier();
  const parameters = {
    ...init.parameters,
    response_type: "code",
    client_id: init.clientId,
    redirect_uri: redirectUri,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    ...defined({ scope: init.scope, resource: init.resource }),
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return { url: url.href, verifier };
}

interface Redirected extends Started {
  readonly verifier: string;
  /** The query of the redirect. */
  readonly parameters: string;
  readonly signal: AbortSignal;
}

/** Exchanges the code. Errors do not contain any part of an answer. */
export async function exchangeCode(init: OAuthInit, redirected: Redirected): Promise<OAuthTokens> {
  try {
    return await exchange(init, redirected);
  } catch (error) {
    throw withoutAnswer(error);
  }
}

async function exchange(init: OAuthInit, redirected: Redirected): Promise<OAuthTokens> {
  const { redirectUri, state, verifier, parameters } = redirected;
  const server = await serverOf(init);
  const client: oauth.Client = { client_id: init.clientId };
  const checked = oauth.validateAuthResponse(server, client, new URLSearchParams(parameters), state);
  const response = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    authenticationOf(init, server),
    checked,
    redirectUri,
    verifier,
    {
      ...optionsOf(init, server.token_endpoint ?? server.issuer),
      signal: AbortSignal.any([redirected.signal, AbortSignal.timeout(timeout)]),
      ...(init.resource !== undefined && { additionalParameters: { resource: init.resource } }),
    },
  );
  return tokensOf(await oauth.processAuthorizationCodeResponse(server, client, response));
}

function tokensOf(result: oauth.TokenEndpointResponse): OAuthTokens {
  const claims = oauth.getValidatedIdTokenClaims(result);
  return defined({
    accessToken: result.access_token,
    tokenType: result.token_type,
    expiresAt: result.expires_in === undefined ? undefined : Date.now() + result.expires_in * 1000,
    refreshToken: result.refresh_token,
    scope: result.scope,
    claims: claims as unknown as JsonObject | undefined,
  });
}

/** The metadata of the server: as given, or as the server publishes it (RFC 8414, OpenID Connect Discovery). */
async function serverOf(init: OAuthInit): Promise<oauth.AuthorizationServer> {
  if (typeof init.server !== "string") {
    const { issuer, authorizationEndpoint, tokenEndpoint } = init.server;
    return { issuer, authorization_endpoint: authorizationEndpoint, token_endpoint: tokenEndpoint };
  }
  const issuer = new URL(init.server);
  const options = { ...optionsOf(init, init.server), signal: () => AbortSignal.timeout(timeout) };
  const found = await oauth.discoveryRequest(issuer, { ...options, algorithm: "oauth2" });
  if (found.status !== 404) return oauth.processDiscoveryResponse(issuer, found);
  await found.body?.cancel();
  return oauth.processDiscoveryResponse(
    issuer,
    await oauth.discoveryRequest(issuer, { ...options, algorithm: "oidc" }),
  );
}

function optionsOf({ fetch: given }: OAuthInit, url: string) {
  return {
    // Without TLS only on this machine, as in tests.
    [oauth.allowInsecureRequests]: isLoopback(new URL(url).hostname),
    ...(given !== undefined && {
      [oauth.customFetch]: (address: string, init: object): Promise<Response> => given(address, init),
    }),
  };
}

function mayCall({ protocol, hostname }: URL): boolean {
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
}

/** `client_secret_basic`, which every server must support (RFC 6749 §2.3.1), unless the server lists its methods without it. */
function authenticationOf({ clientSecret }: OAuthInit, server: oauth.AuthorizationServer): oauth.ClientAuth {
  if (clientSecret === undefined) return oauth.None();
  const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  return methods.includes("client_secret_basic")
    ? oauth.ClientSecretBasic(clientSecret)
    : oauth.ClientSecretPost(clientSecret);
}

/** Errors of the library may hold the answer of the server, with tokens, which must not be logged. */
function withoutAnswer(error: unknown): Error {
  if (error instanceof oauth.ResponseBodyError) return new Error(`The authorization server answered ${error.error}`);
  if (error instanceof oauth.AuthorizationResponseError)
    return new Error(`The authorization server answered with the error ${error.error}`);
  return new Error(error instanceof Error ? `${error.name}: ${error.message}` : "The code could not be exchanged");
}
