import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";
import type { ExtensionRow, TurnRows } from "@parley/a2a/internal/protocol/index";
import {
  x402UriV01,
  type PaymentErrorCode,
  type PaymentPayload,
  type PaymentReceipt,
  type PaymentRequirements,
  type PaymentStatus,
} from "./types.ts";

/*
 * What is kept of payments, as rows of the task: what was offered, what was paid, and the receipts. So another process, or the same one
 * after a restart, goes on where the last one was.
 */

/** A charge of a task. */
export interface StoredCharge {
  readonly status: PaymentStatus;
  /** What was offered, and when: milliseconds since the Unix epoch. */
  readonly accepts: readonly PaymentRequirements[];
  readonly offeredAt: number;
  /** The other members of the cart, in an embedded flow. */
  readonly cart?: JsonObject;
  /** The turn in which it got this status. For `payment-submitted`: the one that had asked. */
  readonly turn: number;
  /** The turn that has asked for it last. */
  readonly asked?: number;
  /** How many payments of it have failed. */
  readonly failures: number;
  /** Why the last one has. */
  readonly problem?: { readonly code: PaymentErrorCode; readonly reason: string };
  /** Of a payment that was submitted: its message. */
  readonly messageId?: string;
  /** Of a payment that was verified. */
  readonly payment?: StoredPayment;
}

/** A payment that was verified. */
export interface StoredPayment {
  readonly payload: PaymentPayload;
  /** The option that it is for. */
  readonly requirements: PaymentRequirements;
  /** Names its settlement: the same for every attempt. */
  readonly key: string;
  /** The facilitator may have been asked to settle it. */
  readonly settling?: true;
}

const chargePrefix = "charge ";
/** Each receipt has a row of its own, since together they may be larger than a row. */
const receiptPrefix = "receipt ";
/** What was priced has a row of its own: it is written once, and read again by each run. */
const orderPrefix = "order ";
/** Most receipts of a task: every message about a payment has all of them, and a task has a limited number of rows. */
export const maxReceipts = 20;

/** The rows of a task. */
export interface StoredPayments {
  readonly charges: ReadonlyMap<string, StoredCharge>;
  readonly receipts: readonly PaymentReceipt[];
  /** What each charge was priced for. */
  readonly orders: ReadonlyMap<string, JsonValue>;
}

/** Reads rows. */
export function paymentsOf(rows: readonly ExtensionRow[]): StoredPayments {
  const charges = new Map<string, StoredCharge>();
  const receipts: PaymentReceipt[] = [];
  const orders = new Map<string, JsonValue>();
  for (const { key, value } of rows) {
    if (key.startsWith(receiptPrefix)) receipts.push(JSON.parse(value) as PaymentReceipt);
    else if (key.startsWith(chargePrefix)) {
      charges.set(key.slice(chargePrefix.length), JSON.parse(value) as StoredCharge);
    } else if (key.startsWith(orderPrefix)) {
      const { order } = JSON.parse(value) as StoredOrder;
      if (order !== undefined) orders.set(key.slice(orderPrefix.length), order);
    }
  }
  return { charges, receipts, orders };
}

/** The row of a charge. */
export function chargeRow(id: string, charge: StoredCharge): { readonly key: string; readonly value: string } {
  return { key: chargePrefix + id, value: JSON.stringify(charge) };
}

/** What an offer is for. */
interface StoredOrder {
  readonly order?: JsonValue | undefined;
}

/** What is stored together with a charge. */
interface StoredWith {
  readonly receipt?: PaymentReceipt | undefined;
  /** Of a new offer. */
  readonly offer?: StoredOrder | undefined;
}

/** A charge in these has no receipt yet that is its last one. */
const openStates: ReadonlySet<PaymentStatus> = new Set<PaymentStatus>([
  "payment-required",
  "payment-submitted",
  "payment-verified",
]);

/** The payments of the task of a turn. What was stored before is read once. */
export class PaymentRows {
  readonly #rows: TurnRows;
  #read: Promise<void> | undefined;
  #charges = new Map<string, StoredCharge>();
  #receipts: readonly PaymentReceipt[] = [];
  #orders = new Map<string, JsonValue | undefined>();

  constructor(rows: TurnRows) {
    this.#rows = rows;
  }

  /** Resolves when what is stored is known. */
  read(): Promise<void> {
    return (this.#read ??= this.#rows.read().then((rows) => {
      const { charges, receipts, orders } = paymentsOf(rows);
      this.#charges = new Map(charges);
      this.#orders = new Map(orders);
      this.#receipts = receipts;
    }));
  }

  /** Every attempt to settle a payment of the task so far, as far as they were read. */
  get receipts(): readonly PaymentReceipt[] {
    return this.#receipts;
  }

  /** What a charge was priced for. */
  order(id: string): JsonValue | undefined {
    return this.#orders.get(id);
  }

  /**
   * Whether an offer of a charge has a place for its receipt. A settlement whose receipt has none would be forgotten, so each open charge has one
   * kept for it.
   *
   * @param taken - Receipts that are stored together with the offer.
   */
  hasPlace(id: string, taken = 0): boolean {
    const others = [...this.#charges].filter(([other, { status }]) => other !== id && openStates.has(status));
    return this.#receipts.length + taken + others.length < maxReceipts;
  }

  charge(id: string): StoredCharge | undefined {
    return this.#charges.get(id);
  }

  /** The charge that a message has submitted a payment for, where nothing has become of it yet. */
  submittedBy(messageId: string): readonly [id: string, charge: StoredCharge] | undefined {
    return [...this.#charges].find(([, each]) => each.status === "payment-submitted" && each.messageId === messageId);
  }

  /** Resolves when the charge is stored, with a new receipt and what it is for where there is one, and with it all events before. */
  async store(id: string, charge: StoredCharge, { receipt, offer }: StoredWith = {}): Promise<StoredCharge> {
    const row = (key: string, value: string) => ({ op: "set", key, value }) as const;
    const { key, value } = chargeRow(id, charge);
    const number = this.#receipts.length + 1;
    await this.#rows.store([
      row(key, value),
      ...(receipt === undefined ? [] : [row(`${receiptPrefix}${number}`, JSON.stringify(receipt))]),
      ...(offer === undefined ? [] : [row(orderPrefix + id, JSON.stringify(offer))]),
    ]);
    this.#charges.set(id, charge);
    if (receipt !== undefined) this.#receipts = [...this.#receipts, receipt];
    if (offer !== undefined) this.#orders.set(id, offer.order);
    return charge;
  }

  /** Takes a name for this turn, among all tasks of the agent, in whichever version they speak. */
  claim(name: string, until: number): Promise<boolean> {
    return this.#rows.claim(name, until, x402UriV01);
  }
}
