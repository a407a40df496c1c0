/** Who calls, and what they may do: authenticators for the schemes of a card, how they combine, and policies. */

export {
  allOf,
  anyone,
  anyOf,
  bearer,
  byOrganization,
  challenge,
  defineScheme,
  type Access,
  type AuthenticationPlace,
  type Authenticator,
  type Authorizer,
  type AuthorizerRequest,
  type BearerOptions,
  type ChallengeParams,
  type ChallengeProblem,
  type ProtectedResource,
  type SchemeDefinition,
  type SkillOf,
  type VerifyToken,
} from "./auth/index.ts";
export { jwt, type DpopOptions, type JwtOptions, type TokenClaims, type TokenOptions } from "./auth/tokens/index.ts";
