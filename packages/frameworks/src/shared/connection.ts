import { connect, type Client, type ConnectOptions } from "@parley/a2a";

/** The agent of a front end: a client, or a URL to connect to with the first message. */
export class Connection {
  readonly #agent: string | Client;
  readonly #options: ConnectOptions | undefined;
  #client: Promise<Client> | undefined;

  constructor(agent: string | Client, options: ConnectOptions | undefined) {
    this.#agent = agent;
    this.#options = options;
  }

  client(): Promise<Client> {
    if (typeof this.#agent !== "string") return Promise.resolve(this.#agent);
    this.#client ??= connect(this.#agent, this.#options).catch((error: unknown) => {
      // The next message retries.
      this.#client = undefined;
      throw error;
    });
    return this.#client;
  }
}
