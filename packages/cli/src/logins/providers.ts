import {
  apiKeyCredential,
  basicCredential,
  bearerToken,
  clientCredentials,
  savedTokens,
  type CredentialProvider,
  type OAuthOptions,
  type TokenStore,
} from "@parley/a2a/credentials";
import type { SecurityScheme } from "@parley/a2a/model";
import type { Login, Logins, Secrets } from "./logins.ts";
import { LoginTokens } from "./tokens.ts";

/** A stored login as credentials of a client. Its secret is read when it is needed first. */
export async function storedProvider(logins: Logins, login: Login): Promise<CredentialProvider> {
  const store = new LoginTokens(logins, login);
  return login.kind === "oauth2" ? storedTokens(login, store) : simpleProvider(login, () => store.secrets());
}

/** A login without OAuth as credentials of a client. */
export function simpleProvider(
  { scheme, kind, settings }: Omit<Login, "secretsIn">,
  secrets: () => Promise<Secrets>,
): CredentialProvider {
  const secret = async (): Promise<string> => (await secrets())["secret"] ?? "";
  if (kind === "apiKey") return apiKeyCredential(secret, { scheme });
  return kind === "basic"
    ? basicCredential(settings["username"] ?? "", secret, { scheme })
    : bearerToken(secret, { scheme });
}

/** The options of OAuth that a login keeps. */
export async function oauthOptions(
  { scheme, settings }: Omit<Login, "secretsIn">,
  secrets: () => Promise<Secrets>,
  store: TokenStore,
): Promise<OAuthOptions> {
  // Loaded only on request: it loads the server too.
  const { nodeDialer } = await import("@parley/node");
  const { clientId = "", issuer, resource, scopes = "", hasSecret, dpop } = settings;
  const clientSecret = async (): Promise<string> => (await secrets())["clientSecret"] ?? "";
  return {
    clientId,
    scheme,
    store,
    dialer: nodeDialer(),
    scopes: scopes.split(" ").filter((scope) => scope !== ""),
    ...(issuer !== undefined && { issuer }),
    ...(resource !== undefined && { resource }),
    ...(hasSecret === "yes" && { clientSecret }),
    ...(dpop === "yes" && { dpop: true }),
  };
}

async function storedTokens(login: Login, store: LoginTokens): Promise<CredentialProvider> {
  const options = await oauthOptions(login, () => store.secrets(), store);
  const provider = login.settings["flow"] === "client" ? clientCredentials(options) : savedTokens(options);
  return {
    // A card that has changed must not send a secret to another server.
    supports: (request) => endpointsOf(request.scheme) === login.settings["endpoints"] && provider.supports(request),
    credentials: (request, target) => provider.credentials(request, target),
    refused: async (request, challenge) => (await provider.refused?.(request, challenge)) === true,
    answered: (request, headers) => provider.answered?.(request, headers),
  };
}

/** The addresses of an authorization server that a scheme names, as text. */
export function endpointsOf({ oauth2SecurityScheme, openIdConnectSecurityScheme }: SecurityScheme): string {
  const urls = Object.values(oauth2SecurityScheme?.flows ?? {}).flatMap((flow: object) =>
    Object.entries(flow).filter(([name]) => name.endsWith("Url")),
  );
  return JSON.stringify([
    oauth2SecurityScheme?.oauth2MetadataUrl ?? "",
    openIdConnectSecurityScheme?.openIdConnectUrl ?? "",
    ...urls.map((entry) => entry.join(" ")).toSorted(),
  ]);
}
