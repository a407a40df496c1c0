import { toBase64Url, sha256 } from "../base/bytes.ts";
import type { ClientAuth, TokenEndpointResponse } from "oauth4webapi";
import { systemClock, type Clock } from "../base/index.ts";
import { line } from "../base/display.ts";
import { A2AError, hasCode } from "../model/index.ts";
import { isObject, itemsOf } from "../model/schema.ts";
import type { GuardedFetch } from "../net/index.ts";
import type { FoundServer, ServerMetadata } from "./authorization-server.ts";
import type { OAuthOptions, CredentialTarget, Secret } from "./port.ts";

/** The library for OAuth. It is loaded when a token is needed. */
export type OAuth = typeof import("oauth4webapi");

/** One request for tokens. */
export interface GrantCall {
  readonly oauth: OAuth;
  readonly server: FoundServer;
  readonly options: OAuthOptions;
  /** The scopes to request. */
  readonly scopes: readonly string[];
  /** The resource to request. Absent: none. */
  readonly resource?: string | undefined;
  /** The key that tokens are bound to. Absent: the tokens are not bound to a key. */
  readonly key?: ProofKey | undefined;
  /** Aborted when no call waits for the tokens anymore. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** The server, for the library. */
export function serverOf({ server }: GrantCall): Parameters<ClientAuth>[0] {
  return server.metadata as Parameters<ClientAuth>[0];
}

/** The client, for the library. */
export function clientOf({ oauth, options }: GrantCall): Parameters<ClientAuth>[1] {
  const { clientId, clientCertificate = false, clock = systemClock } = options;
  return {
    client_id: clientId,
    ...(clientCertificate && { use_mtls_endpoint_aliases: true }),
    // The library reads the system time. This offset converts it to the time of our clock.
    [oauth.clockSkew]: Math.round((clock.now() - Date.now()) / 1000),
  };
}

/** The client authentication (RFC 6749 §2.3). */
export async function authenticationOf({ oauth, options, server }: GrantCall): Promise<ClientAuth> {
  const { clientSecret, secretIn = "header", clientKey, clientCertificate = false } = options;
  if (clientKey !== undefined) {
    const { importJWK } = await import("jose");
    const { alg = "ES256", kid } = clientKey;
    const key = await importJWK(clientKey, typeof alg === "string" ? alg : undefined);
    if (!("type" in key)) throw new A2AError("InvalidParams", "clientKey is not a private key");
    // The audience is the issuer (RFC 7523 §3), or the endpoint if a card only names the endpoint.
    const audience = server.identified ? server.metadata.issuer : server.metadata.token_endpoint;
    return oauth.PrivateKeyJwt(typeof kid === "string" ? { key, kid } : key, {
      [oauth.modifyAssertion]: (_header, payload) => void (payload["aud"] = audience as string),
    });
  }
  if (clientSecret !== undefined) {
    const secret = await read(clientSecret);
    return secretIn === "header" ? oauth.ClientSecretBasic(secret) : oauth.ClientSecretPost(secret);
  }
  return clientCertificate ? oauth.TlsClientAuth() : oauth.None();
}

async function read(secret: Secret): Promise<string> {
  return typeof secret === "function" ? secret() : secret;
}

/** The server, the client and its authentication: the first arguments of each request of the library. */
export async function partiesOf(
  call: GrantCall,
): Promise<[ReturnType<typeof serverOf>, ReturnType<typeof clientOf>, ClientAuth]> {
  return [serverOf(call), clientOf(call), await authenticationOf(call)];
}

/** Request options for the library. */
export function requestOptions({ oauth, server, signal }: GrantCall): {
  readonly signal: AbortSignal;
  readonly [option: symbol]: unknown;
} {
  return { signal, [oauth.customFetch]: throughGuard(server.fetch), [oauth.allowInsecureRequests]: true };
}

interface LibraryRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** Options for the library. The guard enforces TLS instead of the library, whose bodies are forms. */
function throughGuard(fetch: GuardedFetch) {
  return (url: string, { method, headers, body, signal }: LibraryRequest): Promise<Response> =>
    fetch(url, {
      method,
      headers,
      ...(body instanceof URLSearchParams && { body: body.toString() }),
      ...(signal !== undefined && { signal }),
    });
}

/**
 * Sends a request for tokens and reads the answer. If the server requires a nonce in the proof, retries with the nonce (RFC 9449 §8).
 */
export async function requestTokens(
  call: GrantCall,
  send: (options: ReturnType<typeof requestOptions>) => Promise<Response>,
  read: (response: Response) => Promise<TokenEndpointResponse>,
): Promise<TokenEndpointResponse> {
  const { oauth, key } = call;
  const proofs = key && { DPoP: oauth.DPoP(clientOf(call), key.pair) };
  const attempt = async (): Promise<TokenEndpointResponse> => {
    const { response, idToken } = await withoutIdToken(await send({ ...requestOptions(call), ...proofs }));
    const tokens = await read(response);
    return typeof idToken === "string" ? { ...tokens, id_token: idToken } : tokens;
  };
  try {
    return await attempt();
  } catch (thrown) {
    if (!oauth.isDPoPNonceError(thrown)) throw thrown;
    return attempt();
  }
}

/** Separates the ID token, which would make the library reject the answer. `userOf()` checks it. */
async function withoutIdToken(
  response: Response,
): Promise<{ readonly response: Response; readonly idToken?: unknown }> {
  if (response.status !== 200) return { response };
  const value: unknown = await response.json().catch(() => undefined);
  const { id_token: idToken, ...rest } = isObject(value) ? value : {};
  const headers = { "content-type": response.headers.get("content-type") ?? "" };
  return { response: new Response(JSON.stringify(rest), { status: 200, headers }), idToken };
}

/** The code of an error of an authorization server, such as `invalid_grant` (RFC 6749 §5.2). */
export function errorCodeOf(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const error = "error" in thrown ? thrown.error : challengeErrorOf(thrown.cause);
  return typeof error === "string" ? error : undefined;
}

/** The code in a challenge of the server, as the library reads it. */
function challengeErrorOf(cause: unknown): unknown {
  const [first] = itemsOf(cause);
  return isObject(first) && isObject(first["parameters"]) ? first["parameters"]["error"] : undefined;
}

/**
 * The failure as `Unauthenticated`. Drops the library's errors, because they contain whole answers with tokens.
 */
export function grantError(thrown: unknown, server: FoundServer | undefined): A2AError {
  if (hasCode(thrown, "Aborted", "Timeout", "InvalidParams", "Unauthenticated")) return thrown;
  const where = server === undefined ? "The authorization server" : new URL(server.metadata.issuer).origin;
  const code = errorCodeOf(thrown);
  const described = thrown instanceof Error && "error_description" in thrown ? thrown.error_description : undefined;
  const text = typeof described === "string" ? `: ${line(described, 300)}` : "";
  if (code !== undefined) return new A2AError("Unauthenticated", `${where} issued no token: ${line(code, 100)}${text}`);
  const said = thrown instanceof Error ? line(thrown.message, 300) : "";
  const network = hasCode(thrown, "ConnectionFailed") ? networkCodeOf(thrown) : undefined;
  const reason = network === undefined ? "" : ` (${network})`;
  return new A2AError("Unauthenticated", `${where} issued no token: ${said}${reason}`);
}

/** The code of a network error, such as `ECONNREFUSED`. It contains no data of the request. */
function networkCodeOf(error: Error): string | undefined {
  for (let at: unknown = error.cause, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if ("code" in at && typeof at.code === "string" && /^[A-Z][A-Z\d_]{2,63}$/.test(at.code)) return at.code;
  }
  return undefined;
}

/** A key of proofs (RFC 9449): the pair, and the private key as a JWK for a store. */
export interface ProofKey {
  readonly pair: { readonly privateKey: CryptoKey; readonly publicKey: CryptoKey };
  readonly jwk: Readonly<Record<string, unknown>>;
}

type CryptoKey = Extract<Awaited<ReturnType<typeof import("jose").importJWK>>, { readonly type: unknown }>;

const algorithm = "ES256";

/** Makes a key, or reads one that was stored. */
export async function proofKey(stored?: Readonly<Record<string, unknown>>): Promise<ProofKey> {
  const { exportJWK, generateKeyPair, importJWK } = await import("jose");
  if (stored === undefined) {
    const pair = await generateKeyPair(algorithm, { extractable: true });
    return { pair, jwk: { ...(await exportJWK(pair.privateKey)), alg: algorithm } };
  }
  const { d: _d, ...open } = stored;
  const [privateKey, publicKey] = await Promise.all([
    importJWK(stored, algorithm, { extractable: true }),
    importJWK(open, algorithm, { extractable: true }),
  ]);
  if (!("type" in privateKey) || !("type" in publicKey))
    throw new A2AError("InvalidParams", "The stored key is not a valid key");
  return { pair: { privateKey, publicKey }, jwk: stored };
}

/** A proof for one request with a token (RFC 9449 §4.2, §7). `nonce`: the server's last one. */
export async function proofFor(
  key: ProofKey,
  token: string,
  target: CredentialTarget,
  nonce: string | undefined,
  clock: Clock = systemClock,
): Promise<string> {
  const { exportJWK, SignJWT } = await import("jose");
  const { origin, pathname } = new URL(target.url);
  const ath = toBase64Url(await sha256(token));
  return new SignJWT({ htm: target.method, htu: origin + pathname, ath, ...(nonce !== undefined && { nonce }) })
    .setProtectedHeader({ alg: algorithm, typ: "dpop+jwt", jwk: await exportJWK(key.pair.publicKey) })
    .setIssuedAt(Math.floor(clock.now() / 1000))
    .setJti(crypto.randomUUID())
    .sign(key.pair.privateKey);
}

/** A user who has logged in, according to the authorization server. Each text is one line, without control characters. */
export interface LoggedInUser {
  /** The id of the user at the issuer. */
  readonly subject: string;
  /** The issuer. */
  readonly issuer: string;
  /** The full name, if known. */
  readonly name?: string;
  /** The e-mail address, if known. */
  readonly email?: string;
}

/** The supported scopes that request the user's data (OpenID Connect Core §5.4). */
export function userScopes({ scopes_supported: known }: ServerMetadata): readonly string[] {
  if (!Array.isArray(known) || !known.includes("openid")) return [];
  return ["openid", "profile", "email"].filter((scope) => known.includes(scope));
}

const longestName = 200;

/**
 * The user of an ID token; `undefined` if the token is not for this client, or its issuer is unknown. The token endpoint sends it directly,
 * over TLS or from this machine, so its signature need not be checked (OpenID Connect Core §3.1.3.7, 6).
 */
export async function userOf(idToken: unknown, call: GrantCall): Promise<LoggedInUser | undefined> {
  if (typeof idToken !== "string" || !call.server.identified) return undefined;
  const { decodeJwt } = await import("jose");
  try {
    const { iss, sub, aud, azp, exp, name, email } = decodeJwt(idToken);
    const { clientId } = call.options;
    const isOurs = [aud].flat().includes(clientId) && (azp === undefined || azp === clientId);
    const isValid = isOurs && iss === call.server.metadata.issuer && (exp ?? 0) * 1000 > call.clock.now();
    if (!isValid || typeof sub !== "string") return undefined;
    return {
      subject: line(sub, longestName),
      issuer: iss,
      ...(typeof name === "string" && { name: line(name, longestName) }),
      ...(typeof email === "string" && { email: line(email, longestName) }),
    };
  } catch {
    return undefined;
  }
}
