import type { Logger } from "../base/index.ts";
import type { CardCheck } from "../cards/port.ts";
import type { AgentCard } from "../model/index.ts";
import {
  type AgentService,
  type CallContext,
  Payload,
  type UnaryName,
  type UnaryOperations,
} from "../protocol/index.ts";
import type { CardCache } from "./card.ts";
import { type ClientKit, decoded } from "./connect.ts";

/**
 * The trust of one client: it checks every card before it is used (A2A 1.0 §8.4.3), that of the agent, one out of the cache, and the
 * extended one. Signatures cover documents, so these are kept beside the cards that were read from them. The client uses the card that
 * is read from what the signatures cover, and nothing else of the document.
 */
export class ClientTrust {
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

  /** The kit, which keeps what it reads. */
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

  /** Whether the card that was refused last is one out of the cache. */
  get refusedCached(): boolean {
    return this.#refusedCached;
  }

  /** The cache. A card without its document, which somebody else has put there, is asked for again. */
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
   * @throws A2AError `InvalidResponse` where it is not trusted, `Unavailable` where keys cannot be read now.
   */
  async check(card: AgentCard, named: URL | undefined): Promise<AgentCard> {
    this.#address = named?.href;
    this.#refusedCached = this.#isCached;
    const used = await this.#approve(card);
    this.#refusedCached = false;
    return used;
  }

  /** The service, whose extended card is checked before anybody gets it. */
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
        if (operation !== "GetExtendedAgentCard") return reply;
        const card = await approve(reply.payload.value as AgentCard);
        return { ...reply, payload: new Payload(card) };
      },
    };
  }

  async #approve(card: AgentCard): Promise<AgentCard> {
    const document = this.#documents.get(card) ?? this.#kit.documentOf?.(card);
    // A binding without JSON gives only the card, so it is written again, as each version writes it.
    const [first = card, ...others] = document === undefined ? (this.#kit.encodeCard?.(card) ?? [card]) : [document];
    const used = await this.#trust.check([first, ...others], this.#address, this.#logger);
    return decoded(this.#kit, used);
  }
}
