import type { AgentCard, SecurityScheme } from "../model/index.ts";
import type { AnswerHeaders } from "../transport/client/binding.ts";

/** The credentials of a client: what a card's security schemes are satisfied with (A2A 1.0 §7.3). */

/** What a request needs to carry to satisfy a scheme. Members are merged where a requirement has several schemes. */
export interface RequestCredentials {
  /** Headers, by their lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Parameters of the query. Only bindings with a URL for each request can send them. */
  readonly query?: Readonly<Record<string, string>>;
  /** Cookies. A browser does not let them be set. */
  readonly cookies?: Readonly<Record<string, string>>;
}

/** A scheme of a card that a provider is asked for. */
export interface SchemeRequest {
  /** The name of the scheme on the card. */
  readonly name: string;
  /** The scheme. */
  readonly scheme: SecurityScheme;
  /** The scopes that the card's requirement names, with those that the server asked for since (RFC 6750 §3.1). */
  readonly scopes: readonly string[];
  /** The card. Where a server gives its card to known callers alone, an empty one for the request for the card. */
  readonly card: AgentCard;
  /** URL of the agent: the resource that tokens are for (RFC 8707). */
  readonly resource: string;
  /** Ends the work of the provider when it is aborted. */
  readonly signal?: AbortSignal;
}

/** The request that credentials go with, for proofs (RFC 9449). */
export interface CredentialTarget {
  /** HTTP method. */
  readonly method: string;
  /** URL of the request. */
  readonly url: string;
}

/**
 * Gives credentials for security schemes. `bearerToken()`, `clientCredentials()` and others of `@parley/a2a/credentials` are
 * providers.
 */
export interface CredentialProvider {
  /** Whether it can satisfy a scheme, without a request to anybody. */
  supports(request: SchemeRequest): boolean;
  /**
   * The credentials for one request.
   *
   * @throws A2AError `Unauthenticated` where there are none, such as a login that the user has refused.
   */
  credentials(request: SchemeRequest, target: CredentialTarget): Promise<RequestCredentials>;
  /**
   * The server has refused the last credentials. `challenge` is its `WWW-Authenticate`. Resolves with whether other credentials can
   * be had, so that the call is worth repeating. Absent: it is not.
   */
  refused?(request: SchemeRequest, challenge: string | undefined): Promise<boolean>;
  /** Takes what each answer of the agent says about credentials: the nonce for proofs (RFC 9449 §8.2). */
  answered?(request: SchemeRequest, headers: AnswerHeaders): void;
}
