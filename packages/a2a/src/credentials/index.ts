/**
 * The credentials of a client, chosen by the security schemes of a card.
 * @packageDocumentation
 */

export type {
  CredentialProvider,
  CredentialTarget,
  RequestCredentials,
  SchemeRequest,
  OAuthOptions,
  Secret,
} from "./port.ts";
export { apiKeyCredential, basicCredential, bearerToken, certificateCredential, type SimpleOptions } from "./simple.ts";
export {
  clientCredentials,
  savedTokens,
  tokenExchange,
  type ExchangedToken,
  type TokenExchangeOptions,
} from "./grants.ts";
export {
  authorizationCode,
  deviceCode,
  type AuthorizationCodeOptions,
  type DeviceCodeOptions,
  type DevicePrompt,
  type LoginRedirect,
  type PendingLogin,
} from "./logins.ts";
export type { LoggedInUser } from "./server-calls.ts";
export { memoryTokenStore, type StoredTokens, type TokenKey, type TokenStore } from "./port.ts";
export { signIn, type SignInOptions } from "./session.ts";
