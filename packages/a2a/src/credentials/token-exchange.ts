import { A2AError } from "../model/index.ts";
import { callerToken, type Principal } from "../protocol/index.ts";
import { parametersOf } from "./grants.ts";
import type { OAuthOptions } from "./options.ts";
import type { CredentialProvider } from "./port.ts";
import { authenticationOf, clientOf, requestTokens, serverOf, type GrantCall } from "./server-calls.ts";
import { TokenProvider } from "./token-provider.ts";

const grantType = "urn:ietf:params:oauth:grant-type:token-exchange";
const accessTokenType = "urn:ietf:params:oauth:token-type:access_token";

/** A token that says for whom, or by whom, something is done (RFC 8693 §2.1). */
export interface ExchangedToken {
  /** The token. */
  readonly token: string;
  /** What it is (RFC 8693 §3). Default: an access token. */
  readonly type?: string;
}

/** A client that acts for somebody else. */
export interface TokenExchangeOptions extends OAuthOptions {
  /** For whom: `turn.principal`, whose token stays inside, or another token. */
  readonly subject: Principal | ExchangedToken;
  /** Who acts, such as the agent itself. Default: the client. */
  readonly actor?: ExchangedToken | (() => Promise<ExchangedToken>);
}

/**
 * Tokens for an agent that calls another agent on behalf of its caller: token exchange (RFC 8693). The authorization server issues a
 * token for the other agent alone. The caller's own token goes to the authorization server, never to the other agent.
 *
 * A turn that begins without its request, as after a restart, has no token of its caller any more: the call then throws
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
  const subject = (): Promise<string> => digest(subjectOf(options).token);
  return new TokenProvider(options, { flows, interactive: false, subject, obtain: (call) => exchange(call, options) });
}

function subjectOf({ subject }: TokenExchangeOptions): ExchangedToken {
  if ("token" in subject) return subject;
  const token = callerToken(subject);
  if (token !== undefined) return { token };
  throw new A2AError("Unauthenticated", "There is no token of the caller to exchange");
}

async function exchange(call: GrantCall, options: TokenExchangeOptions) {
  const { oauth } = call;
  const [server, client, authentication] = [serverOf(call), clientOf(call), await authenticationOf(call)];
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

/** Names the tokens of a subject in a store. It tells nothing of the token. */
async function digest(token: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token)));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
