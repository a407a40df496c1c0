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
export { apiKey, type ApiKeyOptions, type VerifyKey } from "./api-key.ts";
export { basic, type BasicOptions, type BasicUser, type VerifyPassword } from "./basic.ts";
export { byOrganization } from "./by-organization.ts";
export { bearer, type BearerOptions, type VerifyToken } from "./bearer.ts";
export { challenge, problemParams, type ChallengeParams } from "./challenge.ts";
export { allOf, anyOf, anyone } from "./combine.ts";
export { isFor } from "./guarded.ts";
export { hostUser, type HostCookie, type HostScheme, type HostUserOptions } from "./host-user.ts";
export { hashPassword, type PasswordHashOptions } from "./password.ts";
export { defineScheme, type SchemeDefinition } from "./scheme.ts";
export { hashKey } from "./secrets.ts";
