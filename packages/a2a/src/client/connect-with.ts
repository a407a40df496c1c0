import { silentLogger, type Logger } from "../base/index.ts";
import { meantBy } from "../model/options.ts";
import { isObject } from "../model/schema.ts";
import { checkOptions, hasCode, invalidParams, type AgentCard, type OptionNames } from "../model/index.ts";
import {
  interceptClient,
  safeObserver,
  Payload,
  type AnyExtension,
  type AgentService,
  type CallContext,
  type UnaryName,
  type UnaryOperations,
  isCardOf,
} from "../protocol/index.ts";
import { CredentialSession } from "../credentials/session.ts";
import { Client } from "./client.ts";
import type { ClientParts } from "./parts.ts";
import {
  assemble,
  checkBindings,
  decoded,
  waitingClock,
  type CardHooks,
  type ClientKit,
  type ConnectOptions,
  type Intercept,
} from "./connect.ts";
import { cardKey, sharedCards, toUrl, type CachedCard, type CardCache } from "./card.ts";
import { download } from "./download.ts";
import { fileFetching } from "./downloaded-file.ts";
import { uriProblem } from "../extensions/index.ts";
import { Extending, explainingRequired, notConnectedWith } from "./extension-client.ts";
import { readText } from "./text.ts";
import { watchTask } from "./watch.ts";
import type { OlderCard } from "./versions.ts";
import type { CardCheck } from "../cards/port.ts";

/** Rejects policy options of earlier releases, which would otherwise be ignored in JavaScript. */
function checkPolicies({ retry, reconnect }: Pick<ConnectOptions, "retry" | "reconnect">): void {
  const wrong = Object.entries({ retry, reconnect }).flatMap(([name, policy]) =>
    ["attempts", "maxRetryAfter"]
      .filter((old) => typeof policy === "object" && old in policy)
      .map((old) => ({ field: `${name}.${old}`, description: `was replaced by ${name}.budget, in milliseconds` })),
  );
  if (wrong.length > 0) throw invalidParams(wrong);
}

/**
 * Like `connect()`, but only with the bindings that you pass, so a bundle contains no other bindings.
 *
 * @example
 * ```ts
 * const kit = { bindings: [restBinding([codecV1])], decodeCard: codecV1.decodeCard };
 * const client = await connectWith(kit, "https://example.com/weather");
 * ```
 */
export async function connectWith<E extends string | AnyExtension = string>(
  kit: ClientKit,
  agent: string | URL | AgentCard | OlderCard,
  { extensions = [], ...options }: ConnectOptions<E> = {},
): Promise<Client<Extract<E, AnyExtension>>> {
  checkOptions("connect()", options, connectNames, meantBy);
  // JavaScript callers may pass `undefined`, such as an environment variable that is not set.
  if (typeof agent !== "string" && !isObject(agent))
    throw invalidParams([{ field: "agent", description: `must be a URL or a card; got ${typeof agent}` }]);
  const { observer, logger = silentLogger } = options;
  if (!Array.isArray(extensions))
    throw invalidParams([{ field: "extensions", description: "must be a list, such as [timestamp]" }]);
  const misspelt = extensions.flatMap((each, at) => {
    const description = typeof each === "string" ? uriProblem(each) : undefined;
    return description === undefined ? [] : [{ field: `extensions[${at}]`, description }];
  });
  if (misspelt.length > 0) throw invalidParams(misspelt);
  checkPolicies(options);
  checkBindings([...kit.bindings, ...(options.bindings ?? [])]);
  const guarded = observer === undefined ? options : { ...options, observer: safeObserver(observer, logger) };
  const trust = options.trust && new ClientTrust(kit, options.trust, logger);
  const session = options.credentials && new CredentialSession(options.credentials, logger);
  const values = extensions.some((each) => typeof each !== "string");
  const extending = values ? new Extending(extensions, logger) : undefined;
  const uris = extensions.filter((each) => typeof each === "string");
  let origins: readonly (string | undefined)[] | undefined;
  const intercept: Intercept = (service, interceptors, target, named, trusted) => {
    const { card } = target;
    origins = trusted;
    session?.use(card, named, trusted);
    const approved = trust?.wrap(service) ?? service;
    const wrapped = interceptClient(session?.wrap(approved) ?? approved, interceptors, target);
    return extending?.below(wrapped, card) ?? wrapped;
  };
  const isShared = options.cardCache === undefined;
  const own = trust?.kit ?? kit;
  const shared = (): CardCache =>
    sharedCards(options.fetch ?? fetch, options.clock ?? waitingClock, (value) => decoded(own, value));
  const cache = isShared ? shared() : options.cardCache || new Map<string, CachedCard>();
  const settings = {
    ...guarded,
    extensions: uris,
    // Set even without headers, so that errors name the origin that gets no credentials.
    ...(session !== undefined && { headers: options.headers ?? {} }),
  };
  const refused: CardHooks["refused"] = (error, named, source) => {
    // With `trust`, a 401 for the card must not make the client send credentials, unless `credentialOrigins` lists the origin.
    const isTwice = options.credentialOrigins?.some((url) => toUrl(url).origin === named.origin) === true;
    if ((trust && !isTwice) || !hasCode(error, "Unauthenticated") || !session?.refusedCard(error, named)) return false;
    // Do not share cards that were fetched with these credentials.
    if (isShared) source.cache = new Map();
    return true;
  };
  const hooks: CardHooks = {
    credentials: session,
    refused,
    approve: trust && ((card, named) => trust.check(card, named)),
    keyOf: isShared ? cardKey : undefined,
  };
  const begin = (cardCache: CardCache): Promise<ClientParts> => {
    const trusted = trust?.cache(cardCache) ?? cardCache;
    return assemble(own, agent, { ...settings, cardCache: trusted }, intercept, hooks);
  };
  const parts = await begin(cache).catch((thrown: unknown) => {
    if (!isShared || trust?.refusedCached !== true) throw thrown;
    // The cached card is not trusted. Fetch it again, because the server may have a newer card.
    return begin({ get: () => undefined, set: (...entry) => cache.set(...entry) });
  });
  const fileFetch = fileFetching(
    options.fetch ?? ((url, init) => fetch(url, init)),
    () => origins ?? [parts.chosen().url],
  );
  const complete = { ...parts, download, fileFetch, readText, watch: watchTask, ext: notConnectedWith };
  const service = extending === undefined ? explainingRequired(parts.service, parts.card, uris) : parts.service;
  return new Client<Extract<E, AnyExtension>>(extending?.above(complete) ?? { ...complete, service });
}

/**
 * The `trust` option of one client. Checks every card before it is used (A2A 1.0 §8.4.3): public, cached and extended cards.
 * Signatures cover JSON documents, so the document of each card is kept. The client only uses the part of the document that the
 * signatures cover.
 */
class ClientTrust {
  readonly #kit: ClientKit;
  readonly #trust: CardCheck;
  readonly #logger: Logger;
  readonly #documents = new WeakMap<AgentCard, object>();
  #address: string | undefined;
  #isCached = false;
  #refusedCached = false;

  constructor(kit: ClientKit, trust: CardCheck, logger: Logger) {
    this.#kit = kit;
    this.#trust = trust;
    this.#logger = logger;
  }

  get kit(): ClientKit {
    return {
      ...this.#kit,
      decodeCard: (value) => {
        const document: unknown = structuredClone(value);
        const card = this.#kit.decodeCard(value);
        this.#documents.set(card, document as object);
        return card;
      },
    };
  }

  /** Whether the last rejected card came from the cache. */
  get refusedCached(): boolean {
    return this.#refusedCached;
  }

  /** Wraps the cache. Refetches a card that other code cached without its document. */
  cache(inner: CardCache): CardCache {
    this.#isCached = false;
    return {
      get: (url) => {
        const entry = inner.get(url);
        if (entry?.document === undefined) return undefined;
        this.#documents.set(entry.card, entry.document);
        this.#isCached = true;
        return entry;
      },
      set: (url, entry) => inner.set(url, entry),
    };
  }

  /**
   * Checks the card of the agent. Returns the card to use.
   *
   * @throws A2AError `InvalidResponse` if the card is not trusted, `Unavailable` if keys cannot be read now.
   */
  async check(card: AgentCard, named: URL | undefined): Promise<AgentCard> {
    this.#address = named?.href;
    this.#refusedCached = this.#isCached;
    const used = await this.#approve(card);
    this.#refusedCached = false;
    return used;
  }

  /** Wraps the service so that it returns the extended card only after checking it. */
  wrap(service: AgentService): AgentService {
    const approve = (card: AgentCard): Promise<AgentCard> => this.#approve(card);
    return {
      stream: (operation, request, context) => service.stream(operation, request, context),
      async call<Name extends UnaryName>(
        operation: Name,
        request: UnaryOperations[Name]["request"],
        context: CallContext,
      ) {
        const reply = await service.call(operation, request, context);
        const { value } = reply.payload;
        if (!isCardOf(operation, value)) return reply;
        const card = await approve(value);
        return { ...reply, payload: new Payload(card) };
      },
    };
  }

  async #approve(card: AgentCard): Promise<AgentCard> {
    const document = this.#documents.get(card) ?? this.#kit.documentOf?.(card);
    // A binding without JSON has no document, so this encodes the card again, in the form of each version.
    const [first = card, ...others] = document === undefined ? (this.#kit.encodeCard?.(card) ?? [card]) : [document];
    const used = await this.#trust.check([first, ...others], this.#address, this.#logger);
    return decoded(this.#kit, used);
  }
}

const connectNames: OptionNames<ConnectOptions> = {
  binding: 1,
  bindings: 1,
  cardCache: 1,
  clock: 1,
  connectTimeout: 1,
  credentialOrigins: 1,
  credentials: 1,
  extensions: 1,
  fetch: 1,
  headers: 1,
  idleTimeout: 1,
  ids: 1,
  interceptors: 1,
  logger: 1,
  maxCardBytes: 1,
  maxEventBytes: 1,
  maxResponseBytes: 1,
  observer: 1,
  reconnect: 1,
  retry: 1,
  signal: 1,
  timeout: 1,
  trust: 1,
  version: 1,
};
