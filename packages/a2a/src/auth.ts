/**
 * Authentication and permissions: authenticators for the schemes of a card, their combinations, and policies.
 * @packageDocumentation
 */

export * from "./auth/index.ts";
export { introspection, type IntrospectionClient, type IntrospectionOptions } from "./auth/tokens/introspection.ts";
export { jwt } from "./auth/tokens/jwt.ts";
export { mutualTls, type MutualTlsOptions } from "./auth/tokens/mutual-tls.ts";
export { oauth2, openIdConnect, type OAuth2Flows, type OAuth2Options } from "./auth/tokens/oauth2.ts";
export type { DpopOptions, JwtOptions, TokenClaims, TokenOptions } from "./auth/tokens/options.ts";
