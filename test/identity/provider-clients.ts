import { generateKeyPairSync, type JsonWebKey } from "node:crypto";
import type { ClientMetadata } from "oidc-provider";

/** The clients of the tests' provider, and keys. */

/** The secret of the clients that have one. Its distinctive text lets tests search logs for it. */
export const providerSecret = "secret-of-a-test-client-0123456789";

/** A provider's signature algorithm. */
export type ProviderAlgorithm = "ES256" | "EdDSA" | "RS256";

const refreshes = ["authorization_code", "refresh_token"];
export const exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange";
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

/** The key of the client `signer`, which authenticates with `private_key_jwt` (RFC 7523). */
export const signerKey: JsonWebKey = keyFor("ES256", "signer-1");

export function keyFor(algorithm: ProviderAlgorithm, kid: string): JsonWebKey {
  const { privateKey } =
    algorithm === "ES256"
      ? generateKeyPairSync("ec", { namedCurve: "P-256" })
      : algorithm === "RS256"
        ? generateKeyPairSync("rsa", { modulusLength: 2048 })
        : generateKeyPairSync("ed25519");
  return { ...privateKey.export({ format: "jwk" }), alg: algorithm, use: "sig", kid };
}

function publicPart(key: JsonWebKey): JsonWebKey {
  const { d: _d, p: _p, q: _q, dp: _dp, dq: _dq, qi: _qi, ...rest } = key;
  return rest;
}

/**
 * The clients: `service` (secret in the header), `service-post` (secret in the body), `signer` (`private_key_jwt`), `native` (no
 * secret: authorization code with PKCE to any loopback port, device code, refresh), `bound` (tokens for DPoP alone), `certified`
 * (tokens bound to its certificate), `exchanger` (token exchange, client credentials).
 */
export function providerClients(): readonly ClientMetadata[] {
  const none = { redirect_uris: [], response_types: [] as const, client_secret: providerSecret };
  const machine = { ...none, grant_types: ["client_credentials"] };
  return [
    { ...machine, client_id: "service", token_endpoint_auth_method: "client_secret_basic" },
    { ...machine, client_id: "service-post", token_endpoint_auth_method: "client_secret_post" },
    {
      client_id: "signer",
      token_endpoint_auth_method: "private_key_jwt",
      token_endpoint_auth_signing_alg: "ES256",
      jwks: { keys: [publicPart(signerKey)] },
      redirect_uris: [],
      response_types: [],
      grant_types: ["client_credentials"],
    },
    {
      client_id: "native",
      application_type: "native",
      token_endpoint_auth_method: "none",
      // Any port matches, because this is a loopback address (RFC 8252 §7.3).
      redirect_uris: ["http://127.0.0.1/callback", "http://[::1]/callback"],
      grant_types: [...refreshes, deviceGrant],
      response_types: ["code"],
    },
    { ...machine, client_id: "bound", dpop_bound_access_tokens: true },
    {
      ...machine,
      client_id: "certified",
      tls_client_certificate_bound_access_tokens: true,
      token_endpoint_auth_method: "client_secret_basic",
    },
    { ...none, client_id: "exchanger", grant_types: ["client_credentials", exchangeGrant] },
  ] as readonly ClientMetadata[];
}
