import type { Origin } from "./circuit.ts";
import type { Delivery } from "./delivery.ts";

/** Rows that a process holds: they wait for their turn, or are being delivered. */
const most = 1024;
const maxBytes = 4 << 20;

interface Held {
  readonly delivery: Delivery;
  readonly origin: Origin<Delivery>;
}

/** Whether there is a place. `later`: not for this row, but others have one. */
export type Place = "free" | "full" | "later";

/**
 * The rows that a process holds. Those of origins that do not answer take half of the places at most, and those of one owner half
 * of that: otherwise enough of them would leave none to the others.
 */
export class Places {
  readonly #held = new Map<string, Held>();
  #bytes = 0;
  /** Of rows whose origins are not trusted, at the last look: all of them, and by owner. */
  #untrusted: Usage = { rows: 0, bytes: 0 };
  #untrustedOf = new Map<string, Usage>();

  get size(): number {
    return this.#held.size;
  }

  /** Whether half of the places are free. */
  get isHalfFree(): boolean {
    return this.#held.size <= most / 2;
  }

  has(key: string): boolean {
    return this.#held.has(key);
  }

  /** A new look begins. Origins may have answered since the last one. */
  beginLook(): void {
    this.#untrusted = { rows: 0, bytes: 0 };
    this.#untrustedOf = new Map();
    for (const held of this.#held.values()) this.#count(held);
  }

  /** Whether a row may be held. */
  placeFor({ delivery, origin }: Held): Place {
    const { bytes, task } = delivery;
    if (!origin.trusted) {
      const own = this.#untrustedOf.get(task.owner) ?? { rows: 0, bytes: 0 };
      if (isOver(this.#untrusted, bytes, 1 / 2) || isOver(own, bytes, 1 / 4)) return "later";
    }
    return isOver({ rows: this.#held.size, bytes: this.#bytes }, bytes, 1) ? "full" : "free";
  }

  /** How many rows of origins that are not trusted are held. */
  get untrusted(): number {
    return this.#untrusted.rows;
  }

  add(key: string, held: Held): void {
    this.#held.set(key, held);
    this.#bytes += held.delivery.bytes;
    this.#count(held);
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
    this.#untrustedOf.set(task.owner, plus(this.#untrustedOf.get(task.owner), bytes));
  }
}

interface Usage {
  readonly rows: number;
  readonly bytes: number;
}

function plus({ rows, bytes }: Usage = { rows: 0, bytes: 0 }, more: number): Usage {
  return { rows: rows + 1, bytes: bytes + more };
}

/** Whether one row more is more than a share of all. */
function isOver({ rows, bytes }: Usage, more: number, share: number): boolean {
  return rows + 1 > most * share || bytes + more > maxBytes * share;
}
