export type {
  Access,
  AuthenticationPlace,
  Authenticator,
  Authorizer,
  AuthorizerRequest,
  ProtectedResource,
} from "./port.ts";
export { authorized } from "./authorized.ts";
export { bearer, type BearerOptions, type VerifyToken } from "./bearer.ts";
