import {
  apiKeyCredential,
  basicCredential,
  bearerToken,
  clientCredentials,
  savedTokens,
  type CredentialProvider,
  type OAuthOptions,
  type StoredTokens,
  type TokenKey,
  type TokenStore,
} from "@parley/a2a/credentials";
import { defined } from "@parley/a2a/internal/base/defined";
import type { AgentCard, SecurityRequirement, SecurityScheme } from "@parley/a2a/model";
import type { Login, Logins, NewLogin, Secrets } from "./logins.ts";

export interface NamedScheme {
  readonly name: string;
  readonly scheme: SecurityScheme;
  /** The scopes that the card requires for this scheme. */
  readonly scopes: readonly string[];
}

/** The kind of login for a scheme; `undefined` if it is not supported. */
export function kindOf(scheme: SecurityScheme): Login["kind"] | undefined {
  if (scheme.apiKeySecurityScheme !== undefined) return "apiKey";
  if (scheme.oauth2SecurityScheme !== undefined || scheme.openIdConnectSecurityScheme !== undefined) return "oauth2";
  const http = scheme.httpAuthSecurityScheme?.scheme.toLowerCase();
  return http === "basic" || http === "bearer" ? http : undefined;
}

/** The way to get a token: in a browser on this machine, with a code in any browser, or with a client secret. */
export type Flow = "browser" | "device" | "client";

const namesOnCard = { authorizationCode: "browser", deviceCode: "device", clientCredentials: "client" } as const;

/** The OAuth flows of a scheme. An OpenID Connect scheme lists none, so any may work. */
export function flowsOf({ oauth2SecurityScheme }: SecurityScheme): readonly Flow[] {
  const { flows } = oauth2SecurityScheme ?? {};
  return Object.entries(namesOnCard).flatMap(([name, flow]) =>
    flows === undefined || Object.hasOwn(flows, name) ? [flow] : [],
  );
}

const maxRequirements = 50;

/**
 * The combinations of schemes that a caller can authenticate with, in the order of the card (A2A 1.0 §4.5). Empty: no credentials are
 * required. Many cards list schemes without requiring them; then each scheme is a combination.
 */
export function alternatives(card: AgentCard): readonly (readonly NamedScheme[])[] {
  const { securityRequirements = [], securitySchemes = {} } = card;
  const each = Object.keys(securitySchemes).map((name): SecurityRequirement => ({ schemes: { [name]: { list: [] } } }));
  const requirements = securityRequirements.length > 0 ? securityRequirements : each;
  return requirements.slice(0, maxRequirements).flatMap(({ schemes = {} }) => {
    const named = Object.entries(schemes).map(([name, { list = [] }]) => ({
      name,
      scopes: list,
      scheme: Object.hasOwn(securitySchemes, name) ? securitySchemes[name] : undefined,
    }));
    const known = named.filter((one): one is NamedScheme => one.scheme !== undefined);
    return known.length === named.length && known.length > 0 ? [known] : [];
  });
}

/** A login before it is stored. Its details can depend on the authorization server. */
export interface EnteredLogin {
  readonly provider: CredentialProvider;
  login(): NewLogin;
  secrets(): Secrets;
}

/** A stored login as credentials of a client. Its secret is read at first use. */
export async function storedProvider(logins: Logins, login: Login): Promise<CredentialProvider> {
  const store = new LoginTokens(logins, login);
  return login.kind === "oauth2" ? storedTokens(login, store) : simpleProvider(login, () => store.secrets());
}

/** A login without OAuth, as credentials of a client. */
export function simpleProvider(
  { scheme, kind, settings }: NewLogin,
  secrets: () => Promise<Secrets>,
): CredentialProvider {
  const secret = async (): Promise<string> => (await secrets())["secret"] ?? "";
  if (kind === "apiKey") return apiKeyCredential(secret, { scheme });
  return kind === "basic"
    ? basicCredential(settings["username"] ?? "", secret, { scheme })
    : bearerToken(secret, { scheme });
}

export async function oauthOptions(
  { scheme, settings }: NewLogin,
  secrets: () => Promise<Secrets>,
  store: TokenStore,
): Promise<OAuthOptions> {
  // Loaded only when needed, because it also loads the server.
  const { nodeDialer } = await import("@parley/node");
  const { clientId = "", issuer, resource, scopes = "", hasSecret, dpop } = settings;
  const clientSecret = async (): Promise<string> => (await secrets())["clientSecret"] ?? "";
  return {
    clientId,
    scheme,
    store,
    dialer: nodeDialer(),
    scopes: scopes.split(" ").filter((scope) => scope !== ""),
    ...defined({ issuer, resource, clientSecret: hasSecret === "yes" ? clientSecret : undefined }),
    ...(dpop === "yes" && { dpop: true }),
  };
}

async function storedTokens(login: Login, store: LoginTokens): Promise<CredentialProvider> {
  const options = await oauthOptions(login, () => store.secrets(), store);
  const provider = login.settings["flow"] === "client" ? clientCredentials(options) : savedTokens(options);
  return {
    // If the card changes, the secret must not go to another server.
    supports: (request) => endpointsOf(request.scheme) === login.settings["endpoints"] && provider.supports(request),
    credentials: (request, target) => provider.credentials(request, target),
    refused: async (request, challenge) => (await provider.refused?.(request, challenge)) === true,
    answered: (request, headers) => provider.answered?.(request, headers),
  };
}

/** The URLs of the authorization server in a scheme, as text. */
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

/** Name of the secret that holds the tokens of a login: JSON, keyed by issuer, client and resource. */
const member = "tokens";

type Tokens = Readonly<Record<string, StoredTokens>>;

function nameOf({ issuer, clientId, resource, subject = "" }: TokenKey): string {
  return JSON.stringify([issuer, clientId, resource, subject]);
}

function tokensOf(secrets: Secrets): Tokens {
  return JSON.parse(secrets[member] ?? "{}") as Tokens;
}

function withTokens(secrets: Secrets, key: TokenKey, tokens: StoredTokens | undefined): Secrets {
  const { [nameOf(key)]: _, ...others } = tokensOf(secrets);
  return { ...secrets, [member]: JSON.stringify(tokens === undefined ? others : { ...others, [nameOf(key)]: tokens }) };
}

/** The tokens of a new login, until the agent has accepted them. */
export class NewTokens implements TokenStore {
  /** The secrets of the login, including its tokens. */
  secrets: Secrets;
  key: TokenKey | undefined;

  constructor(secrets: Secrets) {
    this.secrets = secrets;
  }

  get(key: TokenKey): StoredTokens | undefined {
    return tokensOf(this.secrets)[nameOf(key)];
  }

  set(key: TokenKey, tokens: StoredTokens | undefined): void {
    this.secrets = withTokens(this.secrets, key, tokens);
    this.key = key;
  }
}

class LoginTokens implements TokenStore {
  readonly #logins: Logins;
  readonly #login: Login;
  #known: Promise<Secrets> | undefined;

  constructor(logins: Logins, login: Login) {
    this.#logins = logins;
    this.#login = login;
  }

  /** The secrets of the login, including its tokens. */
  secrets(): Promise<Secrets> {
    return (this.#known ??= this.#logins.secrets(this.#login));
  }

  async get(key: TokenKey): Promise<StoredTokens | undefined> {
    return tokensOf(await this.secrets())[nameOf(key)];
  }

  async set(key: TokenKey, tokens: StoredTokens | undefined): Promise<void> {
    const changed = withTokens(await this.#logins.secrets(this.#login), key, tokens);
    await this.#logins.update(this.#login, changed);
    this.#known = Promise.resolve(changed);
  }

  exclusively<T>(_key: TokenKey, run: () => Promise<T>): Promise<T> {
    return this.#logins.exclusively(this.#login, () => {
      // Another process may have renewed the tokens meanwhile.
      this.#known = undefined;
      return run();
    });
  }
}
