import type { Clock } from "../base/index.ts";
import type { Dialer } from "../net/index.ts";
import type { Secret } from "./simple.ts";
import type { TokenStore } from "./token-store.ts";

/** The client at an authorization server, and what its tokens are for. */
export interface OAuthOptions {
  /** The id under which the client is registered, or the URL of its metadata document. */
  readonly clientId: string;
  /** The secret of the client. Absent: it has none (RFC 6749 §2.1), unless it has a key or a certificate. */
  readonly clientSecret?: Secret;
  /** Where the secret is sent: in the header (`client_secret_basic`) or in the body (`client_secret_post`). Default `header`. */
  readonly secretIn?: "header" | "body";
  /** The private key of the client as a JWK with `alg`, for `private_key_jwt` (RFC 7523). */
  readonly clientKey?: Readonly<Record<string, unknown>>;
  /** Whether the client authenticates by the certificate that `dialer` shows (`tls_client_auth`, RFC 8705). Default false. */
  readonly clientCertificate?: boolean;
  /**
   * The authorization server, by its issuer. Secrets go to this one alone, whatever a card says. Default: the server that the card
   * names, or the metadata of the agent (RFC 9728). The provider is then for that server, and refuses cards that name another.
   */
  readonly issuer?: string;
  /** Scopes to ask for beside those of the card. `offline_access` asks a provider of OpenID for a refresh token. */
  readonly scopes?: readonly string[];
  /** The resource that tokens are for (RFC 8707). Default: the URL of the agent. `false`: none is sent, for servers that refuse it. */
  readonly resource?: string | false;
  /** Keeps the tokens. Default: the memory of this provider. */
  readonly store?: TokenStore;
  /** Whether tokens are bound to a key of this client, so that a stolen one is of no use (DPoP, RFC 9449). Default false. */
  readonly dpop?: boolean;
  /** Name of the scheme on the card. Default: each that the provider can satisfy. */
  readonly scheme?: string;
  /**
   * Opens the connections to the authorization server: `nodeDialer()` of `@parley/node`, which pins addresses and may show a
   * certificate. Default: the `fetch` of the runtime.
   */
  readonly dialer?: Dialer;
  /** Time. Default: that of the runtime. */
  readonly clock?: Clock;
}
