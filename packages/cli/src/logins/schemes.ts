import type { Login } from "./logins.ts";
import type { AgentCard, SecurityRequirement, SecurityScheme } from "@parley/a2a/model";

/** A scheme that a card names. */
export interface NamedScheme {
  readonly name: string;
  readonly scheme: SecurityScheme;
  /** The scopes that its requirement names. */
  readonly scopes: readonly string[];
}

/** How to log in with a scheme; `undefined` where this program cannot. */
export function kindOf(scheme: SecurityScheme): Login["kind"] | undefined {
  if (scheme.apiKeySecurityScheme !== undefined) return "apiKey";
  if (scheme.oauth2SecurityScheme !== undefined || scheme.openIdConnectSecurityScheme !== undefined) return "oauth2";
  const http = scheme.httpAuthSecurityScheme?.scheme.toLowerCase();
  return http === "basic" || http === "bearer" ? http : undefined;
}

/** How a token is got: in a browser here, with a code in any browser, with the secret of a client. */
export type Flow = "browser" | "device" | "client";

const namesOnCard = { authorizationCode: "browser", deviceCode: "device", clientCredentials: "client" } as const;

/** The flows of OAuth that a scheme has. OpenID Connect does not say: any of them. */
export function flowsOf({ oauth2SecurityScheme }: SecurityScheme): readonly Flow[] {
  const { flows } = oauth2SecurityScheme ?? {};
  return Object.entries(namesOnCard).flatMap(([name, flow]) =>
    flows === undefined || Object.hasOwn(flows, name) ? [flow] : [],
  );
}

/** Most requirements of a card that are looked at. */
const maxOfCard = 50;

/**
 * What a caller of this agent may authenticate with, the first choice of the card first (A2A 1.0 §4.5). Empty: no credentials are needed. Many
 * cards list schemes and forget to require them: then each alone will do.
 */
export function alternatives(card: AgentCard): readonly (readonly NamedScheme[])[] {
  const { securityRequirements = [], securitySchemes = {} } = card;
  const each = Object.keys(securitySchemes).map((name): SecurityRequirement => ({ schemes: { [name]: { list: [] } } }));
  const requirements = securityRequirements.length > 0 ? securityRequirements : each;
  return requirements.slice(0, maxOfCard).flatMap(({ schemes = {} }) => {
    const named = Object.entries(schemes).map(([name, { list = [] }]) => ({
      name,
      scopes: list,
      scheme: Object.hasOwn(securitySchemes, name) ? securitySchemes[name] : undefined,
    }));
    const known = named.filter((one): one is NamedScheme => one.scheme !== undefined);
    return known.length === named.length && known.length > 0 ? [known] : [];
  });
}
