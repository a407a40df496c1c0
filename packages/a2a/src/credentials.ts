/**
 * The credentials of a client, chosen by the security schemes of a card.
 * @packageDocumentation
 */

export {
  apiKeyCredential,
  authorizationCode,
  basicCredential,
  bearerToken,
  certificateCredential,
  clientCredentials,
  deviceCode,
  memoryTokenStore,
  savedTokens,
  signIn,
  tokenExchange,
  type AuthorizationCodeOptions,
  type CredentialProvider,
  type CredentialTarget,
  type DeviceCodeOptions,
  type DevicePrompt,
  type ExchangedToken,
  type LoggedInUser,
  type LoginRedirect,
  type OAuthOptions,
  type PendingLogin,
  type RequestCredentials,
  type SchemeRequest,
  type Secret,
  type SignInOptions,
  type SimpleOptions,
  type StoredTokens,
  type TokenExchangeOptions,
  type TokenKey,
  type TokenStore,
} from "./credentials/index.ts";
