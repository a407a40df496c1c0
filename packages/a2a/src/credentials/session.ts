import { isLoopback, withoutSlashes, silentLogger, type Logger } from "../base/index.ts";
import { A2AError, hasCode, type AgentCard, type SecurityScheme } from "../model/index.ts";
import { isCardOf, type AgentService, type CallContext, type UnaryName } from "../protocol/index.ts";
import type { AnswerHeaders, CredentialedRequest, RequestCredentialing } from "../transport/client/binding.ts";
import { aborted } from "../transport/client/signals.ts";
import {
  challengesOf,
  parameterOf,
  scopesOf,
  chosenFor,
  chooseSchemes,
  describeRequirements,
  type Challenge,
  type ChosenScheme,
} from "./choose.ts";
import type { CredentialProvider, RequestCredentials, SchemeRequest } from "./port.ts";
import { isObject } from "../model/schema.ts";

/** Maximum scopes per scheme: scopes of the requirement, and scopes that the server requested later. */
const maxScopes = 200;

/**
 * The credentials of one client. Chooses them from the card, adds them to each request, and replaces them if the server rejects them.
 * Call `use` before the first request to the agent.
 */
export class CredentialSession implements RequestCredentialing {
  readonly #providers: readonly CredentialProvider[];
  readonly #logger: Logger;
  #card: AgentCard | undefined;
  #resource = "";
  #trusted: readonly (string | undefined)[] | undefined;
  #chosen: readonly ChosenScheme[] | undefined;
  /** Scopes that the server requested, by scheme. */
  readonly #asked = new Map<string, readonly string[]>();
  /** How often credentials were replaced. A call that failed with older credentials need not replace them again. */
  #version = 0;
  #replacing: Promise<boolean> | undefined;
  /** Errors of the providers, as opposed to rejections by the server. */
  readonly #own = new WeakSet<object>();

  constructor(providers: readonly CredentialProvider[], logger: Logger) {
    if (!Array.isArray(providers)) {
      throw new A2AError("InvalidParams", "credentials must be a list, such as [apiKeyCredential(key)]");
    }
    this.#providers = providers;
    this.#logger = logger;
  }

  /**
   * Chooses credentials for the card. `named`: the user's URL of the agent or of its card. `trusted`: the origins that get
   * credentials; `undefined`: all that the card names.
   */
  use(card: AgentCard, named: URL | undefined, trusted: readonly (string | undefined)[] | undefined): void {
    this.#resource = resourceOf(card, named);
    this.#trusted = trusted;
    this.#chosen = undefined;
    this.#choose(card);
  }

  #choose(card: AgentCard): void {
    this.#card = card;
    const chosen = chooseSchemes(card, this.#resource, this.#providers);
    // Only authenticated clients get an extended card. On some servers it lacks the security requirements.
    this.#chosen = chosen?.length === 0 ? (this.#chosen ?? chosen) : (chosen ?? this.#chosen);
  }

  /**
   * For a server that requires credentials for its card: chooses them by the challenges of the 401, only for requests for the card. Does
   * not call an authorization server that a challenge names, because it is not trusted here. Returns whether it has chosen any.
   */
  refusedCard({ challenge }: A2AError, named: URL): boolean {
    if (this.#card !== undefined || this.#chosen !== undefined) return false;
    const challenges = challengesOf(challenge);
    const scopes = scopesOf(parameterOf(challenges, "scope"));
    this.#resource = resourceOf(unknownCard, named);
    const chosen = schemesOf(challenges).flatMap(([name, scheme]) => {
      const request = { name, scheme, scopes, card: unknownCard, resource: this.#resource };
      return chosenFor(request, this.#providers) ?? [];
    });
    // A request has one Authorization header, and a header for each API key.
    const first = chosen.find(({ scheme }) => scheme.apiKeySecurityScheme === undefined);
    this.#chosen = chosen.filter((one) => one === first || one.scheme.apiKeySecurityScheme !== undefined);
    return this.#chosen.length > 0;
  }

  async add<Request extends CredentialedRequest>(request: Request, signal: AbortSignal | undefined): Promise<Request> {
    const chosen = this.#chosen ?? [];
    if (chosen.length === 0) return request;
    const url = new URL(request.url);
    if (this.#trusted?.includes(url.origin) === false) return request;
    if (url.protocol !== "https:" && !isLoopback(url.hostname))
      throw new A2AError("InvalidParams", `Credentials are not sent to ${url.origin}, because it does not use TLS`);
    const target = { method: request.method, url: request.url };
    const given = chosen.map((one) => one.provider.credentials(this.#requestOf(one, signal), target));
    const all = await Promise.all(given).catch((thrown: unknown) => {
      if (isObject(thrown)) this.#own.add(thrown);
      throw thrown;
    });
    return merged(request, url, all);
  }

  /** The names of the chosen schemes; `undefined` if the card's requirements cannot be satisfied. */
  get schemes(): readonly string[] | undefined {
    return this.#chosen?.map(({ name }) => name);
  }

  answered(headers: AnswerHeaders): void {
    for (const one of this.#chosen ?? []) one.provider.answered?.(this.#requestOf(one, undefined), headers);
  }

  /** Wraps a service: retries a call whose credentials were rejected, if it can get other credentials. */
  wrap(service: AgentService): AgentService {
    return {
      call: async <Name extends UnaryName>(
        operation: Name,
        request: Parameters<typeof service.call<Name>>[1],
        context: CallContext,
      ) => {
        const reply = await this.#attempt(context, () => service.call<Name>(operation, request, context));
        // The card for authenticated callers replaces the public one (A2A 1.0 §3.1.11).
        const { value } = reply.payload;
        if (isCardOf(operation, value)) this.#choose(value);
        return reply;
      },
      stream: (operation, request, context) =>
        this.#attempt(context, () => service.stream(operation, request, context)),
    };
  }

  /** Runs a call. Retries once for each kind of rejection that other credentials may solve. */
  async #attempt<T>(context: CallContext, run: () => Promise<T>): Promise<T> {
    const tried = new Set<string>();
    for (;;) {
      const version = this.#version;
      try {
        return await run();
      } catch (thrown) {
        if (!hasCode(thrown, "Unauthenticated", "PermissionDenied") || this.#own.has(thrown)) throw thrown;
        const kind = kindOf(thrown);
        if (tried.has(kind) || !(await this.#replaced(thrown, version, context.signal))) throw this.#explained(thrown);
        tried.add(kind);
      }
    }
  }

  /** Whether the credentials have changed since `version`. Calls that are rejected at the same time share one request. */
  async #replaced(refusal: A2AError, version: number, signal: AbortSignal | undefined): Promise<boolean> {
    if (this.#version !== version) return true;
    this.#replacing ??= this.#replace(refusal).finally(() => (this.#replacing = undefined));
    const done = await Promise.race([this.#replacing, aborted(signal)]);
    if (done && this.#version === version) this.#version++;
    return done;
  }

  async #replace({ code, challenge }: A2AError): Promise<boolean> {
    const challenges = challengesOf(challenge);
    const error = parameterOf(challenges, "error");
    if (code === "PermissionDenied" && error !== "insufficient_scope") return false;
    const chosenNow = this.#chosen?.length === 0 && this.#chooseFor(challenges.map(({ scheme }) => scheme));
    const more = scopesOf(parameterOf(challenges, "scope"));
    let any = chosenNow;
    for (const one of this.#chosen ?? []) {
      const known = this.#asked.get(one.name) ?? [];
      this.#asked.set(one.name, [...new Set([...known, ...more])].slice(0, maxScopes));
      any = (await this.#refuse(one, challenge)) || any;
    }
    if (any) this.#logger.info("Credentials rejected; using others", { code, error });
    return any;
  }

  async #refuse(one: ChosenScheme, challenge: string | undefined): Promise<boolean> {
    try {
      return (await one.provider.refused?.(this.#requestOf(one, undefined), challenge)) === true;
    } catch (cause) {
      this.#logger.warn("Credentials rejected; no others available", { scheme: one.name, cause });
      return false;
    }
  }

  /** For a server that requires credentials although its card does not: chooses by its challenges. Returns whether one was chosen. */
  #chooseFor(schemes: readonly string[]): boolean {
    const card = this.#card as AgentCard;
    const [first] = schemes.flatMap((name) => {
      const scheme = { httpAuthSecurityScheme: { scheme: name } };
      return chosenFor({ name, scheme, scopes: [], card, resource: this.#resource }, this.#providers) ?? [];
    });
    if (first !== undefined) this.#chosen = [first];
    return first !== undefined;
  }

  #requestOf({ name, scheme, scopes }: ChosenScheme, signal: AbortSignal | undefined): SchemeRequest {
    return {
      name,
      scheme,
      scopes: [...new Set([...scopes, ...(this.#asked.get(name) ?? [])])],
      card: this.#card ?? unknownCard,
      resource: this.#resource,
      ...(signal !== undefined && { signal }),
    };
  }

  /** Extends the error of a rejected call if no credentials satisfy the card. */
  #explained(error: A2AError): A2AError {
    if (this.#chosen !== undefined) return error;
    const wanted = describeRequirements(this.#card as AgentCard);
    const { challenge, metadata } = error;
    return new A2AError(
      error.code,
      `${error.message}. None of the credentials satisfies the card, which requires ${wanted}`,
      {
        challenge,
        metadata,
        cause: error,
      },
    );
  }
}

/** The kind of a rejection. Each kind is retried once with other credentials. */
function kindOf({ code, challenge }: A2AError): string {
  const nonce = parameterOf(challengesOf(challenge), "error") === "use_dpop_nonce";
  return nonce ? "nonce" : code;
}

/** Placeholder for a card that requires credentials. */
const unknownCard: AgentCard = {
  name: "",
  description: "",
  supportedInterfaces: [],
  version: "",
  capabilities: {},
  defaultInputModes: [],
  defaultOutputModes: [],
  skills: [],
};

/** The schemes of challenges. Challenges for API keys have the format of Parley's servers. */
function schemesOf(challenges: readonly Challenge[]): readonly (readonly [string, SecurityScheme])[] {
  return challenges.map(({ scheme, parameters: { in: location = "", name = "" } }) =>
    scheme === "apikey"
      ? [name, { apiKeySecurityScheme: { location, name } }]
      : [scheme, { httpAuthSecurityScheme: { scheme: scheme === "dpop" ? "bearer" : scheme } }],
  );
}

const wellKnown = /\/\.well-known\/agent(-card)?\.json$/;

/** The URL of the agent, without a trailing slash: the user's, or else its first interface's. */
function resourceOf(card: AgentCard, named: URL | undefined): string {
  const first = card.supportedInterfaces[0]?.url ?? "";
  const base = named && new URL(named.pathname.replace(wellKnown, ""), named);
  return withoutSlashes(base === undefined || base.pathname.endsWith(".json") ? first : base.href);
}

function merged<Request extends CredentialedRequest>(
  request: Request,
  url: URL,
  all: readonly RequestCredentials[],
): Request {
  const headers: Record<string, string> = { ...request.headers };
  const query = new URLSearchParams();
  for (const given of all) {
    for (const [name, value] of Object.entries(given.headers ?? {})) headers[name] = sendable(value);
    for (const [name, value] of Object.entries(given.query ?? {})) query.set(name, value);
    const pairs = Object.entries(given.cookies ?? {}).map(([name, value]) => `${name}=${cookieValue(value)}`);
    if (pairs.length > 0) headers["cookie"] = [headers["cookie"] ?? [], pairs].flat().join("; ");
  }
  if (query.size === 0) return { ...request, headers };
  return { ...request, headers, url: request.url + (url.search === "" ? "?" : "&") + query.toString() };
}

/** Rejects values that are invalid in headers (RFC 9110 §5.5). Unlike the error of `fetch`, the message does not contain the secret. */
function sendable(value: string): string {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return value;
  throw new A2AError("InvalidParams", "The credentials contain characters that are not allowed in headers");
}

/** Rejects values that are invalid in cookies (RFC 6265 §4.1.1). */
function cookieValue(value: string): string {
  if (/^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/.test(value)) return value;
  throw new A2AError("InvalidParams", "The credentials contain characters that are not allowed in cookies");
}

/** Options of `signIn()`. */
export interface SignInOptions {
  /** Ends the login when it is aborted. */
  readonly signal?: AbortSignal;
}

/**
 * Gets the credentials for a card before any call, such as for a login command. The provider stores the tokens.
 *
 * @param card - The card of the agent, such as `client.card`.
 * @param url - The URL of the agent, as it is passed to `connect()`.
 * @returns The names of the satisfied schemes. Empty: the card requires no credentials.
 * @throws A2AError `Unauthenticated` if the credentials satisfy none of the card's requirements, or if the login fails.
 */
export async function signIn(
  card: AgentCard,
  url: string,
  credentials: readonly CredentialProvider[],
  { signal }: SignInOptions = {},
): Promise<readonly string[]> {
  const session = new CredentialSession(credentials, silentLogger);
  session.use(card, new URL(url), undefined);
  const { schemes } = session;
  if (schemes === undefined)
    throw new A2AError(
      "Unauthenticated",
      `None of the credentials satisfies the card, which requires ${describeRequirements(card)}`,
    );
  await session.add({ method: "POST", url, headers: {} }, signal);
  return schemes;
}
