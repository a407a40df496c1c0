import type { ByteBudget } from "@parley/a2a/internal/protocol/index";
import type { Room } from "../store/index.ts";

/** Memory for what one step reads. It is given back after the step. */
export class Reserved implements Room {
  readonly #budget: ByteBudget;
  readonly #owner: string;
  #bytes = 0;

  constructor(budget: ByteBudget, owner: string) {
    this.#budget = budget;
    this.#owner = owner;
  }

  async reserve(bytes: number): Promise<void> {
    this.end();
    await this.#budget.take(this.#owner, bytes);
    this.#bytes = bytes;
  }

  end(): void {
    if (this.#bytes > 0) this.#budget.give(this.#owner, this.#bytes);
    this.#bytes = 0;
  }
}
