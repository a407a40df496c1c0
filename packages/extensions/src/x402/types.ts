import type { JsonObject } from "@parley/a2a/internal/model/index";
import {
  boolean,
  integer,
  list,
  object,
  oneName,
  optional,
  required,
  satisfying,
  type Schema,
  string,
  struct,
} from "@parley/a2a/internal/model/schema";
import { atMost, text } from "../shared/values.ts";

/* The x402 payments extension (a2a-x402 v0.1 and v0.2), and the x402 objects that it carries. */

/** URI of version 0.1, which most agents declare. */
export const x402UriV01 = "https://github.com/google-a2a/a2a-x402/v0.1";

/** URI of version 0.2, which adds payments inside other protocols. */
export const x402UriV02 = "https://github.com/google-agentic-commerce/a2a-x402/blob/main/spec/v0.2";

/** The version of x402 that is offered. */
export const x402Version = 1;

/** Keys in the metadata of messages (v0.2 §7). */
export const x402Keys = {
  status: "x402.payment.status",
  required: "x402.payment.required",
  payload: "x402.payment.payload",
  receipts: "x402.payment.receipts",
  error: "x402.payment.error",
} as const;

/** All states. */
export const paymentStatuses = [
  "payment-required",
  "payment-submitted",
  "payment-verified",
  "payment-failed",
  "payment-rejected",
  "payment-completed",
] as const;

/** State of a payment, in the metadata of every message about it (v0.2 §7). */
export type PaymentStatus = (typeof paymentStatuses)[number];

/** All error codes. */
export const paymentErrorCodes = [
  "INSUFFICIENT_FUNDS",
  "INVALID_SIGNATURE",
  "EXPIRED_PAYMENT",
  "DUPLICATE_NONCE",
  "NETWORK_MISMATCH",
  "INVALID_AMOUNT",
  "SETTLEMENT_FAILED",
] as const;

/** Why a payment failed (v0.2 §9.1). Other agents may have other codes. */
export type PaymentErrorCode = (typeof paymentErrorCodes)[number];

/** One way to pay: `PaymentRequirements` of x402. */
export interface PaymentRequirements {
  /** The payment scheme, such as `exact`. */
  readonly scheme: string;
  /** The network, such as `base`. */
  readonly network: string;
  /** The token: the address of its contract. */
  readonly asset: string;
  /** The payee: the address of a wallet. */
  readonly payTo: string;
  /** The amount in the smallest unit of the token, in decimal digits. */
  readonly maxAmountRequired: string;
  /** The purchased good. */
  readonly resource?: string;
  /** Description for people. */
  readonly description?: string;
  /** Media type of the result. */
  readonly mimeType?: string;
  /** Schema of the result. */
  readonly outputSchema?: JsonObject;
  /** Validity of the offer, in seconds. */
  readonly maxTimeoutSeconds?: number;
  /** Other data of the scheme, such as `name` and `version` of the token for EIP-712. */
  readonly extra?: JsonObject;
}

/** An offer: `x402PaymentRequiredResponse` of x402. */
export interface PaymentRequiredResponse {
  /** The version of x402. */
  readonly x402Version: number;
  /** The ways to pay. The client chooses one. */
  readonly accepts: readonly PaymentRequirements[];
  /** Reason, for people. */
  readonly error?: string;
}

/** A signed payment: `PaymentPayload` of x402. */
export interface PaymentPayload {
  /** The version of x402. */
  readonly x402Version: number;
  /** The scheme of the option that was chosen. */
  readonly scheme: string;
  /** Its network. */
  readonly network: string;
  /** The signed data. Its form depends on scheme and network. */
  readonly payload: JsonObject;
  /** The option, if the wallet repeats it. It is compared member by member. */
  readonly accepted?: PaymentRequirements;
}

/** Outcome of a settlement: `SettleResponse` of x402. */
export interface PaymentReceipt {
  /** Whether the money has moved. */
  readonly success: boolean;
  /** The transaction on the network, or `""`. */
  readonly transaction?: string;
  /** The network. */
  readonly network?: string;
  /** The paying wallet. */
  readonly payer?: string;
  /** Why it failed. */
  readonly errorReason?: string;
}

/**
 * Transitions of a payment (v0.1 §6.1, v0.2 §7.1). Two of them appear only in the specification's prose and the library: a payment that
 * cannot be verified fails immediately (`PAYMENT_FAILED` in §7), and after a failure the agent may ask again (v0.1 §8, v0.2 §9).
 */
export const paymentMoves: Readonly<Record<PaymentStatus, readonly PaymentStatus[]>> = {
  "payment-required": ["payment-rejected", "payment-submitted"],
  "payment-submitted": ["payment-verified", "payment-failed"],
  "payment-verified": ["payment-completed", "payment-failed"],
  "payment-failed": ["payment-required"],
  "payment-rejected": [],
  "payment-completed": [],
};

/** Whether a payment may change from one state to another. */
export function mayMovePayment(from: PaymentStatus, to: PaymentStatus): boolean {
  return paymentMoves[from].includes(to);
}

/** The states that a caller sets; the agent sets all others. */
export const clientStatuses: readonly PaymentStatus[] = ["payment-submitted", "payment-rejected"];

/* Schemas of the metadata. `null` means absent, because the Python library writes it. */

/** Maximum number of options in an offer. */
export const maxOptions = 16;

/**
 * Largest option that a payer pays, and largest cart that it reads, in bytes. Parley's agents write at most 8 KiB in
 * total.
 */
export const maxOption: number = 16 << 10;
export const maxCart: number = 32 << 10;

const name = text(256);
const anyText = text(2048, 0);
const anyObject: Schema<JsonObject> = struct;

/** Decimal digits of a 256-bit number. */
const amount = satisfying(string, "must be a whole number in decimal digits, as text", (digits) =>
  /^\d{1,78}$/.test(digits),
);

export const statusSchema: Schema<PaymentStatus> = oneName(paymentStatuses);

export const requirementsSchema: Schema<PaymentRequirements> = object<PaymentRequirements>({
  scheme: required(name),
  network: required(name),
  asset: required(name),
  payTo: required(name),
  maxAmountRequired: required(amount),
  resource: optional(anyText),
  description: optional(anyText),
  mimeType: optional(name),
  outputSchema: optional(anyObject),
  maxTimeoutSeconds: optional(integer(0)),
  extra: optional(anyObject),
});

const options = satisfying(
  list(requirementsSchema, "must not be empty"),
  `must not have more than ${maxOptions} options`,
  ({ length }) => length <= maxOptions,
);

export const requiredSchema: Schema<PaymentRequiredResponse> = object<PaymentRequiredResponse>({
  x402Version: required(integer(1)),
  accepts: required(options),
  error: optional(anyText),
});

/** Largest signed payment, in bytes. It is stored in a row together with its offer. */
const maxPayload = 8192;

const signed = atMost(maxPayload, anyObject);

/** Largest payment as a whole, in bytes. The repeated option may have members of any size. */
export const maxPayment: number = 12 << 10;

export const payloadSchema: Schema<PaymentPayload> = atMost(
  maxPayment,
  object<PaymentPayload>({
    x402Version: required(integer(1)),
    scheme: required(name),
    network: required(name),
    payload: required(signed),
    accepted: optional(requirementsSchema),
  }),
);

export const receiptSchema: Schema<PaymentReceipt> = object<PaymentReceipt>({
  success: required(boolean),
  transaction: optional(anyText),
  network: optional(text(256, 0)),
  payer: optional(text(256, 0)),
  errorReason: optional(anyText),
});

export const receiptsSchema: Schema<readonly PaymentReceipt[]> = list(receiptSchema);

export const errorSchema: Schema<string> = text(256);
