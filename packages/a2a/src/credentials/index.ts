export type { CredentialProvider, CredentialTarget, RequestCredentials, SchemeRequest } from "./port.ts";
export {
  apiKeyCredential,
  basicCredential,
  bearerToken,
  certificateCredential,
  type Secret,
  type SimpleOptions,
} from "./simple.ts";
