import type {
  AuthorizationCodeOAuthFlow,
  ClientCredentialsOAuthFlow,
  DeviceCodeOAuthFlow,
  ImplicitOAuthFlow,
  OAuthFlows,
  PasswordOAuthFlow,
  SecurityScheme,
} from "../../model/index.ts";
import type { Authenticator } from "../port.ts";
import { introspectionAuthenticator, type IntrospectionClient } from "./introspection.ts";
import { jwtAuthenticator } from "./jwt.ts";
import { wrongOption, type JwtOptions } from "./options.ts";

/** The flows by which callers get their tokens (A2A 1.0 §4.5.7), one or several. */
export interface OAuth2Flows {
  /** For agents that act for a person. */
  readonly authorizationCode?: AuthorizationCodeOAuthFlow;
  /** For agents that act for themselves. */
  readonly clientCredentials?: ClientCredentialsOAuthFlow;
  /** For programs without a browser (RFC 8628). */
  readonly deviceCode?: DeviceCodeOAuthFlow;
  /** Deprecated by A2A 1.0. */
  readonly implicit?: ImplicitOAuthFlow;
  /** Deprecated by A2A 1.0. */
  readonly password?: PasswordOAuthFlow;
}

const flowKinds: ReadonlySet<string> = new Set([
  "authorizationCode",
  "clientCredentials",
  "deviceCode",
  "implicit",
  "password",
] satisfies (keyof OAuth2Flows)[]);

/** Options of `oauth2()`. */
export interface OAuth2Options extends JwtOptions {
  /** How callers get tokens. A scheme of a card has one flow, so several flows make several schemes, such as `oauth2-clientCredentials`. */
  readonly flows: OAuth2Flows;
  /** URL of the metadata of the authorization server (RFC 8414), for the card. Default: none. */
  readonly metadataUrl?: string;
  /** Asks the authorization server about each token, if its tokens are not JWTs (RFC 7662). Default: tokens are JWTs. */
  readonly introspection?: IntrospectionClient;
}

/**
 * Authenticates callers by OAuth 2.0. The card shows callers how to get tokens. Tokens are checked in the same way as by `jwt()`, or by asking the
 * authorization server.
 *
 * @throws A2AError `InvalidParams` if an option is not valid.
 *
 * @example
 * ```ts
 * const authenticator = oauth2({
 *   issuer: "https://login.example.com",
 *   scopes: ["chat"],
 *   flows: {
 *     clientCredentials: { tokenUrl: "https://login.example.com/token", scopes: { chat: "Talk to the agent" } },
 *   },
 * });
 * ```
 */
export function oauth2(options: OAuth2Options): Authenticator {
  const { name = "oauth2", description, metadataUrl, introspection } = options;
  const flows = Object.entries(options.flows ?? {}).filter(([, flow]) => flow !== undefined);
  if (flows.length === 0) throw wrongOption("flows", "must have at least one flow");
  const unknown = flows.find(([kind]) => !flowKinds.has(kind));
  if (unknown !== undefined) {
    throw wrongOption("flows", `must have only ${[...flowKinds].join(", ")}; got ${JSON.stringify(unknown[0])}`);
  }
  const schemes = flows.map(([kind, flow]): [string, SecurityScheme] => [
    flows.length === 1 ? name : `${name}-${kind}`,
    {
      oauth2SecurityScheme: {
        flows: { [kind]: flow as unknown } as OAuthFlows,
        ...(metadataUrl !== undefined && { oauth2MetadataUrl: metadataUrl }),
        ...(description !== undefined && { description }),
      },
    },
  ]);
  const entries = Object.fromEntries(schemes);
  return introspection === undefined
    ? jwtAuthenticator(entries, options)
    : introspectionAuthenticator(entries, { ...options, ...introspection });
}

/**
 * Authenticates callers by access tokens of an OpenID provider, whose discovery document the card names. Checks tokens like
 * `jwt()`. Rejects ID tokens, which are not access tokens.
 *
 * @throws A2AError `InvalidParams` if an option is not valid.
 *
 * @example
 * ```ts
 * const authenticator = openIdConnect({ issuer: "https://login.example.com" });
 * ```
 */
export function openIdConnect(options: JwtOptions): Authenticator {
  const { name = "openIdConnect", description, issuer } = options;
  if (typeof issuer !== "string") throw wrongOption("issuer", "is required");
  const openIdConnectUrl = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const scheme = { openIdConnectUrl, ...(description !== undefined && { description }) };
  return jwtAuthenticator({ [name]: { openIdConnectSecurityScheme: scheme } }, options);
}
