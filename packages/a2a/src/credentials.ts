/** The credentials of a client, chosen by the security schemes of a card. */

export {
  apiKeyCredential,
  basicCredential,
  bearerToken,
  certificateCredential,
  type CredentialProvider,
  type CredentialTarget,
  type RequestCredentials,
  type SchemeRequest,
  type Secret,
  type SimpleOptions,
} from "./credentials/index.ts";
