import type { TokenEndpointResponse } from "oauth4webapi";
import { systemClock, type Clock } from "../base/index.ts";
import { A2AError, type SecurityScheme } from "../model/index.ts";
import type { AnswerHeaders } from "../transport/client/binding.ts";
import { advertisedServer, findServer, type FoundServer } from "./authorization-server.ts";
import { challengesOf, parameterOf } from "./choose.ts";
import {
  type OAuthOptions,
  type CredentialProvider,
  type CredentialTarget,
  type RequestCredentials,
  type SchemeRequest,
  memoryTokenStore,
  textOfKey,
  type StoredTokens,
  type TokenKey,
  type TokenStore,
} from "./port.ts";
import {
  proofFor,
  proofKey,
  authenticationOf,
  clientOf,
  errorCodeOf,
  grantError,
  requestTokens,
  serverOf,
  userOf,
  userScopes,
  type ProofKey,
  type GrantCall,
  type LoggedInUser,
} from "./server-calls.ts";
import { isBearer } from "./simple.ts";
import { aborted, follow } from "../transport/client/signals.ts";

/** The way in which a provider gets its first tokens. Providers share everything else. */
interface Grant {
  /** The card's flows that it supports. */
  readonly flows: readonly ("authorizationCode" | "clientCredentials" | "deviceCode")[];
  /** Whether it needs a user. If so, it is not retried after the agent has rejected a new token. */
  readonly interactive: boolean;
  /** Gets tokens. Its errors are converted to an `A2AError` without secrets. */
  obtain(call: GrantCall): Promise<TokenEndpointResponse>;
  /** Called with the user who logged in. */
  readonly onUser?: ((user: LoggedInUser) => void) | undefined;
  /** A digest of the subject, if each subject has its own tokens. */
  subject?(): Promise<string>;
}

/** A token is renewed this long before it expires, in milliseconds, or after nine tenths of its lifetime. */
const earlier = 30_000;
/** Maximum length of a nonce that is sent back, in characters. */
const longestNonce = 1_024;
/** How long the metadata of an authorization server is cached, in milliseconds. */
const metadataFor = 60 * 60_000;

/** The state for one agent. */
interface AgentState {
  server?: { readonly found: Promise<FoundServer | undefined>; readonly of: string; readonly at: number } | undefined;
  /** The issuer that the metadata of the agent has named. */
  advertised?: string | undefined;
  /** The last nonce for proofs, and whether it is still unused. */
  nonce?: { readonly value: string; isNew: boolean };
  /** The token that was sent last. */
  sent?: string;
  /** The token that the agent has rejected last. */
  refused?: string;
  /** The last token from the grant, not from a store or a renewal. */
  granted?: string;
}

/** Maximum remembered agents. Usually a provider is used for one agent. */
const maxAgents = 1_000;

/** Gets access tokens by a grant, caches, renews and sends them. */
export class TokenProvider implements CredentialProvider {
  readonly #options: OAuthOptions;
  readonly #grant: Grant;
  readonly #store: TokenStore;
  readonly #clock: Clock;
  readonly #flights = new Flights<StoredTokens>();
  readonly #agents = new Map<string, AgentState>();
  readonly #keys = new Map<string, Promise<ProofKey>>();
  /** The issuer of this provider, once known. */
  #issuer: string | undefined;

  constructor(options: OAuthOptions, grant: Grant) {
    if (!options.clientId) throw new A2AError("InvalidParams", "clientId is missing");
    this.#options = options;
    this.#grant = grant;
    this.#store = options.store ?? memoryTokenStore();
    this.#clock = options.clock ?? systemClock;
  }

  supports({ name, scheme }: SchemeRequest): boolean {
    const { scheme: only, issuer } = this.#options;
    if ((only !== undefined && only !== name) || !isBearer(scheme)) return false;
    return issuer !== undefined || this.#hasFlow(scheme);
  }

  /** Whether the grant supports the card's flow. A card that only names a server allows any flow. */
  #hasFlow({ oauth2SecurityScheme: oauth }: SecurityScheme): boolean {
    return oauth === undefined || this.#grant.flows.some((flow) => oauth.flows[flow] !== undefined);
  }

  async credentials(request: SchemeRequest, target: CredentialTarget): Promise<RequestCredentials> {
    const server = await this.#find(request);
    // The agent's 401 may name its authorization server (RFC 9728).
    if (server === undefined) return {};
    const tokens = await this.#tokens(request, server);
    const { accessToken, type, proofKey: jwk } = tokens;
    const agent = this.#agentOf(request);
    agent.sent = accessToken;
    if (type === "Bearer") return { headers: { authorization: `Bearer ${accessToken}` } };
    const dpop = await proofFor(await this.#keyOf(jwk), accessToken, target, agent.nonce?.value, this.#clock);
    if (agent.nonce !== undefined) agent.nonce.isNew = false;
    return { headers: { authorization: `DPoP ${accessToken}`, dpop } };
  }

  answered(request: SchemeRequest, headers: AnswerHeaders): void {
    const value = headers.get("dpop-nonce");
    if (!value || value.length > longestNonce) return;
    const agent = this.#agentOf(request);
    if (value !== agent.nonce?.value) agent.nonce = { value, isNew: true };
  }

  async refused(request: SchemeRequest, challenge: string | undefined): Promise<boolean> {
    const challenges = challengesOf(challenge);
    const error = parameterOf(challenges, "error");
    const agent = this.#agentOf(request);
    if (error === "use_dpop_nonce") return agent.nonce?.isNew === true;
    if (agent.sent === undefined) return this.#readAdvertised(request, challenge);
    if (error === "insufficient_scope") {
      const server = await this.#find(request);
      const known = server && (await this.#store.get(await this.#keyOfTokens(request, server)));
      return known !== undefined && !covers(known, this.#scopesOf(request));
    }
    return this.#refuse(request, agent, agent.sent);
  }

  /** Forgets a token. Returns whether the provider may get another one. */
  async #refuse(request: SchemeRequest, agent: AgentState, token: string): Promise<boolean> {
    agent.refused = token;
    const server = await this.#find(request);
    if (server === undefined) return false;
    const key = await this.#keyOfTokens(request, server);
    const known = await this.#store.get(key);
    // Another client, or another process, may have renewed it.
    if (known === undefined || known.accessToken !== token || known.refreshToken !== undefined) return true;
    await this.#store.set(key, undefined);
    return !(this.#grant.interactive && agent.granted === token);
  }

  async #readAdvertised(request: SchemeRequest, challenge: string | undefined): Promise<boolean> {
    const agent = this.#agentOf(request);
    agent.advertised = await advertisedServer(challenge, request, this.#options);
    agent.server = undefined;
    return agent.advertised !== undefined;
  }

  #agentOf({ resource }: SchemeRequest): AgentState {
    const known = this.#agents.get(resource);
    if (known !== undefined) return known;
    if (this.#agents.size >= maxAgents) this.#agents.clear();
    const made: AgentState = {};
    this.#agents.set(resource, made);
    return made;
  }

  /** The authorization server of an agent. A provider without an issuer is bound to the first server that a card names. */
  async #find(request: SchemeRequest): Promise<FoundServer | undefined> {
    const agent = this.#agentOf(request);
    const of = JSON.stringify(request.scheme);
    const now = this.#clock.elapsed();
    if (agent.server?.of !== of || now - agent.server.at > metadataFor) {
      agent.server = { found: findServer(request, this.#options, agent.advertised), of, at: now };
    }
    let server: FoundServer | undefined;
    try {
      server = await agent.server.found;
    } catch (thrown) {
      agent.server = undefined;
      throw grantError(thrown, undefined);
    }
    if (server === undefined) return undefined;
    this.#issuer ??= server.metadata.issuer;
    if (this.#issuer === server.metadata.issuer) return server;
    const { origin } = new URL(this.#issuer);
    throw new A2AError("Unauthenticated", `These credentials are for ${origin}, and the card names another server`);
  }

  #scopesOf({ scopes }: SchemeRequest): readonly string[] {
    return [...new Set([...scopes, ...(this.#options.scopes ?? [])])];
  }

  #resourceOf({ resource }: SchemeRequest): string | undefined {
    const { resource: own = resource } = this.#options;
    return own === false || own === "" ? undefined : own;
  }

  async #keyOfTokens(request: SchemeRequest, { metadata }: FoundServer): Promise<TokenKey> {
    const subject = await this.#grant.subject?.();
    const { clientId } = this.#options;
    const key = { issuer: metadata.issuer, clientId, resource: this.#resourceOf(request) ?? "" };
    return subject === undefined ? key : { ...key, subject };
  }

  async #tokens(request: SchemeRequest, server: FoundServer): Promise<StoredTokens> {
    const key = await this.#keyOfTokens(request, server);
    const scopes = this.#scopesOf(request);
    const known = await this.#store.get(key);
    if (known !== undefined && this.#usable(request, known, scopes)) return known;
    const name = JSON.stringify([textOfKey(key), [...scopes].sort()]);
    return this.#flights.join(name, request.signal, (signal) => {
      const renew = async (): Promise<StoredTokens> => {
        // Another process may have stored newer tokens meanwhile.
        const current = await this.#store.get(key);
        if (current !== undefined && this.#usable(request, current, scopes)) return current;
        const made = await this.#renewed(request, server, current, scopes, signal);
        await this.#store.set(key, made);
        return made;
      };
      return this.#store.exclusively?.(key, renew) ?? renew();
    });
  }

  #usable(request: SchemeRequest, tokens: StoredTokens, scopes: readonly string[]): boolean {
    const { accessToken, expiresAt = Infinity } = tokens;
    return accessToken !== this.#agentOf(request).refused && this.#clock.now() < expiresAt && covers(tokens, scopes);
  }

  async #renewed(
    request: SchemeRequest,
    server: FoundServer,
    known: StoredTokens | undefined,
    scopes: readonly string[],
    signal: AbortSignal,
  ): Promise<StoredTokens> {
    try {
      const key = this.#options.dpop === true ? await this.#keyOf(known?.proofKey) : undefined;
      const oauth = await import("oauth4webapi");
      const call: GrantCall = {
        oauth,
        server,
        options: this.#options,
        scopes,
        resource: this.#resourceOf(request),
        key,
        signal,
        clock: this.#clock,
      };
      const refreshed =
        known?.refreshToken !== undefined && covers(known, scopes)
          ? await refresh(call, known.refreshToken)
          : undefined;
      const answer = refreshed ?? (await this.#obtain(call));
      const tokens = this.#stored(answer, call, refreshed && known?.refreshToken);
      if (refreshed === undefined) this.#agentOf(request).granted = tokens.accessToken;
      return tokens;
    } catch (thrown) {
      if (signal.aborted) throw signal.reason;
      throw grantError(thrown, server);
    }
  }

  /** Gets the first tokens. Requests the user's data if `onUser` is set. */
  async #obtain(call: GrantCall): Promise<TokenEndpointResponse> {
    const { obtain, onUser } = this.#grant;
    const telling = onUser === undefined ? [] : userScopes(call.server.metadata);
    if (onUser === undefined || telling.length === 0) return obtain(call);
    const scopes = [...new Set([...call.scopes, ...telling])];
    const answer = await obtain({ ...call, scopes }).catch((thrown: unknown) => {
      // The client may not be allowed to request user data, which is optional.
      if (errorCodeOf(thrown) !== "invalid_scope") throw thrown;
      return obtain(call);
    });
    const user = await userOf(answer.id_token, call);
    if (user !== undefined) onUser(user);
    return answer;
  }

  #stored(answer: TokenEndpointResponse, call: GrantCall, refreshToken: string | undefined): StoredTokens {
    const type = answer.token_type === "dpop" ? "DPoP" : "Bearer";
    if (type === "Bearer" && call.key !== undefined)
      throw new A2AError("Unauthenticated", "The authorization server issued a token that is not bound to the key");
    const granted = typeof answer.scope === "string" ? answer.scope.split(" ") : [];
    const life = answer.expires_in === undefined ? undefined : answer.expires_in * 1000;
    const kept = answer.refresh_token ?? refreshToken;
    return {
      accessToken: answer.access_token,
      type,
      scopes: [...new Set([...call.scopes, ...granted])],
      ...(life !== undefined && { expiresAt: this.#clock.now() + life - Math.min(earlier, life / 10) }),
      ...(kept !== undefined && { refreshToken: kept }),
      ...(call.key !== undefined && { proofKey: call.key.jwk }),
    };
  }

  /** The key of proofs: the stored one, or this provider's. */
  #keyOf(stored: Readonly<Record<string, unknown>> | undefined): Promise<ProofKey> {
    const name = stored === undefined ? "" : JSON.stringify(stored);
    const known = this.#keys.get(name) ?? proofKey(stored);
    if (this.#keys.size > 100) this.#keys.clear();
    this.#keys.set(name, known);
    return known;
  }
}

function covers({ scopes: has }: StoredTokens, scopes: readonly string[]): boolean {
  return scopes.every((scope) => has.includes(scope));
}

/** Renews tokens with a refresh token (RFC 6749 §6); `undefined` if the refresh token is no longer valid. */
async function refresh(call: GrantCall, token: string): Promise<TokenEndpointResponse | undefined> {
  const { oauth, server, resource } = call;
  const at = server.refreshUrl ? { ...serverOf(call), token_endpoint: server.refreshUrl } : serverOf(call);
  const authentication = await authenticationOf(call);
  const extra = resource === undefined ? {} : { additionalParameters: { resource } };
  try {
    return await requestTokens(
      call,
      (options) => oauth.refreshTokenGrantRequest(at, clientOf(call), authentication, token, { ...options, ...extra }),
      (response) => oauth.processRefreshTokenResponse(at, clientOf(call), response),
    );
  } catch (thrown) {
    if (errorCodeOf(thrown) === "invalid_grant") return undefined;
    throw thrown;
  }
}

interface Flight<T> {
  readonly result: Promise<T>;
  readonly work: AbortController;
  waiting: number;
}

/** Work that several callers await. Aborted when the last caller has stopped waiting. */
class Flights<T> {
  readonly #flights = new Map<string, Flight<T>>();

  /** Joins the running work of this name, or starts it. */
  async join(name: string, signal: AbortSignal | undefined, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const flight = this.#flights.get(name) ?? this.#begin(name, run);
    flight.waiting += 1;
    const { own, release } = follow(signal);
    try {
      return await Promise.race([flight.result, aborted(own.signal)]);
    } finally {
      release();
      flight.waiting -= 1;
      if (flight.waiting === 0) {
        this.#end(name, flight);
        flight.work.abort(new A2AError("Aborted", "The token is no longer needed"));
      }
    }
  }

  #begin(name: string, run: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const work = new AbortController();
    const result = run(work.signal);
    const flight: Flight<T> = { result, work, waiting: 0 };
    this.#flights.set(name, flight);
    result.then(
      () => this.#end(name, flight),
      () => this.#end(name, flight),
    );
    return flight;
  }

  #end(name: string, flight: Flight<T>): void {
    if (this.#flights.get(name) === flight) this.#flights.delete(name);
  }
}
