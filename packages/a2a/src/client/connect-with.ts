import { silentLogger } from "../base/index.ts";
import { meantBy } from "../model/options.ts";
import { type AgentCard, checkOptions, invalidParams } from "../model/index.ts";
import { type AnyExtension, interceptClient, safeObserver } from "../protocol/index.ts";
import { CredentialSession } from "../credentials/session.ts";
import { Client } from "./client.ts";
import {
  assemble,
  checkBindings,
  type ClientKit,
  type ConnectOptions,
  decoded,
  type Intercept,
  waitingClock,
} from "./connect.ts";
import type { CachedCard, CardCache } from "./card.ts";
import { download } from "./download.ts";
import { fileFetching } from "./file-fetch.ts";
import { uriProblem } from "../extensions/index.ts";
import { Extending } from "./extending.ts";
import { connectNames } from "./option-names.ts";
import type { ClientParts } from "./parts.ts";
import { explainingRequired, notConnectedWith } from "./required-extensions.ts";
import { readText } from "./text.ts";
import { cardKey, sharedCards } from "./shared-cards.ts";
import { ClientTrust } from "./trust.ts";
import type { OlderCard } from "./versions.ts";

/** Rejects what a policy had instead of its budget: JavaScript would ignore it. */
function checkPolicies({ retry, reconnect }: Pick<ConnectOptions, "retry" | "reconnect">): void {
  const wrong = Object.entries({ retry, reconnect }).flatMap(([name, policy]) =>
    ["attempts", "maxRetryAfter"]
      .filter((old) => typeof policy === "object" && old in policy)
      .map((old) => ({ field: `${name}.${old}`, description: `was replaced by ${name}.budget, in milliseconds` })),
  );
  if (wrong.length > 0) throw invalidParams(wrong);
}

/**
 * `connect()` with the bindings that you pass, and no others: a bundle then contains only these.
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
  const intercept: Intercept = (service, interceptors, card, named, trusted) => {
    origins = trusted;
    session?.use(card, named, trusted);
    const approved = trust?.wrap(service) ?? service;
    const wrapped = interceptClient(session?.wrap(approved) ?? approved, interceptors);
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
    // Headers that are given, and none: then errors say which origin gets no credentials.
    ...(session !== undefined && { headers: options.headers ?? {} }),
  };
  const approve = trust && ((card: AgentCard, named: URL | undefined) => trust.check(card, named));
  const keyOf = isShared ? cardKey : undefined;
  const begin = (cardCache: CardCache): Promise<ClientParts> => {
    const trusted = trust?.cache(cardCache) ?? cardCache;
    return assemble(own, agent, { ...settings, cardCache: trusted }, intercept, session, approve, keyOf);
  };
  const parts = await begin(cache).catch((thrown: unknown) => {
    if (!isShared || trust?.refusedCached !== true) throw thrown;
    // Another client has kept a card that is not trusted. The server may have another one.
    return begin({ get: () => undefined, set: (...entry) => cache.set(...entry) });
  });
  const fileFetch = fileFetching(
    options.fetch ?? ((url, init) => fetch(url, init)),
    () => origins ?? [parts.chosen().url],
  );
  const complete = { ...parts, download, fileFetch, readText, ext: notConnectedWith };
  const service = extending === undefined ? explainingRequired(parts.service, parts.card, uris) : parts.service;
  return new Client<Extract<E, AnyExtension>>(extending?.above(complete) ?? { ...complete, service });
}
