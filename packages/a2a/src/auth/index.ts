export type { Access, Authenticator, Authorizer, AuthorizerRequest } from "./port.ts";
export { authorized } from "./authorized.ts";
export { bearer, type BearerOptions, type VerifyToken } from "./bearer.ts";
