import type { PaymentPayload, PaymentRequirements } from "../../src/x402/index.ts";

/** A moment, in milliseconds since the Unix epoch. */
export const now: number = Date.UTC(2026, 0, 31, 12);

/** Of the specification (v0.1 §4.3). */
export const option: PaymentRequirements & { readonly resource: string } = {
  scheme: "exact",
  network: "base",
  resource: "https://api.example.com/generate-image",
  description: "Generate an image",
  mimeType: "application/json",
  outputSchema: {},
  asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bda02913",
  payTo: "0xServerWalletAddressHere",
  maxAmountRequired: "48240000",
  maxTimeoutSeconds: 600,
  extra: { name: "USD Coin", version: 2 },
};

/** A payment as wallets sign it for `exact` on an EVM network. `change`: members of the authorization. */
export function paymentOf(change: Readonly<Record<string, string>> = {}): PaymentPayload {
  return {
    x402Version: 1,
    scheme: "exact",
    network: "base",
    payload: {
      signature: "0xabc",
      authorization: {
        from: "0x789",
        to: option.payTo,
        value: option.maxAmountRequired,
        validAfter: "0",
        validBefore: String(now / 1000 + 300),
        nonce: "0xdef",
        ...change,
      },
    },
  };
}
