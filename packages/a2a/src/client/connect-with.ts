import { silentLogger } from "../base/index.ts";
import { type AgentCard, invalidParams } from "../model/index.ts";
import { type AnyExtension, interceptClient, safeObserver } from "../protocol/index.ts";
import { CredentialSession } from "../credentials/session.ts";
import { Client } from "./client.ts";
import { assemble, checkBindings, type ClientKit, type ConnectOptions, type Intercept } from "./connect.ts";
import { download } from "./download.ts";
import { uriProblem } from "../extensions/index.ts";
import { Extending } from "./extending.ts";
import { explainingRequired, notConnectedWith } from "./required-extensions.ts";
import { ClientTrust } from "./trust.ts";
import type { OlderCard } from "./versions.ts";

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
  const { observer, logger = silentLogger } = options;
  if (!Array.isArray(extensions))
    throw invalidParams([{ field: "extensions", description: "must be a list, such as [timestamp]" }]);
  const misspelt = extensions.flatMap((each, at) => {
    const description = typeof each === "string" ? uriProblem(each) : undefined;
    return description === undefined ? [] : [{ field: `extensions[${at}]`, description }];
  });
  if (misspelt.length > 0) throw invalidParams(misspelt);
  checkBindings([...kit.bindings, ...(options.bindings ?? [])]);
  const guarded = observer === undefined ? options : { ...options, observer: safeObserver(observer, logger) };
  const trust = options.trust && new ClientTrust(kit, options.trust, logger);
  const session = options.credentials && new CredentialSession(options.credentials, logger);
  const values = extensions.some((each) => typeof each !== "string");
  const extending = values ? new Extending(extensions, logger) : undefined;
  const uris = extensions.filter((each) => typeof each === "string");
  let checked: Promise<void> | undefined;
  const intercept: Intercept = (service, interceptors, card, named, trusted) => {
    session?.use(card, named, trusted);
    checked = trust?.check(card, named);
    const approved = trust?.wrap(service) ?? service;
    const wrapped = interceptClient(session?.wrap(approved) ?? approved, interceptors);
    return extending?.below(wrapped, card) ?? wrapped;
  };
  const own = {
    ...guarded,
    extensions: uris,
    // Headers that are given, and none: then errors say which origin gets no credentials.
    ...(session !== undefined && { headers: options.headers ?? {} }),
    ...(trust !== undefined && { cardCache: trust.cache(options.cardCache ?? new Map()) }),
  };
  const parts = await assemble(trust?.kit ?? kit, agent, own, intercept, session);
  await checked;
  const complete = { ...parts, download, ext: notConnectedWith };
  const service = extending === undefined ? explainingRequired(parts.service, parts.card, uris) : parts.service;
  return new Client<Extract<E, AnyExtension>>(extending?.above(complete) ?? { ...complete, service });
}
