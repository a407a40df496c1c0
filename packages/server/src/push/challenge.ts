import { A2AError } from "@parley/a2a/internal/model/index";
import type { FetchFor } from "./fetches.ts";

/**
 * Asks receivers whether they want the events: each gets `{"challenge":"…"}` by POST and answers with the same. Nobody can then
 * register the address of somebody else (A2A 1.0 §13.2). The request has no secrets, because it may reach that somebody.
 */
export class Challenges {
  readonly #fetchFor: FetchFor;
  readonly #most: number;
  #running = 0;

  /** @param most - Most requests at a time. */
  constructor(fetchFor: FetchFor, most: number) {
    this.#fetchFor = fetchFor;
    this.#most = most;
  }

  /** Whether a receiver answers as it has to. Rejects with `Unavailable` where too many requests are under way. */
  async isAnswered(url: string, scheme: string | undefined): Promise<boolean> {
    if (this.#running >= this.#most) {
      throw new A2AError("Unavailable", "The server is asking too many other webhooks", { retryAfter: 1 });
    }
    this.#running += 1;
    try {
      return await this.#ask(url, scheme);
    } catch {
      // The reason stays here: it would tell the caller about networks that only the server sees.
      return false;
    } finally {
      this.#running -= 1;
    }
  }

  async #ask(url: string, scheme: string | undefined): Promise<boolean> {
    const challenge = crypto.randomUUID();
    const response = await this.#fetchFor(scheme)(url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ challenge }),
    });
    // Read in any case, because the connection is released after that.
    const text = await response.text();
    const answer: unknown = response.ok ? JSON.parse(text) : undefined;
    return typeof answer === "object" && answer !== null && "challenge" in answer && answer.challenge === challenge;
  }
}
