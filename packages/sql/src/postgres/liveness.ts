import type { PoolClientLike } from "./pool.ts";

/** Milliseconds without an answer, after which a connection is asked whether it is there before it is used. */
const doubtAfter = 5000;

/**
 * When the connections of a pool last answered. A NAT, a firewall or a machine that is gone drops connections without telling anybody:
 * whoever sends on one waits for as long as his call lasts. Where one of them was silent, those that have answered nothing since are not used either.
 */
export class Liveness {
  readonly #answered = new WeakMap<PoolClientLike, number>();
  /** When a statement was sent that was not answered. */
  #silent = -Infinity;

  /** Whether nobody knows if the connection of a client is there. A new one is. */
  isDoubtful(client: PoolClientLike): boolean {
    const at = this.#answered.get(client);
    return at !== undefined && (this.isLost(client) || performance.now() - at > doubtAfter);
  }

  /** Whether another connection was silent after this one had last answered. */
  isLost(client: PoolClientLike): boolean {
    return (this.#answered.get(client) ?? Infinity) < this.#silent;
  }

  heard(client: PoolClientLike): void {
    this.#answered.set(client, performance.now());
  }

  /** A statement that was sent then has no answer. */
  wasSilent(sent: number): void {
    this.#silent = Math.max(this.#silent, sent);
  }
}
