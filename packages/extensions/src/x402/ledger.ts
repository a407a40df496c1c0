import { memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { A2AError, type Message } from "@parley/a2a/internal/model/index";
import { maxCart, maxOption, maxPayment } from "./schemas.ts";
import type { PaymentRequirements } from "./types.ts";

/* What a payer remembers of what it has paid. */

/** A payment, as a payer remembers it. */
export interface SentPayment {
  /** The message that pays. */
  readonly message: Message;
  /** The option that was chosen. */
  readonly requirements: PaymentRequirements;
}

/** Remembers what was paid, so that nothing is paid twice. Keep it in a database where a payer lives longer than a process. */
export interface PaymentLedger {
  /**
   * Keeps the payment of a task, unless there is one: then that one is returned. It has to be stored when this resolves: the
   * message is sent after that, and is not sent where this rejects.
   */
  keep(task: string, payment: SentPayment): SentPayment | Promise<SentPayment>;
  /** The payment of a task. */
  find(task: string): SentPayment | undefined | Promise<SentPayment | undefined>;
  /** Whether another payment can be kept. It is asked before a payment is signed. Default: there is room. */
  hasRoom?(): boolean | Promise<boolean>;
}

/** Options of `memoryLedger()`. */
export interface MemoryLedgerOptions {
  /** Memory that the payments may take, in bytes. Default 16 MiB, for about 4,000 of them. */
  readonly bytes?: number;
}

/** What one payment may take, in bytes: the payment, the option and the cart are bounded, and ids take little besides. Texts have two bytes a unit. */
const largest = 2 * (maxPayment + maxOption + maxCart + (8 << 10));

/**
 * A ledger in memory, for clients that end with their process. It forgets nothing, since a payment that is forgotten could be made again. When
 * it is full, nothing more is paid: the payer refuses with `full` before it signs, and `keep()` throws `TooManyRequests`.
 *
 * @throws TypeError for a bound without room for one payment.
 */
export function memoryLedger({ bytes = 16 << 20 }: MemoryLedgerOptions = {}): PaymentLedger {
  if (!(bytes >= largest)) throw new TypeError(`bytes must be at least ${largest}, the room of one payment`);
  const payments = new Map<string, string>();
  let taken = 0;
  const find = (task: string): SentPayment | undefined => {
    const text = payments.get(task);
    return text === undefined ? undefined : (JSON.parse(text) as SentPayment);
  };
  return {
    keep(task, payment) {
      const before = find(task);
      if (before !== undefined) return before;
      // As text: its size is known, and nobody changes it later.
      const text = JSON.stringify(payment);
      const own = memoryOf(task, text);
      if (own > largest || taken + own > bytes)
        throw new A2AError("TooManyRequests", "The ledger has no room for this payment");
      payments.set(task, text);
      taken += own;
      return payment;
    },
    find,
    hasRoom: () => taken + largest <= bytes,
  };
}
