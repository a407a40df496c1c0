export type {
  Access,
  AuthenticationPlace,
  Authenticator,
  Authorizer,
  AuthorizerRequest,
  ChallengeProblem,
  ProtectedResource,
  SkillOf,
} from "./port.ts";
export {
  apiKey,
  type ApiKeyOptions,
  type VerifyKey,
  bearer,
  type BearerOptions,
  type VerifyToken,
  hashKey,
} from "./keys.ts";
export {
  basic,
  type BasicOptions,
  type BasicUser,
  type VerifyPassword,
  hashPassword,
  type PasswordHashOptions,
} from "./basic.ts";
export { byOrganization } from "./guarded.ts";
export { challenge, type ChallengeParams } from "./challenge.ts";
export { allOf, anyOf, anyone } from "./combine.ts";
export { hostUser, type HostCookie, type HostScheme, type HostUserOptions } from "./host-user.ts";
export { defineScheme, type SchemeDefinition } from "./scheme.ts";
