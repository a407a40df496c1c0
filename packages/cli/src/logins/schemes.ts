import type { Login } from "./logins.ts";
import type { AgentCard, SecurityRequirement, SecurityScheme } from "@parley/a2a/model";

/** A scheme that a card names. */
export interface NamedScheme {
  readonly name: string;
  readonly scheme: SecurityScheme;
  /** The scopes that its requirement names. */
  readonly scopes: readonly string[];
}

/** How to log in with a scheme; `undefined` if it is not supported. */
export function kindOf(scheme: SecurityScheme): Login["kind"] | undefined {
  if (scheme.apiKeySecurityScheme !== undefined) return "apiKey";
  if (scheme.oauth2SecurityScheme !== undefined || scheme.openIdConnectSecurityScheme !== undefined) return "oauth2";
  const http = scheme.httpAuthSecurityScheme?.scheme.toLowerCase();
  return http === "basic" || http === "bearer" ? http : undefined;
}

/** How to get a token: in a browser on this machine, with a code in any browser, with a client secret. */
export type Flow = "browser" | "device" | "client";

const namesOnCard = { authorizationCode: "browser", deviceCode: "device", clientCredentials: "client" } as const;

/** The OAuth flows of a scheme. OpenID Connect lists none, so it may have any. */
export function flowsOf({ oauth2SecurityScheme }: SecurityScheme): readonly Flow[] {
  const { flows } = oauth2SecurityScheme ?? {};
  return Object.entries(namesOnCard).flatMap(([name, flow]) =>
    flows === undefined || Object.hasOwn(flows, name) ? [flow] : [],
  );
}

const maxRequirements = 50;

/**
 * The combinations of schemes that a caller can authenticate with, in the order of the card (A2A 1.0 §4.5). Empty: no credentials are
 * required. Many cards list schemes without requiring them; then each scheme is a combination.
 */
export function alternatives(card: AgentCard): readonly (readonly NamedScheme[])[] {
  const { securityRequirements = [], securitySchemes = {} } = card;
  const each = Object.keys(securitySchemes).map((name): SecurityRequirement => ({ schemes: { [name]: { list: [] } } }));
  const requirements = securityRequirements.length > 0 ? securityRequirements : each;
  return requirements.slice(0, maxRequirements).flatMap(({ schemes = {} }) => {
    const named = Object.entries(schemes).map(([name, { list = [] }]) => ({
      name,
      scopes: list,
      scheme: Object.hasOwn(securitySchemes, name) ? securitySchemes[name] : undefined,
    }));
    const known = named.filter((one): one is NamedScheme => one.scheme !== undefined);
    return known.length === named.length && known.length > 0 ? [known] : [];
  });
}
