export type { CredentialProvider, CredentialTarget, RequestCredentials, SchemeRequest } from "./port.ts";
export {
  apiKeyCredential,
  basicCredential,
  bearerToken,
  certificateCredential,
  type Secret,
  type SimpleOptions,
} from "./simple.ts";
export type { OAuthOptions } from "./options.ts";
export { clientCredentials, savedTokens } from "./grants.ts";
export {
  authorizationCode,
  deviceCode,
  type AuthorizationCodeOptions,
  type DeviceCodeOptions,
  type DevicePrompt,
  type LoginRedirect,
  type PendingLogin,
} from "./logins.ts";
export type { LoggedInUser } from "./user.ts";
export { tokenExchange, type ExchangedToken, type TokenExchangeOptions } from "./token-exchange.ts";
export { memoryTokenStore, type StoredTokens, type TokenKey, type TokenStore } from "./token-store.ts";
export { signIn, type SignInOptions } from "./sign-in.ts";
