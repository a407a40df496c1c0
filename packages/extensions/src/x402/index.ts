/**
 * The x402 payments extension (a2a-x402 v0.1 and v0.2): agents that are paid, and clients that pay.
 * @packageDocumentation
 */

export { x402, type Payments, type X402Extension, type X402Options } from "./extension.ts";
export { PaymentRequired, type ChargeInit, type PaymentOption, type Work } from "./price.ts";
export {
  httpFacilitator,
  type Facilitator,
  type FacilitatorRequest,
  type HttpFacilitatorOptions,
  type Verification,
} from "./facilitator.ts";
export {
  mayMovePayment,
  paymentErrorCodes,
  paymentMoves,
  paymentStatuses,
  x402Keys,
  x402UriV01,
  x402UriV02,
  type PaymentErrorCode,
  type PaymentPayload,
  type PaymentReceipt,
  type PaymentRequiredResponse,
  type PaymentRequirements,
  type PaymentStatus,
} from "./types.ts";
export {
  memoryLedger,
  type MemoryLedgerOptions,
  type PaymentLedger,
  type SentPayment,
  createPayer,
  payWith,
  PaymentRefused,
  type Paid,
  type Payer,
  type PayerOptions,
  type PayingClient,
  type PaymentLimit,
  type SignRequest,
  type Wallet,
} from "./payer.ts";
export { readPayment, type PaymentState } from "./read.ts";
export {
  testFacilitator,
  testWallet,
  type FacilitatorFault,
  type TestFacilitator,
  type TestFacilitatorOptions,
  type TestWalletOptions,
} from "./test-kit.ts";
