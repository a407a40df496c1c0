export { jwt } from "./jwt.ts";
export type { DpopOptions } from "./dpop.ts";
export type { JwtOptions, TokenClaims, TokenOptions } from "./options.ts";
