import { withoutSlashes } from "../base/index.ts";
import { type AgentCard, type AgentInterface, hasCode } from "../model/index.ts";
import {
  type AgentService,
  type CallContext,
  Payload,
  type Reply,
  type UnaryName,
  type UnaryOperations,
} from "../protocol/index.ts";
import type { ClientBinding, ClientHost } from "../transport/client/binding.ts";
import { requestHeaders, sendRequest } from "../transport/client/request.ts";
import { parseJson, refusal } from "../transport/client/service.ts";
import { byVersion, type Codec } from "../wire/codec.ts";
import { respelled, withSchemesOf } from "./card-spellings.ts";

/** What a client needs to talk to servers of every version: it reads their cards, and their services behave the same. */

/** The members that identify a card of version 0.3 or earlier. It has other members too. */
export interface OlderCard {
  /** Name of the agent. */
  readonly name: string;
  /** Address of the agent. */
  readonly url: string;
}

/**
 * Reads a card with the first codec that can. Some cards have the shapes of several versions: such a card gets the
 * interfaces of all of them. Throws the `InvalidResponse` of the version that the card seems to have.
 */
export function readCard(codecs: readonly Pick<Codec, "decodeCard">[], value: unknown): AgentCard {
  const errors: unknown[] = [];
  const spelled = respelled(value);
  const cards = codecs.flatMap((codec) => {
    try {
      return codec.decodeCard(structuredClone(spelled));
    } catch (thrown) {
      errors.push(thrown);
      return [];
    }
  });
  const [first, ...others] = cards;
  if (first === undefined) {
    const newest = typeof value !== "object" || value === null || "supportedInterfaces" in value;
    throw errors.at(newest ? 0 : -1);
  }
  const card = withSchemesOf(first, others);
  const known = new Set(card.supportedInterfaces.map(key));
  const more = others.flatMap((other) => other.supportedInterfaces).filter((each) => !known.has(key(each)));
  return more.length === 0 ? card : { ...card, supportedInterfaces: [...card.supportedInterfaces, ...more] };
}

function key({ url, protocolBinding, protocolVersion }: AgentInterface): string {
  return JSON.stringify([url, protocolBinding, protocolVersion.split(".", 2)]);
}

/** A binding whose services behave the same for every version (`Codec.adaptClient`). */
export function adapted(binding: ClientBinding, codecs: readonly Codec[]): ClientBinding {
  const known = byVersion(codecs);
  return {
    name: binding.name,
    versions: binding.versions,
    ...(binding.unusable !== undefined && { unusable: (url: string) => binding.unusable?.(url) }),
    ...(binding.origin !== undefined && {
      origin: (url: string, card: AgentCard) => binding.origin?.(url, card),
    }),
    open(target, version, host, card) {
      const service = binding.open(target, version, host, card);
      const codec = known.get(version);
      if (codec?.adaptClient === undefined) return service;
      return withCardElsewhere(codec.adaptClient(service), target.url, codec, host);
    },
  };
}

/** Reads the extended card with an HTTP GET where a server has no method for it, as servers of 0.2. */
function withCardElsewhere(service: AgentService, url: string, codec: Codec, host: ClientHost): AgentService {
  const { extendedCardPath: path } = codec;
  if (path === undefined || !URL.canParse(url)) return service;
  return {
    stream: (operation, request, context) => service.stream(operation, request, context),
    call<Name extends UnaryName>(operation: Name, request: UnaryOperations[Name]["request"], context: CallContext) {
      const reply = service.call(operation, request, context);
      if (operation !== "GetExtendedAgentCard") return reply;
      return reply.catch(async (thrown: unknown) => {
        const card = hasCode(thrown, "MethodNotFound")
          ? await cardElsewhere(url, path, codec, host, context)
          : undefined;
        if (card === undefined) throw thrown;
        return { payload: new Payload(card) } as Reply<never>;
      });
    },
  };
}

/** The extended card of a server of 0.2: beside the agent's address, below it, or at the root of its host. */
async function cardElsewhere(
  address: string,
  path: string,
  codec: Codec,
  host: ClientHost,
  context: CallContext,
): Promise<AgentCard | undefined> {
  const base = withoutSlashes(address);
  const urls = [new URL(`${base}/..${path}`).href, base + path, new URL(address).origin + path];
  for (const url of new Set(urls)) {
    const headers = await requestHeaders(host, { url, operation: "GetExtendedAgentCard" }, context, codec);
    headers["accept"] = "application/json";
    const answer = await sendRequest(host, { method: "GET", url, headers }, context);
    const text = await answer.text();
    const value = parseJson(answer, text);
    if (answer.status === 200 && value !== undefined) return codec.decodeCard(value);
    // A server that asks for credentials has the card at this URL.
    if (answer.status === 401 || answer.status === 403) throw refusal(answer, host.clock, url, text, undefined);
  }
  return undefined;
}
