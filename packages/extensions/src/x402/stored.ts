import type { JsonObject } from "@parley/a2a/internal/model/index";
import type { ExtensionRow, TurnRows } from "@parley/a2a/internal/protocol/index";
import {
  x402UriV01,
  type PaymentErrorCode,
  type PaymentPayload,
  type PaymentReceipt,
  type PaymentRequirements,
  type PaymentStatus,
} from "./types.ts";

/* Offers, payments and receipts are stored as rows of their task, so that another process can continue after a crash. */

export interface StoredCharge {
  readonly status: PaymentStatus;
  /** The offer, and its time in milliseconds since the Unix epoch. */
  readonly accepts: readonly PaymentRequirements[];
  readonly offeredAt: number;
  /** The other members of the cart, in an embedded flow. */
  readonly cart?: JsonObject;
  /** The turn that set this status; for `payment-submitted`, the turn that asked for the payment. */
  readonly turn: number;
  /** The last turn that asked for the payment. */
  readonly asked?: number;
  /** Number of failed payments. */
  readonly failures: number;
  readonly problem?: { readonly code: PaymentErrorCode; readonly reason: string };
  /** The message that submitted a payment. */
  readonly messageId?: string;
  /** The verified payment. */
  readonly payment?: StoredPayment;
}

export interface StoredPayment {
  readonly payload: PaymentPayload;
  readonly requirements: PaymentRequirements;
  /** Idempotency key of the settlement, the same for every attempt. */
  readonly key: string;
  /** The facilitator may have been asked to settle it. */
  readonly settling?: true;
}

const chargePrefix = "charge ";
/** Each receipt has its own row, because one row cannot hold all of them. */
const receiptPrefix = "receipt ";
/** An order has its own row, because it is written once, and read by each run. */
const orderPrefix = "order ";
/** Maximum number of receipts of a task: every message about a payment has all of them. */
export const maxReceipts = 20;

export interface StoredPayments {
  readonly charges: ReadonlyMap<string, StoredCharge>;
  readonly receipts: readonly PaymentReceipt[];
  readonly orders: ReadonlyMap<string, unknown>;
}

export function paymentsOf(rows: readonly ExtensionRow[]): StoredPayments {
  const charges = new Map<string, StoredCharge>();
  const receipts: PaymentReceipt[] = [];
  const orders = new Map<string, unknown>();
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

export function chargeRow(id: string, charge: StoredCharge): { readonly key: string; readonly value: string } {
  return { key: chargePrefix + id, value: JSON.stringify(charge) };
}

interface StoredOrder {
  readonly order?: unknown;
}

interface StoredWith {
  readonly receipt?: PaymentReceipt | undefined;
  readonly offer?: StoredOrder | undefined;
}

/** States in which a charge still expects a receipt. */
const openStates: ReadonlySet<PaymentStatus> = new Set<PaymentStatus>([
  "payment-required",
  "payment-submitted",
  "payment-verified",
]);

/** The payments of a turn's task. Stored rows are read once. */
export class PaymentRows {
  readonly #rows: TurnRows;
  #read: Promise<void> | undefined;
  #charges = new Map<string, StoredCharge>();
  #receipts: readonly PaymentReceipt[] = [];
  #orders = new Map<string, unknown>();

  constructor(rows: TurnRows) {
    this.#rows = rows;
  }

  read(): Promise<void> {
    return (this.#read ??= this.#rows.read().then((rows) => {
      const { charges, receipts, orders } = paymentsOf(rows);
      this.#charges = new Map(charges);
      this.#orders = new Map(orders);
      this.#receipts = receipts;
    }));
  }

  /** The receipts of all payment attempts. */
  get receipts(): readonly PaymentReceipt[] {
    return this.#receipts;
  }

  order(id: string): unknown {
    return this.#orders.get(id);
  }

  /**
   * Whether a new offer has room for its receipt. Every open charge reserves one: a settlement without a receipt would
   * be forgotten.
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

  /** The charge whose payment a message submitted, if still pending. */
  submittedBy(messageId: string): readonly [id: string, charge: StoredCharge] | undefined {
    return [...this.#charges].find(([, each]) => each.status === "payment-submitted" && each.messageId === messageId);
  }

  /**
   * Stores a charge, with a new receipt and its order if given. Resolves once it and all earlier events are durable.
   */
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

  /** Claims a name for this turn, across all tasks and both versions of the extension. */
  claim(name: string, until: number): Promise<boolean> {
    return this.#rows.claim(name, until, x402UriV01);
  }
}
