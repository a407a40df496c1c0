import type { AgentCard, Client, ConnectOptions } from "@parley/a2a";
import type { Task } from "@parley/a2a/model";
import { toA2AError } from "@parley/a2a/internal/model/index";
import { ConversationStore, type ConversationAgent } from "./conversation.ts";
import { TaskFeed } from "./feed.ts";
import { isServer } from "./frame.ts";
import type { ConversationInit } from "./types.ts";

/** The state of an agent's card. */
export interface CardSnapshot {
  readonly card?: AgentCard;
  readonly error?: Error;
}

/** Maximum number of tasks, and of conversations, that stay in memory without a component. */
const maxIdle = 100;

/**
 * An agent for the hooks: its connection, and the state that components share. Create it once, outside of components. It connects when a component
 * needs it, and never on a server.
 *
 * @example
 * ```ts
 * const travel = new RemoteAgent("https://agents.example.com/travel");
 * ```
 */
export class RemoteAgent implements ConversationAgent {
  readonly #agent: string | URL | Client;
  readonly #options: ConnectOptions;
  readonly #feeds = new Map<string, TaskFeed>();
  readonly #conversations = new Map<string, ConversationStore>();
  readonly #listeners = new Set<() => void>();
  #client: Promise<Client> | undefined;
  #card: CardSnapshot;

  /**
   * @param agent - The agent's URL, or a client from `connect()` or `connectJsonRpc()`.
   * @param options - Options of `connect()`, for a URL.
   */
  constructor(agent: string | URL | Client, options: ConnectOptions = {}) {
    this.#agent = agent;
    this.#options = options;
    this.#card = isClient(agent) ? { card: agent.card } : {};
  }

  /** The agent's URL. */
  get name(): string {
    return isClient(this.#agent) ? this.#agent.chosen.url : String(this.#agent);
  }

  /**
   * The client of the agent, connected once. After a failure the next call retries.
   *
   * @throws A2AError the errors of `connect()`.
   */
  client(): Promise<Client> {
    this.#client ??= this.#connect().then(
      (client) => {
        this.#setCard({ card: client.card });
        return client;
      },
      (thrown: unknown) => {
        this.#client = undefined;
        this.#setCard({ ...this.#card, error: toA2AError(thrown) });
        throw thrown;
      },
    );
    return this.#client;
  }

  /** The store behind `useTask()`, for code outside of components. */
  task(task: string | Task): TaskFeed {
    const id = typeof task === "string" ? task : task.id;
    const feed = this.#feeds.get(id) ?? new TaskFeed(this, task);
    if (isServer()) return feed;
    keep(this.#feeds, id, feed);
    return feed;
  }

  /** The store behind `useConversation()`, for code outside of components. */
  conversation(init: ConversationInit = {}): ConversationStore {
    const id = init.id ?? init.contextId ?? init.taskId ?? "";
    const store = this.#conversations.get(id) ?? new ConversationStore(this, id, init);
    if (!isServer()) keep(this.#conversations, id, store);
    return store;
  }

  /** The state of the card. Returns the same object until it changes. */
  readonly getCard = (): CardSnapshot => this.#card;

  /** Uses a card from the server, unless the agent is already connected. */
  setCard(card: AgentCard): void {
    if (this.#client === undefined && this.#card.card === undefined && !isServer()) this.#card = { card };
  }

  /** Calls `listener` after each change of the card. Fetches the card if it is missing. */
  readonly subscribeCard = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#card.card === undefined && this.#card.error === undefined) this.retry();
    return () => this.#listeners.delete(listener);
  };

  /** Connects, or reconnects after an error. `useAgentCard()` reports the result. */
  readonly retry = (): void => {
    const { card, error } = this.#card;
    if (error !== undefined) this.#setCard(card === undefined ? {} : { card });
    this.client().catch(() => undefined);
  };

  async #connect(): Promise<Client> {
    const agent = this.#agent;
    if (isClient(agent)) return agent;
    // Most of the client is a separate chunk, which a page loads when it connects.
    const { connect } = await import("./connect.ts");
    const { card } = this.#card;
    if (card === undefined) return connect(agent, this.#options);
    // The agent's URL still determines who gets credentials. A client with `trust` fetches the card again, to verify its signatures.
    const cardCache = { get: () => ({ card, freshUntil: Infinity }), set: () => undefined };
    return connect(agent, { ...this.#options, cardCache });
  }

  #setCard(card: CardSnapshot): void {
    this.#card = card;
    for (const listener of this.#listeners) listener();
  }
}

/** Adds an entry as the newest one. Evicts the oldest one that no component shows. */
function keep<T extends { readonly isIdle: boolean }>(entries: Map<string, T>, id: string, entry: T): void {
  entries.delete(id);
  for (const [other, { isIdle }] of entries) {
    if (entries.size < maxIdle) break;
    if (isIdle) entries.delete(other);
  }
  entries.set(id, entry);
}

function isClient(agent: string | URL | Client): agent is Client {
  return typeof agent === "object" && "card" in agent;
}
