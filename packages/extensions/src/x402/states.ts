import type { PaymentErrorCode, PaymentStatus } from "./types.ts";

/* The states of a payment as data (v0.1 §6.1, v0.2 §7.1). */

/**
 * Where a payment may go from each state. Two moves are not in the diagrams of the specification, but in its text and its library: a payment
 * that cannot be verified fails at once (`PAYMENT_FAILED` in §7), and after a failure the agent may ask again (v0.1 §8, v0.2 §9).
 */
export const paymentMoves: Readonly<Record<PaymentStatus, readonly PaymentStatus[]>> = {
  "payment-required": ["payment-rejected", "payment-submitted"],
  "payment-submitted": ["payment-verified", "payment-failed"],
  "payment-verified": ["payment-completed", "payment-failed"],
  "payment-failed": ["payment-required"],
  "payment-rejected": [],
  "payment-completed": [],
};

/** Every state. */
export const paymentStatuses: readonly PaymentStatus[] = Object.keys(paymentMoves) as PaymentStatus[];

/** Every error code. */
export const paymentErrorCodes: readonly PaymentErrorCode[] = [
  "INSUFFICIENT_FUNDS",
  "INVALID_SIGNATURE",
  "EXPIRED_PAYMENT",
  "DUPLICATE_NONCE",
  "NETWORK_MISMATCH",
  "INVALID_AMOUNT",
  "SETTLEMENT_FAILED",
];

/** Whether a payment may go from one state to another. */
export function mayMovePayment(from: PaymentStatus, to: PaymentStatus): boolean {
  return paymentMoves[from].includes(to);
}

/** The states that a caller sets. All others are the agent's. */
export const clientStatuses: readonly PaymentStatus[] = ["payment-submitted", "payment-rejected"];
