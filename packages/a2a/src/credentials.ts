/** The credentials of a client, chosen by the security schemes of a card. */

export type { CredentialProvider, CredentialTarget, RequestCredentials, SchemeRequest } from "./credentials/index.ts";
