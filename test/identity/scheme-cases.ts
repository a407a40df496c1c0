import { randomUUID, X509Certificate } from "node:crypto";
import {
  apiKey,
  basic,
  bearer,
  hashKey,
  hashPassword,
  introspection,
  jwt,
  oauth2,
  openIdConnect,
  mutualTls,
  type Authenticator,
} from "@parley/a2a/auth";
import { systemClock } from "@parley/server";
import type { Clock, Principal } from "@parley/a2a/protocol";
import type { ServeOptions } from "@parley/node";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { clientToken } from "./logins.ts";
import { providerSecret } from "./provider-clients.ts";
import type { TestProvider } from "./provider.ts";
import { generate } from "selfsigned";
import type { Binding, Sent } from "./wire-call.ts";

/** The schemes of the matrix: their configuration, and their callers' requests. Every scheme requires the scope `chat`. */

/** The token providers that a scheme may use. */
export interface Providers {
  /** Its access tokens are JWTs. */
  readonly jwts: TestProvider;
  /** Its access tokens are opaque. */
  readonly opaque: TestProvider;
}

/** The requests of a scheme's callers. `server` is the URL of the server. */
export interface Callers {
  wrong(server: string): Promise<Sent> | Sent;
  /** Credentials that were valid until the clock moved. */
  expired(server: string): Promise<Sent> | Sent;
  /** Credentials without the scope. */
  insufficient(server: string): Promise<Sent> | Sent;
  right(server: string): Promise<Sent> | Sent;
}

export interface SchemeCase {
  /** The scheme's name on the card. */
  readonly name: string;
  /** The first words of its challenge. */
  readonly challenge: string;
  /** The member of its entry on a 1.0 card, and the `type` of its entry on a 0.3 card. */
  readonly onCards: readonly [string, string];
  /** Whether its tokens have a known issuer, so that challenges name the resource metadata (RFC 9728). */
  readonly hasMetadata: boolean;
  /** The accepted caller. */
  readonly subject: string;
  /** Bindings that cannot carry its credentials. */
  readonly without?: readonly Binding[];
  /** Options of the server. */
  options?(): Promise<Partial<ServeOptions>>;
  authenticator(clock: Clock, providers: Providers): Promise<Authenticator> | Authenticator;
  callers(providers: Providers): Callers;
}

/** A running clock that tests can move. */
export function movedClock(): Clock & { move(ms: number): void } {
  let moved = 0;
  return {
    now: () => systemClock.now() + moved,
    elapsed: () => systemClock.elapsed() + moved,
    after: (ms, run) => systemClock.after(ms, run),
    move: (ms) => (moved = ms),
  };
}

const ada: Principal = { subject: "ada", scopes: ["chat"] };
const guest: Principal = { subject: "guest", scopes: ["read"] };
const scopes = ["chat"];

/** A secret that an operator accepts until it expires. */
function until<T>(clock: Clock, end: number, owner: T | undefined): T | undefined {
  return clock.now() < end ? owner : undefined;
}

/** Distinctive texts, so that tests can search logs for them. */
const secrets = {
  right: "secret-of-ada-0123456789",
  weak: "secret-of-a-guest-0123456789",
  wrong: "secret-of-nobody-0123456789",
  old: "secret-of-before-0123456789",
};

async function owners(clock: Clock): Promise<(secret: string) => Promise<Principal | undefined>> {
  const known = new Map([
    [await hashKey(secrets.right), ada],
    [await hashKey(secrets.weak), guest],
  ]);
  const old = await hashKey(secrets.old);
  const end = clock.now() + 60_000;
  return async (secret) => {
    const hash = await hashKey(secret);
    return hash === old ? until(clock, end, ada) : known.get(hash);
  };
}

const asSecret = (sent: (secret: string) => Sent): Callers => ({
  wrong: () => sent(secrets.wrong),
  expired: () => sent(secrets.old),
  insufficient: () => sent(secrets.weak),
  right: () => sent(secrets.right),
});

const bearerOf = (token: string): Sent => ({ headers: { authorization: `Bearer ${token}` } });

/** Tokens from a real provider, each requested once. A token for another resource is a wrong one. */
const asToken = (provider: (providers: Providers) => TestProvider) => {
  const known = new Map<string, Promise<string>>();
  return (providers: Providers): Callers => {
    const token = async (resource: string, scope: string): Promise<Sent> => {
      const name = `${resource} ${scope}`;
      const asked = known.get(name) ?? clientToken(provider(providers), { resource, scope });
      known.set(name, asked);
      return bearerOf(await asked);
    };
    return {
      wrong: () => token("https://other.example.com", "chat"),
      expired: (server) => token(server, "chat"),
      insufficient: (server) => token(server, "admin"),
      right: (server) => token(server, "chat"),
    };
  };
};

const client = { clientId: "service", clientSecret: providerSecret };
const header = {
  name: "apiKey",
  onCards: ["apiKeySecurityScheme", "apiKey"],
  hasMetadata: false,
  subject: "ada",
} as const;
const http = { onCards: ["httpAuthSecurityScheme", "http"], hasMetadata: false, subject: "ada" } as const;

interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A certificate that is valid for `minutes`. */
async function certificate(minutes: number): Promise<Certificate> {
  const notAfterDate = new Date(Date.now() + minutes * 60_000);
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
    algorithm: "sha256",
    keyType: "ec",
    notAfterDate,
  });
  return { cert, key };
}

/** The tests' certificates, each created once. */
function certificates(): (name: string) => Promise<Certificate> {
  const made = new Map<string, Promise<Certificate>>();
  return (name) => {
    const one = made.get(name) ?? certificate(name === "old" ? 30 : 600);
    made.set(name, one);
    return one;
  };
}

const certificateOf = certificates();

async function fingerprintOf(name: string): Promise<string> {
  return new X509Certificate((await certificateOf(name)).cert).fingerprint256;
}

export const schemeCases: Readonly<Record<string, SchemeCase>> = {
  "an API key in a header": {
    ...header,
    challenge: 'ApiKey in="header", name="x-api-key"',
    authenticator: async (clock) => apiKey(await owners(clock), { scopes }),
    callers: () => asSecret((secret) => ({ headers: { "x-api-key": secret } })),
  },
  "an API key in the query": {
    ...header,
    challenge: 'ApiKey in="query", name="api_key"',
    without: ["GRPC"],
    authenticator: async (clock) => apiKey(await owners(clock), { query: "api_key", scopes }),
    callers: () => asSecret((secret) => ({ query: { api_key: secret } })),
  },
  "an API key in a cookie": {
    ...header,
    challenge: 'ApiKey in="cookie", name="session"',
    authenticator: async (clock) => apiKey(await owners(clock), { cookie: "session", scopes }),
    callers: () => asSecret((secret) => ({ headers: { cookie: `theme=dark; session=${secret}` } })),
  },
  "HTTP Basic": {
    ...http,
    name: "basic",
    challenge: 'Basic realm="agents", charset="UTF-8"',
    async authenticator(clock) {
      const hash = (password: string) => hashPassword(password, { iterations: 10 });
      const end = clock.now() + 60_000;
      const users = {
        ada: { password: await hash(secrets.right), scopes },
        guest: { password: await hash(secrets.weak) },
      };
      // A list of users has no expiry, so a function handles the user who expires.
      const old = basic(
        (name, password) => until(clock, end, name === "old" && password === secrets.old ? ada : undefined),
        {
          name: "basic",
          scopes,
        },
      );
      const known = basic(users, { scopes });
      return {
        ...known,
        authenticate: async (request, place) => {
          try {
            return await old.authenticate(request, place);
          } catch {
            return known.authenticate(request, place);
          }
        },
      };
    },
    callers: () => ({
      wrong: () => asBasic("ada", secrets.wrong),
      expired: () => asBasic("old", secrets.old),
      insufficient: () => asBasic("guest", secrets.weak),
      right: () => asBasic("ada", secrets.right),
    }),
  },
  "a bearer token": {
    ...http,
    name: "bearer",
    challenge: "Bearer",
    authenticator: async (clock) => bearer(await owners(clock), { scopes }),
    callers: () => asSecret(bearerOf),
  },
  "a JWT (RFC 9068)": {
    ...http,
    name: "jwt",
    challenge: "Bearer",
    hasMetadata: true,
    subject: "service",
    authenticator: (clock, { jwts }) => jwt({ issuer: jwts.issuer, scopes, clock }),
    callers: asToken(({ jwts }) => jwts),
  },
  "a token that is introspected (RFC 7662)": {
    ...http,
    name: "introspection",
    challenge: "Bearer",
    hasMetadata: true,
    subject: "service",
    authenticator: (clock, { opaque }) => introspection({ issuer: opaque.issuer, ...client, scopes, clock }),
    callers: asToken(({ opaque }) => opaque),
  },
  "OAuth 2.0": {
    name: "oauth2",
    challenge: "Bearer",
    onCards: ["oauth2SecurityScheme", "oauth2"],
    hasMetadata: true,
    subject: "service",
    authenticator: (clock, { jwts: { issuer } }) =>
      oauth2({
        issuer,
        scopes,
        clock,
        flows: { clientCredentials: { tokenUrl: `${issuer}/token`, scopes: { chat: "" } } },
      }),
    callers: asToken(({ jwts }) => jwts),
  },
  "OpenID Connect": {
    name: "openIdConnect",
    challenge: "Bearer",
    onCards: ["openIdConnectSecurityScheme", "openIdConnect"],
    hasMetadata: true,
    subject: "service",
    authenticator: (clock, { jwts }) => openIdConnect({ issuer: jwts.issuer, scopes, clock }),
    callers: asToken(({ jwts }) => jwts),
  },
  "mutual TLS": {
    name: "mutualTls",
    challenge: "MutualTLS",
    onCards: ["mtlsSecurityScheme", "mutualTLS"],
    hasMetadata: false,
    subject: "ada",
    // The server requests certificates but does not require them: without one, the response says what is missing.
    options: async () => ({
      tls: { ...(await certificateOf("server")), requestCert: true, rejectUnauthorized: false },
    }),
    async authenticator(clock) {
      const [right, old, weak] = await Promise.all(["right", "old", "weak"].map(fingerprintOf));
      return mutualTls({ certificates: { [right ?? ""]: ada, [old ?? ""]: ada, [weak ?? ""]: guest }, scopes, clock });
    },
    callers: () => ({
      wrong: async () => ({ tls: await certificateOf("wrong") }),
      expired: async () => ({ tls: await certificateOf("old") }),
      insufficient: async () => ({ tls: await certificateOf("weak") }),
      right: async () => ({ tls: await certificateOf("right") }),
    }),
  },
  "a JWT that is bound to a key (DPoP, RFC 9449)": {
    ...http,
    name: "jwt",
    challenge: "DPoP",
    hasMetadata: true,
    subject: "bound",
    authenticator: (clock, { jwts }) => jwt({ issuer: jwts.issuer, scopes, clock, bound: "dpop" }),
    callers({ jwts }) {
      const proved = async (resource: string, scope: string, other = false): Promise<Sent> => {
        const proofs = await proofsOfOne();
        const proof = await proofs.make(`${jwts.issuer}/token`);
        const token = await clientToken(jwts, { client: "bound", resource, scope }, { dpop: proof });
        const shown = other ? await proofsOfOne() : proofs;
        return {
          headers: async (url) => ({ authorization: `DPoP ${token}`, dpop: await shown.make(url, token) }),
        };
      };
      return {
        // A proof with another key, as a thief of the token could make.
        wrong: (server) => proved(server, "chat", true),
        expired: (server) => proved(server, "chat"),
        insufficient: (server) => proved(server, "admin"),
        right: (server) => proved(server, "chat"),
      };
    },
  },
};

function asBasic(name: string, password: string): Sent {
  return { headers: { authorization: `Basic ${btoa(`${name}:${password}`)}` } };
}

/** Makes proofs with a new key (RFC 9449 §4.2). */
async function proofsOfOne(): Promise<{ make(url: string, token?: string): Promise<string> }> {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const jwk = await exportJWK(publicKey);
  return {
    async make(url, token) {
      const digest = token && (await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token)));
      const claims = {
        jti: randomUUID(),
        htm: "POST",
        htu: url,
        ...(digest && { ath: Buffer.from(digest).toString("base64url") }),
      };
      return new SignJWT(claims)
        .setProtectedHeader({ alg: "ES256", typ: "dpop+jwt", jwk })
        .setIssuedAt()
        .sign(privateKey);
    },
  };
}
