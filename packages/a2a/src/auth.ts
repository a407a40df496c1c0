/** Who calls, and what they may do: authenticators for the schemes of a card, how they combine, and policies. */

export {
  bearer,
  type Access,
  type AuthenticationPlace,
  type Authenticator,
  type Authorizer,
  type AuthorizerRequest,
  type BearerOptions,
  type ProtectedResource,
  type VerifyToken,
} from "./auth/index.ts";
