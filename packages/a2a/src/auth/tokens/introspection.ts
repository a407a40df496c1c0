import type { AuthorizationServer, Client, ClientAuth, CustomFetchOptions } from "oauth4webapi";
import { withoutSlashes } from "../../base/index.ts";
import { A2AError } from "../../model/index.ts";
import type { Authenticator } from "../port.ts";
import { endpointOf, issuerMetadata } from "./issuer.ts";
import { checkedUrl, tokenHost, wrongOption, type TokenHost, type TokenOptions } from "./options.ts";
import { tokenAuthenticator } from "./token-authenticator.ts";
import { WrongToken, type CheckedToken, type CheckToken } from "./token.ts";

/** The client settings with which this server calls the introspection endpoint. */
export interface IntrospectionClient {
  /** The client id of this server at the authorization server. */
  readonly clientId: string;
  /** The client's secret. */
  readonly clientSecret: string;
  /** Where the secret is sent: in the header `Authorization` (`basic`), or in the form (`post`). Default `basic`. */
  readonly clientAuthentication?: "basic" | "post";
  /** URL of the endpoint. Default: the `introspection_endpoint` of the metadata of the issuer. */
  readonly endpoint?: string;
}

/** Options of `introspection()`. */
export interface IntrospectionOptions extends Omit<TokenOptions, "audience">, IntrospectionClient {
  /** The issuer of the tokens: its URL. */
  readonly issuer: string;
  /**
   * The required audience of tokens. Default: the URL of the agent or of the server, so the answer must have `aud`. `false`: not checked,
   * for authorization servers that never name an audience. Tokens for any other service of that authorization server are then accepted
   * here.
   */
  readonly audience?: string | readonly string[] | false;
}

/**
 * Authenticates callers by tokens of any kind: asks the authorization server about each new token (RFC 7662), and caches the
 * answer for `remember` milliseconds, by default 30 s.
 *
 * @throws A2AError `InvalidParams` if an option is not valid.
 *
 * @example
 * ```ts
 * const authenticator = introspection({
 *   issuer: "https://login.example.com",
 *   clientId: "weather-agent",
 *   clientSecret: "secret",
 * });
 * ```
 */
export function introspection(options: IntrospectionOptions): Authenticator {
  const { name = "introspection", description } = options;
  const scheme = { scheme: "Bearer", ...(description !== undefined && { description }) };
  return introspectionAuthenticator({ [name]: { httpAuthSecurityScheme: scheme } }, options);
}

/** An authenticator that asks about tokens, with entries of a card. */
export function introspectionAuthenticator(
  schemes: Authenticator["securitySchemes"],
  options: IntrospectionOptions,
): Authenticator {
  const { issuer, clientId, clientSecret, endpoint, remember = 30_000 } = options;
  if (!clientId) throw wrongOption("clientId", "is required");
  if (!clientSecret) throw wrongOption("clientSecret", "is required");
  const url = endpoint === undefined ? undefined : checkedUrl("endpoint", endpoint);
  const host = tokenHost(options, [checkedUrl("issuer", issuer), url]);
  const check = introspectionCheck(options, host);
  return tokenAuthenticator({ schemes, options: { ...options, remember }, host, issuer, check });
}

/** Maximum concurrent requests, because anyone can make up tokens. */
const maxRequests = 64;

function introspectionCheck(options: IntrospectionOptions, host: TokenHost): CheckToken {
  const { issuer, clientId, clientSecret, clientAuthentication = "basic", endpoint } = options;
  const metadata = endpoint === undefined ? issuerMetadata(issuer, host) : undefined;
  let asking = 0;
  return async (token) => {
    // Other tokens belong to other authenticators, if several are combined.
    if (await isOfOther(token, issuer)) throw new WrongToken("The token is from another issuer");
    if (asking >= maxRequests) throw unavailable("Too many tokens are being checked");
    asking += 1;
    try {
      const address = endpoint ?? endpointOf((await metadata?.current()) ?? {}, "introspection_endpoint");
      const { ClientSecretBasic, ClientSecretPost } = await import("oauth4webapi");
      const authentication = (clientAuthentication === "basic" ? ClientSecretBasic : ClientSecretPost)(clientSecret);
      const server = { issuer, introspection_endpoint: address };
      return checkAnswer(await asked(server, { client_id: clientId }, authentication, token, host), issuer, host);
    } catch (thrown) {
      if (thrown instanceof A2AError || thrown instanceof WrongToken) throw thrown;
      throw unavailable("Failed to call the authorization server", thrown);
    } finally {
      asking -= 1;
    }
  };
}

function unavailable(message: string, cause?: unknown): A2AError {
  return new A2AError("Unavailable", message, { cause, retryAfter: 5 });
}

async function asked(
  server: AuthorizationServer,
  client: Client,
  authentication: ClientAuth,
  token: string,
  host: TokenHost,
): Promise<Readonly<Record<string, unknown>>> {
  const { allowInsecureRequests, customFetch, introspectionRequest, processIntrospectionResponse } =
    await import("oauth4webapi");
  const response = await introspectionRequest(server, client, authentication, token, {
    // The options were checked, so a URL without TLS is on this machine.
    [allowInsecureRequests]: true,
    [customFetch]: (url: string, { method, headers, body }: CustomFetchOptions<"POST", URLSearchParams>) =>
      host.fetch(url, { method, headers, body: body.toString() }),
  });
  return processIntrospectionResponse(server, client, response);
}

/** Whether a token is a JWT that names another issuer. */
async function isOfOther(token: string, issuer: string): Promise<boolean> {
  const { decodeJwt } = await import("jose");
  try {
    const { iss } = decodeJwt(token);
    return iss !== undefined && !isIssuer(iss, issuer);
  } catch {
    return false;
  }
}

function isIssuer(iss: unknown, issuer: string): boolean {
  return typeof iss === "string" && withoutSlashes(iss) === withoutSlashes(issuer);
}

/** Reads an introspection response (RFC 7662 §2.2). */
function checkAnswer(answer: Readonly<Record<string, unknown>>, issuer: string, host: TokenHost): CheckedToken {
  const { active, iss, exp, nbf, token_type: type } = answer;
  if (active !== true) throw new WrongToken("The token is not active");
  if (iss !== undefined && !isIssuer(iss, issuer)) throw new WrongToken("The token is from another issuer");
  const now = host.clock.now();
  if (typeof nbf === "number" && nbf * 1000 > now + host.tolerance) throw new WrongToken("The token is not valid yet");
  // Some servers call refresh tokens active, too.
  if (typeof type === "string" && /refresh|id_token/i.test(type))
    throw new WrongToken("The token is not an access token");
  return { claims: answer, expires: typeof exp === "number" ? exp * 1000 : Infinity };
}
