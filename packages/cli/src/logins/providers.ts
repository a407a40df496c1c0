import { apiKeyCredential, basicCredential, bearerToken, type CredentialProvider } from "@parley/a2a/credentials";
import type { Login, Logins, Secrets } from "./logins.ts";

/** A stored login as credentials of a client. Its secret is read when it is needed first. */
export function storedProvider(logins: Logins, login: Login): CredentialProvider {
  let read: Promise<Secrets> | undefined;
  return providerOf(login, () => (read ??= logins.secrets(login)));
}

/** A login as credentials of a client. */
export function providerOf(
  { scheme, kind, settings }: Omit<Login, "secretsIn">,
  secrets: () => Promise<Secrets>,
): CredentialProvider {
  const secret = async (): Promise<string> => (await secrets())["secret"] ?? "";
  switch (kind) {
    case "apiKey":
      return apiKeyCredential(secret, { scheme });
    case "basic":
      return basicCredential(settings["username"] ?? "", secret, { scheme });
    case "bearer":
    case "oauth2":
      return bearerToken(secret, { scheme });
  }
}
