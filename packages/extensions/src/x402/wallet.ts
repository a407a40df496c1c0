import type { PaymentPayload, PaymentRequirements } from "./types.ts";

/** What a wallet is asked to sign. */
export interface SignRequest {
  /** The option that was chosen. */
  readonly requirements: PaymentRequirements;
  /** The version of x402 that the agent speaks. */
  readonly x402Version: number;
  /**
   * For how many seconds the payment may be good at most. Options for longer are refused before; one that says nothing is signed for as long as
   * the wallet likes, within this. Absent: as the wallet likes.
   */
  readonly maxTimeoutSeconds?: number;
  /** Aborted when the payment is no longer wanted. */
  readonly signal?: AbortSignal;
}

/** Signs payments. Keys stay in it: neither an agent nor a model may have them (v0.1 §9). */
export interface Wallet {
  /** Signs a payment of exactly what the option says. Rejects where it does not want to. */
  sign(request: SignRequest): PaymentPayload | Promise<PaymentPayload>;
}
