export { introspection, type IntrospectionClient, type IntrospectionOptions } from "./introspection.ts";
export { jwt } from "./jwt.ts";
export { mutualTls, type MutualTlsOptions } from "./mutual-tls.ts";
export { oauth2, openIdConnect, type OAuth2Flows, type OAuth2Options } from "./oauth2.ts";
export type { DpopOptions, JwtOptions, TokenClaims, TokenOptions } from "./options.ts";
