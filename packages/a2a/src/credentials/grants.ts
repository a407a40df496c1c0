import { sha256, toHex } from "../base/bytes.ts";
import { A2AError } from "../model/index.ts";
import type { OAuthOptions, CredentialProvider } from "./port.ts";
import { partiesOf, requestTokens, type GrantCall } from "./server-calls.ts";
import { TokenProvider } from "./token-provider.ts";
import { callerToken, type Principal } from "../protocol/index.ts";

/* Grants without a user: for programs. */

/**
 * Tokens for a program that acts for itself: OAuth 2.0 client credentials (RFC 6749 §4.4). The client authenticates with its secret, a
 * signature with its key (`private_key_jwt`), or its certificate.
 *
 * @throws A2AError `InvalidParams` if the client has none of them.
 *
 * @example
 * ```ts
 * const credentials = [
 *   clientCredentials({ issuer: "https://login.example.com", clientId: "app", clientSecret: "from a vault" }),
 * ];
 * const client = await connect("https://example.com/agent", { credentials });
 * ```
 */
export function clientCredentials(options: OAuthOptions): CredentialProvider {
  const { clientSecret, clientKey, clientCertificate = false } = options;
  if (clientSecret === undefined && clientKey === undefined && !clientCertificate)
    throw new A2AError("InvalidParams", "Client credentials need clientSecret, clientKey or clientCertificate");
  return new TokenProvider(options, { flows: ["clientCredentials"], interactive: false, obtain });
}

async function obtain(call: GrantCall) {
  const { oauth } = call;
  const [server, client, authentication] = await partiesOf(call);
  return requestTokens(
    call,
    (options) => oauth.clientCredentialsGrantRequest(server, client, authentication, parametersOf(call), options),
    (response) => oauth.processClientCredentialsResponse(server, client, response),
  );
}

/** The parameters of each request: the scopes and the resource (RFC 8707 §2). */
export function parametersOf({ scopes, resource }: GrantCall): Record<string, string> {
  return {
    ...(scopes.length > 0 && { scope: scopes.join(" ") }),
    ...(resource !== undefined && { resource }),
  };
}

/**
 * Tokens that a login, such as `parley login`, has stored. Renews them, but never asks the user to log in: without stored tokens, the call
 * throws `Unauthenticated`.
 *
 * @example
 * ```ts
 * const store = memoryTokenStore(); // use a durable store to keep logins between runs
 * const credentials = [savedTokens({ issuer: "https://login.example.com", clientId: "cli", store })];
 * ```
 */
export function savedTokens(options: OAuthOptions): CredentialProvider {
  return new TokenProvider(options, {
    flows: ["authorizationCode", "deviceCode", "clientCredentials"],
    interactive: true,
    obtain: () => Promise.reject(new A2AError("Unauthenticated", "No valid login is stored")),
  });
}

const grantType = "urn:ietf:params:oauth:grant-type:token-exchange";
const accessTokenType = "urn:ietf:params:oauth:token-type:access_token";

/** A token of the subject or the actor of an exchange (RFC 8693 §2.1). */
export interface ExchangedToken {
  /** The token. */
  readonly token: string;
  /** Its type (RFC 8693 §3). Default: an access token. */
  readonly type?: string;
}

/** Options of a client that acts for another user. */
export interface TokenExchangeOptions extends OAuthOptions {
  /** The user: `turn.principal` (the agent's code never sees its token), or another token. */
  readonly subject: Principal | ExchangedToken;
  /** The acting party, such as the agent itself. Default: the client. */
  readonly actor?: ExchangedToken | (() => Promise<ExchangedToken>);
}

/**
 * Tokens for an agent that calls another agent on behalf of its caller: token exchange (RFC 8693). The authorization server issues a
 * token that is valid only for the other agent. The caller's own token goes to the authorization server, never to the other agent.
 *
 * A turn that continues without its request, for example after a restart, no longer has the token of its caller: the call then throws
 * `Unauthenticated`.
 *
 * @example
 * ```ts
 * const store = memoryTokenStore();
 * const client = { issuer: "https://login.example.com", clientId: "planner", clientSecret: "from a vault", store };
 * const planner = defineAgent({
 *   name: "Planner",
 *   description: "Asks the weather agent for its caller",
 *   version: "1.0.0",
 *   skills: [],
 *   async onMessage(turn) {
 *     const credentials = [tokenExchange({ ...client, subject: turn.principal })];
 *     const weather = await connect("https://example.com/weather", { credentials });
 *     return turn.reply((await weather.sendMessage(turn.text)).message?.parts ?? "No answer");
 *   },
 * });
 * ```
 */
export function tokenExchange(options: TokenExchangeOptions): CredentialProvider {
  const flows = ["clientCredentials", "authorizationCode", "deviceCode"] as const;
  const subject = (): Promise<string> => sha256(subjectOf(options).token).then(toHex);
  return new TokenProvider(options, { flows, interactive: false, subject, obtain: (call) => exchange(call, options) });
}

function subjectOf({ subject }: TokenExchangeOptions): ExchangedToken {
  if ("token" in subject) return subject;
  const token = callerToken(subject);
  if (token !== undefined) return { token };
  throw new A2AError("Unauthenticated", "The caller has no token to exchange");
}

async function exchange(call: GrantCall, options: TokenExchangeOptions) {
  const { oauth } = call;
  const [server, client, authentication] = await partiesOf(call);
  const { token, type = accessTokenType } = subjectOf(options);
  const actor = typeof options.actor === "function" ? await options.actor() : options.actor;
  const asked = {
    ...parametersOf(call),
    subject_token: token,
    subject_token_type: type,
    requested_token_type: accessTokenType,
    ...(actor && { actor_token: actor.token, actor_token_type: actor.type ?? accessTokenType }),
  };
  return requestTokens(
    call,
    (request) => oauth.genericTokenEndpointRequest(server, client, authentication, grantType, asked, request),
    (response) => oauth.processGenericTokenEndpointResponse(server, client, response),
  );
}
