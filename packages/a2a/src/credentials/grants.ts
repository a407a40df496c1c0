import { A2AError } from "../model/index.ts";
import type { OAuthOptions } from "./options.ts";
import type { CredentialProvider } from "./port.ts";
import { authenticationOf, clientOf, requestTokens, serverOf, type GrantCall } from "./server-calls.ts";
import { TokenProvider } from "./token-provider.ts";

/* Grants without a user: for programs. */

/**
 * Tokens for a program that acts for itself: OAuth 2.0 client credentials (RFC 6749 §4.4). The client authenticates by its secret, by
 * a signature of its key (`private_key_jwt`), or by its certificate.
 *
 * @throws A2AError `InvalidParams` where the client has none of them.
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
  const [server, client, authentication] = [serverOf(call), clientOf(call), await authenticationOf(call)];
  return requestTokens(
    call,
    (options) => oauth.clientCredentialsGrantRequest(server, client, authentication, parametersOf(call), options),
    (response) => oauth.processClientCredentialsResponse(server, client, response),
  );
}

/** What each request says: the scopes and the resource (RFC 8707 §2). */
export function parametersOf({ scopes, resource }: GrantCall): Record<string, string> {
  return {
    ...(scopes.length > 0 && { scope: scopes.join(" ") }),
    ...(resource !== undefined && { resource }),
  };
}

/**
 * Tokens that a login has stored, such as that of `parley login`. They are renewed, and nobody is asked to log in: where there are
 * none, the call throws `Unauthenticated`.
 *
 * @example
 * ```ts
 * const store = memoryTokenStore(); // in a program that ends, one that keeps them
 * const credentials = [savedTokens({ issuer: "https://login.example.com", clientId: "cli", store })];
 * ```
 */
export function savedTokens(options: OAuthOptions): CredentialProvider {
  return new TokenProvider(options, {
    flows: ["authorizationCode", "deviceCode", "clientCredentials"],
    interactive: true,
    obtain: () => Promise.reject(new A2AError("Unauthenticated", "No login is stored, or it is not valid any more")),
  });
}
