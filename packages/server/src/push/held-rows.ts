import type { Origin } from "./circuit.ts";
import type { Delivery } from "./delivery.ts";

/** Rows that a process holds: they wait for their turn, or are being delivered. */
const maxRows = 1024;
const maxBytes = 4 << 20;

interface Held {
  readonly delivery: Delivery;
  readonly origin: Origin<Delivery>;
}

interface Usage {
  readonly rows: number;
  readonly bytes: number;
}

const unused: Usage = { rows: 0, bytes: 0 };

/**
 * The rows that a process holds. Those of untrusted origins take half of it at most, and those of one owner half of that, so one owner's
 * dead endpoints cannot starve another's.
 */
export class HeldRows {
  readonly #held = new Map<string, Held>();
  #bytes = 0;
  /** Rows of untrusted origins, counted at the last poll: all of them, and by owner. */
  #untrusted = unused;
  #untrustedOf = new Map<string, Usage>();

  get size(): number {
    return this.#held.size;
  }

  get isHalfFree(): boolean {
    return this.#held.size <= maxRows / 2;
  }

  /** Rows of untrusted origins. */
  get untrusted(): number {
    return this.#untrusted.rows;
  }

  has(key: string): boolean {
    return this.#held.has(key);
  }

  /** Counts anew: origins may have answered since the last poll. */
  beginPoll(): void {
    this.#untrusted = unused;
    this.#untrustedOf = new Map();
    for (const held of this.#held.values()) this.#count(held);
  }

  /** Holds a row, if there is room. `later`: not for this row, but for others. */
  add(key: string, held: Held): "held" | "full" | "later" {
    const { bytes, task } = held.delivery;
    if (!held.origin.trusted) {
      const own = this.#untrustedOf.get(task.owner) ?? unused;
      if (exceeds(this.#untrusted, bytes, 1 / 2) || exceeds(own, bytes, 1 / 4)) return "later";
    }
    if (exceeds({ rows: this.#held.size, bytes: this.#bytes }, bytes, 1)) return "full";
    this.#held.set(key, held);
    this.#bytes += bytes;
    this.#count(held);
    return "held";
  }

  delete(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    this.#held.delete(key);
    this.#bytes -= held.delivery.bytes;
  }

  #count({ delivery: { bytes, task }, origin }: Held): void {
    if (origin.trusted) return;
    this.#untrusted = plus(this.#untrusted, bytes);
    this.#untrustedOf.set(task.owner, plus(this.#untrustedOf.get(task.owner) ?? unused, bytes));
  }
}

function plus({ rows, bytes }: Usage, more: number): Usage {
  return { rows: rows + 1, bytes: bytes + more };
}

/** Whether one more row would exceed a share of all. */
function exceeds({ rows, bytes }: Usage, more: number, share: number): boolean {
  return rows + 1 > maxRows * share || bytes + more > maxBytes * share;
}
