import { isLoopback, systemClock } from "../base/index.ts";
import { isObject, itemsOf } from "../model/schema.ts";
import { A2AError, type OAuthFlows } from "../model/index.ts";
import { guardedFetch, type GuardedFetch } from "../net/index.ts";
import { challengesOf, parameterOf } from "./choose.ts";
import type { OAuthOptions, SchemeRequest } from "./port.ts";

/* Finds the authorization server of an agent: named by the user, by the card, or by the metadata of the agent. */

/** The metadata of an authorization server (RFC 8414 §2). Its URLs are checked before they are called. */
export interface ServerMetadata {
  readonly issuer: string;
  readonly authorization_endpoint?: string;
  readonly token_endpoint?: string;
  readonly device_authorization_endpoint?: string;
  readonly pushed_authorization_request_endpoint?: string;
  readonly require_pushed_authorization_requests?: boolean;
  readonly authorization_response_iss_parameter_supported?: boolean;
  readonly code_challenge_methods_supported?: string[];
  readonly [member: string]: unknown;
}

/** An authorization server, and how to call it. */
export interface FoundServer {
  readonly metadata: ServerMetadata;
  /** Whether its issuer is known. A card may name only its endpoints. */
  readonly identified: boolean;
  /** The endpoint for refresh tokens, if it is not the token endpoint. */
  readonly refreshUrl?: string | undefined;
  readonly fetch: GuardedFetch;
}

/** Maximum size of a document, and of an answer of a token endpoint, in bytes. */
const maxDocumentBytes = 1024 * 1024;
const maxRequestMs = 30_000;

/**
 * A `fetch` for an authorization server over TLS, or on this machine if `home` is on this machine, too. An address from the user (`named`)
 * may be private, an address from a card must not be.
 */
function serverFetch(home: string, named: boolean, { dialer, clock = systemClock }: OAuthOptions): GuardedFetch {
  const host = URL.canParse(home) ? new URL(home).hostname : "";
  const local = isLoopback(host);
  const policy = {
    allowPrivate: named,
    allowLoopback: local,
    ...(host !== "" && { allow: [host] }),
    maxBytes: maxDocumentBytes,
    timeout: maxRequestMs,
  };
  const fetch = guardedFetch(policy, dialer, clock);
  return async (url, init) => {
    checkTls(url, local);
    return fetch(url, init);
  };
}

/** Rejects a URL without TLS, unless it is on this machine. */
export function checkTls(url: string, local: boolean): void {
  const { protocol, hostname, origin } = new URL(url);
  if (protocol === "https:" || (protocol === "http:" && local && isLoopback(hostname))) return;
  throw new A2AError("InvalidParams", `Credentials are not sent to ${origin}, because it does not use TLS`);
}

/** The metadata of an issuer (RFC 8414 §3, OpenID Connect Discovery §4). */
async function discover(issuer: string, fetch: GuardedFetch): Promise<ServerMetadata> {
  if (!URL.canParse(issuer))
    throw new A2AError("InvalidParams", `issuer must be a valid URL; got ${JSON.stringify(issuer)}`);
  const { origin, pathname } = new URL(issuer);
  const path = pathname.endsWith("/") ? pathname.slice(0, -1) : pathname;
  const places = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/openid-configuration${path}`,
  ];
  for (const place of new Set(places)) {
    const metadata = await readMetadata(place, fetch);
    if (metadata === undefined) continue;
    // If the document were from another issuer, that issuer would receive the secrets for this one (RFC 8414 §3.3).
    if (sameUrl(metadata.issuer, issuer)) return metadata;
    throw new A2AError("InvalidResponse", `The metadata at ${place} is of another issuer`);
  }
  throw new A2AError("InvalidResponse", `${origin} has no metadata of an authorization server`);
}

/** The authorization server for a credential request; `undefined` if neither the user, the agent nor the card names one. */
export async function findServer(
  { scheme, resource }: SchemeRequest,
  options: OAuthOptions,
  advertised: string | undefined,
): Promise<FoundServer | undefined> {
  const { issuer } = options;
  if (issuer !== undefined) return identified(issuer, serverFetch(issuer, true, options));
  const fetch = serverFetch(resource, false, options);
  if (advertised !== undefined) return identified(advertised, fetch);
  const { openIdConnectSecurityScheme: openId, oauth2SecurityScheme: oauth } = scheme;
  const url = openId?.openIdConnectUrl ?? oauth?.oauth2MetadataUrl;
  if (url !== undefined && url !== "") {
    const metadata = await readMetadata(url, fetch);
    if (metadata === undefined)
      throw new A2AError("InvalidResponse", "The metadata that the card names cannot be read");
    // The issuer and its metadata have the same origin (RFC 8414 §3), so a card cannot pass one server off as another.
    if (new URL(metadata.issuer).origin !== new URL(url).origin)
      throw new A2AError("InvalidResponse", "The metadata that the card names is of another issuer");
    return { metadata, identified: true, fetch, refreshUrl: undefined };
  }
  return oauth && fromFlow(oauth.flows, fetch);
}

async function identified(issuer: string, fetch: GuardedFetch): Promise<FoundServer> {
  return { metadata: await discover(issuer, fetch), identified: true, fetch };
}

/**
 * The endpoints of a card's flow. Without an issuer, all endpoints must have the origin of the token endpoint. Otherwise a card could
 * make the client send codes and refresh tokens of one server, or its own secret, to another server (RFC 9700 §4.4).
 */
function fromFlow(flows: OAuthFlows, fetch: GuardedFetch): FoundServer | undefined {
  const flow = flows.authorizationCode ?? flows.clientCredentials ?? flows.deviceCode;
  if (flow === undefined || !URL.canParse(flow.tokenUrl) || !/^https?:$/.test(new URL(flow.tokenUrl).protocol))
    return undefined;
  const { origin } = new URL(flow.tokenUrl);
  const others = [flow.refreshUrl, flows.authorizationCode?.authorizationUrl, flows.deviceCode?.deviceAuthorizationUrl];
  if (others.some((url) => url && URL.canParse(url) && new URL(url).origin !== origin))
    throw new A2AError("InvalidParams", "The card names endpoints of several servers: name the issuer of its tokens");
  const metadata: ServerMetadata = {
    issuer: origin,
    token_endpoint: flow.tokenUrl,
    ...(flows.authorizationCode && { authorization_endpoint: flows.authorizationCode.authorizationUrl }),
    ...(flows.deviceCode && { device_authorization_endpoint: flows.deviceCode.deviceAuthorizationUrl }),
  };
  return { metadata, identified: false, refreshUrl: flow.refreshUrl, fetch };
}

/**
 * The first authorization server in the metadata of an agent (RFC 9728). `challenge`, from the agent's 401, names the URL of the metadata.
 * `undefined`: not found.
 */
export async function advertisedServer(
  challenge: string | undefined,
  { resource }: SchemeRequest,
  options: OAuthOptions,
): Promise<string | undefined> {
  const url = parameterOf(challengesOf(challenge), "resource_metadata");
  if (url === undefined || !URL.canParse(url)) return undefined;
  const metadata = await readJson(url, serverFetch(resource, false, options));
  const [issuer] = itemsOf(metadata?.["authorization_servers"]);
  // If the metadata were for another resource, the server would issue tokens for that resource (RFC 9728 §3.3).
  const told = metadata?.["resource"];
  const own = typeof told === "string" && URL.canParse(told) && isWithin(resource, told);
  return own && typeof issuer === "string" && URL.canParse(issuer) ? issuer : undefined;
}

/** Whether a URL equals `base`, or is below it. */
function isWithin(url: string, base: string): boolean {
  const { href } = new URL(base);
  const folder = href.endsWith("/") ? href : `${href}/`;
  return sameUrl(url, base) || new URL(url).href.startsWith(folder);
}

function sameUrl(one: string, other: string): boolean {
  return URL.canParse(one) && URL.canParse(other) && new URL(one).href === new URL(other).href;
}

async function readMetadata(url: string, fetch: GuardedFetch): Promise<ServerMetadata | undefined> {
  const value = await readJson(url, fetch);
  return isMetadata(value) ? value : undefined;
}

function isMetadata(value: Readonly<Record<string, unknown>> | undefined): value is ServerMetadata {
  const issuer = value?.["issuer"];
  return typeof issuer === "string" && URL.canParse(issuer);
}

async function readJson(url: string, fetch: GuardedFetch): Promise<Readonly<Record<string, unknown>> | undefined> {
  const response = await fetch(url, { headers: { accept: "application/json" } });
  if (response.status !== 200) {
    await response.body?.cancel();
    return undefined;
  }
  const value: unknown = await response.json().catch(() => undefined);
  return isObject(value) ? value : undefined;
}
