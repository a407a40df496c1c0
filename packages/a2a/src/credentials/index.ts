export type { CredentialProvider, CredentialTarget, RequestCredentials, SchemeRequest } from "./port.ts";
