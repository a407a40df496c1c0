import { randomBytes, type JsonWebKey } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import Provider, {
  type ClientMetadata,
  type Configuration,
  type ResourceServer,
  type TokenEndpointGrantContext,
} from "oidc-provider";
import { exchangeGrant, keyFor, providerClients, type ProviderAlgorithm } from "./provider-clients.ts";
import { providerStore } from "./provider-store.ts";

/**
 * A real OpenID provider for tests: `oidc-provider` on its own port. Its users log in and consent without a page: a test only has to follow
 * the provider's redirects, as `browse()` does.
 */

/** Options that change a provider from the default one. */
export interface ProviderOptions {
  /** The scopes that tokens for agents may have. Default `["chat", "admin"]`. */
  readonly scopes?: readonly string[];
  /** The format of access tokens. Default `jwt` (RFC 9068). */
  readonly accessTokens?: "jwt" | "opaque";
  /** The lifetime of access tokens in seconds. Default 600. */
  readonly lifetime?: number;
  /** The signature algorithm. Default `ES256`. */
  readonly algorithm?: ProviderAlgorithm;
  /** Whether DPoP proofs must have a nonce from the provider. Default false. */
  readonly dpopNonce?: boolean;
  /** Serves TLS, and requests client certificates. Default: plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Whether clients must push the parameters of every login beforehand (PAR, RFC 9126). Default false. */
  readonly pushedRequests?: boolean;
  /** Additional clients. */
  readonly clients?: readonly ClientMetadata[];
  /** Claims for the scopes `profile` and `email`, which the provider then supports in ID tokens. Default: only the user's id. */
  readonly claims?: Readonly<Record<string, string>>;
  /** The issuer's path, such as `/realm`. Default: none. */
  readonly path?: string;
}

/** A running provider. */
export interface TestProvider {
  /** Its issuer, without a trailing slash. */
  readonly issuer: string;
  /** The number of requests to each path, such as `/jwks`, relative to the issuer's path. */
  readonly requests: ReadonlyMap<string, number>;
  /** Its signing keys with their private parts, newest first. */
  readonly keys: readonly JsonWebKey[];
  /** Signs with a new key from now on. `keep`: keeps the earlier keys in the key set. Default true. */
  rotate(keep?: boolean): void;
  /** Answers every request with this status from now on, like a broken provider. `undefined`: works again. */
  break(status: number | undefined): void;
  /** Stops the provider. */
  close(): Promise<void>;
}

/**
 * Starts a provider. The caller closes it.
 *
 * @example
 * ```ts
 * const provider = await startProvider();
 * const token = await clientToken(provider, { resource: server.url, scope: "chat" });
 * ```
 */
export async function startProvider(options: ProviderOptions = {}): Promise<TestProvider> {
  const { algorithm = "ES256", tls, path = "" } = options;
  let answer: (request: IncomingMessage, response: ServerResponse) => void = () => undefined;
  let broken: number | undefined;
  const requests = new Map<string, number>();
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const asked = new URL(request.url ?? "/", "http://provider").pathname;
    const below = asked.startsWith(path) ? asked.slice(path.length) : asked;
    requests.set(below, (requests.get(below) ?? 0) + 1);
    if (broken === undefined) answer(request, response);
    else response.writeHead(broken).end();
  };
  const server: Server =
    tls === undefined
      ? createServer(listener)
      : createTlsServer({ ...tls, requestCert: true, rejectUnauthorized: false }, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const issuer = `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}${path}`;

  let count = 1;
  let keys: readonly JsonWebKey[] = [keyFor(algorithm, "key-1")];
  const adapter = providerStore();
  const begin = (): void => {
    answer = answersOf(new Provider(issuer, { ...configurationOf(options, keys), adapter }), options);
  };
  begin();
  return {
    issuer,
    requests,
    get keys() {
      return keys;
    },
    rotate(keep = true) {
      count += 1;
      keys = [keyFor(algorithm, `key-${count}`), ...(keep ? keys : [])];
      begin();
    },
    break(status) {
      broken = status;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function configurationOf(options: ProviderOptions, keys: readonly JsonWebKey[]): Configuration {
  const { scopes = usualScopes, lifetime = 600, algorithm = "ES256" } = options;
  return {
    clients: [...providerClients(), ...(options.clients ?? [])],
    jwks: { keys: [...keys] as never },
    cookies: { keys: [randomBytes(16).toString("hex")] },
    scopes: ["openid", "offline_access", ...scopes],
    clientDefaults: { id_token_signed_response_alg: algorithm },
    enabledJWA: { dPoPSigningAlgValues: ["ES256", "EdDSA", "RS256"] },
    ttl: {
      AccessToken: lifetime,
      AuthorizationCode: 600,
      ClientCredentials: lifetime,
      DeviceCode: 600,
      Grant: 600,
      IdToken: 600,
      Interaction: 600,
      RefreshToken: 600,
      Session: 600,
    },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, organization: "acme", ...options.claims }),
    }),
    ...(options.claims !== undefined && {
      claims: { openid: ["sub"], profile: ["name"], email: ["email"] },
      conformIdTokenClaims: false,
    }),
    interactions: { url: (_context, { uid }) => `${options.path ?? ""}/interaction/${uid}` },
    issueRefreshToken: (_context, client) => Promise.resolve(client.grantTypeAllowed("refresh_token")),
    extraTokenClaims: (_context, token) => ({
      organization: "acme",
      // The actor for the subject (RFC 8693 §4.1).
      ...("gty" in token && token.gty === "token_exchange" && { act: { sub: token.clientId } }),
    }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      pushedAuthorizationRequests: {
        enabled: true,
        requirePushedAuthorizationRequests: options.pushedRequests === true,
      },
      revocation: { enabled: true, allowedPolicy: () => true },
      deviceFlow: {
        enabled: true,
        // A program finds and sends these pages, so they need no more than the form.
        userCodeInputSource: (context, form) => void (context.body = form),
        userCodeConfirmSource: (context, form) => void (context.body = form),
        successSource: (context) => void (context.body = "You are signed in."),
      },
      dPoP: {
        enabled: true,
        nonceSecret: randomBytes(32),
        requireNonce: () => options.dpopNonce === true,
      },
      mTLS: {
        enabled: true,
        certificateBoundAccessTokens: true,
        getCertificate: ({ req }) => pemOf(req.socket),
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: (_context, _client, oneOf) => oneOf?.[0] ?? [],
        useGrantedResource: () => true,
        getResourceServerInfo: (_context, indicator) => resourceOf(options, indicator),
      },
    },
  };
}

const usualScopes = ["chat", "admin"];

/** The provider's entry for an agent. Every URL counts as an agent. */
function resourceOf(options: ProviderOptions, audience: string): ResourceServer {
  const { scopes = usualScopes, accessTokens = "jwt", lifetime = 600, algorithm = "ES256" } = options;
  return {
    audience,
    scope: scopes.join(" "),
    accessTokenFormat: accessTokens,
    accessTokenTTL: lifetime,
    ...(accessTokens === "jwt" && { jwt: { sign: { alg: algorithm } } }),
  };
}

function pemOf(socket: Socket): string | undefined {
  if (!("getPeerX509Certificate" in socket)) return undefined;
  return (socket as TLSSocket).getPeerX509Certificate()?.toString();
}

/** The request handler of a provider, with its login page, which logs in the user of `login_hint` (default `ada`) with full consent. */
function answersOf(
  provider: Provider,
  options: ProviderOptions,
): (request: IncomingMessage, response: ServerResponse) => void {
  const { path = "" } = options;
  const parameters = ["subject_token", "subject_token_type", "actor_token", "actor_token_type", "resource", "scope"];
  provider.registerGrantType<ExchangeParameters>(
    exchangeGrant,
    (context) => exchange(provider, options, context),
    parameters,
  );
  const callback = provider.callback();
  return (request, response) => {
    const strip = request.url?.startsWith(path) === true ? request.url.slice(path.length) : (request.url ?? "/");
    if (strip.startsWith("/interaction/")) {
      logIn(provider, request, response).catch(() => response.writeHead(500).end());
      return;
    }
    // Like a framework that has removed the path of a mount.
    if (path !== "") Object.assign(request, { originalUrl: request.url, url: strip === "" ? "/" : strip });
    void callback(request, response);
  };
}

async function logIn(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  const accountId = session?.accountId ?? (typeof params["login_hint"] === "string" ? params["login_hint"] : "ada");
  if (accountId === "nobody") {
    const refusal = { error: "access_denied", error_description: "The user has refused" };
    return provider.interactionFinished(request, response, refusal);
  }
  if (prompt.name === "login") return provider.interactionFinished(request, response, { login: { accountId } });
  const grant = new provider.Grant({ accountId, clientId: params["client_id"] as string });
  const { missingOIDCScope, missingResourceScopes } = prompt.details as {
    readonly missingOIDCScope?: readonly string[];
    readonly missingResourceScopes?: Readonly<Record<string, readonly string[]>>;
  };
  if (missingOIDCScope !== undefined) grant.addOIDCScope(missingOIDCScope.join(" "));
  for (const [indicator, wanted] of Object.entries(missingResourceScopes ?? {})) {
    grant.addResourceScope(indicator, wanted.join(" "));
  }
  const consent = { grantId: await grant.save() };
  return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

/** Token exchange (RFC 8693): a token for another resource, with the subject of the given token and the actor. */
async function exchange(
  provider: Provider,
  options: ProviderOptions,
  context: TokenEndpointGrantContext<ExchangeParameters>,
): Promise<void> {
  const { client, params } = context.oidc;
  const accountId = subjectOf(params.subject_token ?? "");
  if (accountId === undefined || params.resource === undefined) {
    context.status = 400;
    context.body = { error: "invalid_request" };
    return;
  }
  const scope = params.scope ?? "";
  const issued = new provider.AccessToken({ accountId, client, gty: "token_exchange", scope, grantId: "exchanged" });
  const resourceServer = new provider.ResourceServer(params.resource, resourceOf(options, params.resource));
  Object.assign(issued, { resourceServer });
  context.body = {
    access_token: await issued.save(),
    issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
    token_type: "Bearer",
    expires_in: issued.expiration,
    scope: issued.scope,
  };
}

interface ExchangeParameters {
  readonly subject_token?: string;
  readonly resource?: string;
  readonly scope?: string;
}

/** The subject of a JWT. The test provider does not verify the given tokens. */
function subjectOf(token: string): string | undefined {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
    return (payload as { readonly sub?: string }).sub;
  } catch {
    return undefined;
  }
}
