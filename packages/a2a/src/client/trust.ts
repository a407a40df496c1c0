import type { Logger } from "../base/index.ts";
import type { CardCheck } from "../cards/port.ts";
import type { AgentCard } from "../model/index.ts";
import type { AgentService, CallContext, UnaryName, UnaryOperations } from "../protocol/index.ts";
import type { CachedCard, CardCache } from "./card.ts";
import type { ClientKit } from "./connect.ts";

/**
 * The trust of one client: every card that it takes is checked before it is used (A2A 1.0 §8.4.3), that of the agent, one out of the
 * cache, and the extended one. Signatures cover a card as it came, so the documents are kept beside the cards that were read.
 */
export class ClientTrust {
  readonly #kit: ClientKit;
  readonly #trust: CardCheck;
  readonly #logger: Logger;
  readonly #documents = new WeakMap<AgentCard, object>();
  #address: string | undefined;

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

  /** The cache, with the documents. A card that another client has put there without one is asked for again. */
  cache(inner: CardCache): CardCache {
    return {
      get: (url) => {
        const entry = inner.get(url);
        if (entry?.document === undefined) return undefined;
        this.#documents.set(entry.card, entry.document);
        return entry;
      },
      set: (url, entry: CachedCard) => {
        const document = this.#documents.get(entry.card);
        return inner.set(url, document === undefined ? entry : { ...entry, document });
      },
    };
  }

  /**
   * Checks a card.
   *
   * @throws A2AError `InvalidResponse` where it is not trusted, `Unavailable` where keys cannot be read now.
   */
  async check(card: AgentCard, named: URL | undefined): Promise<void> {
    this.#address = named?.href;
    await this.#approve(card);
  }

  /** The service, whose extended card is checked before anybody gets it. */
  wrap(service: AgentService): AgentService {
    const approve = (card: AgentCard): Promise<void> => this.#approve(card);
    return {
      stream: (operation, request, context) => service.stream(operation, request, context),
      async call<Name extends UnaryName>(
        operation: Name,
        request: UnaryOperations[Name]["request"],
        context: CallContext,
      ) {
        const reply = await service.call(operation, request, context);
        if (operation === "GetExtendedAgentCard") await approve(reply.payload.value as AgentCard);
        return reply;
      },
    };
  }

  async #approve(card: AgentCard): Promise<void> {
    const document = this.#documents.get(card);
    // A binding gives only the card that it has read, so it is written again, as each version writes it.
    const documents = document === undefined ? (this.#kit.encodeCard?.(card) ?? [card]) : [document];
    await this.#trust.check(documents, this.#address, this.#logger);
  }
}
