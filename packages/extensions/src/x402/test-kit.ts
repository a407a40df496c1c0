import type { JsonObject } from "@parley/a2a/internal/model/index";
import type { Facilitator, FacilitatorRequest } from "./facilitator.ts";
import type { Wallet } from "./payer.ts";
import type { PaymentPayload, PaymentReceipt } from "./types.ts";

/* A facilitator and a wallet for tests. They sign nothing, and are deterministic. */

/** A fault of a test facilitator. `hang`: it does not answer until aborted. */
export type FacilitatorFault =
  | "throw"
  | "hang"
  | {
      /** It refuses with this reason. */
      readonly reason: string;
    };

/** Options of `testFacilitator()`. */
export interface TestFacilitatorOptions {
  /** Funds of wallets by address. Default: enough. */
  readonly funds?: Readonly<Record<string, bigint>>;
  /** Faults of successive `verify` calls. Later calls succeed. */
  readonly verify?: readonly (FacilitatorFault | undefined)[];
  /** The same for `settle`. `throwAfter`: the money moves, and the answer is lost. */
  readonly settle?: readonly (FacilitatorFault | "throwAfter" | undefined)[];
  /** Settles again under the same key, as a facilitator without idempotency does. Default false. */
  readonly forgetsKeys?: boolean;
}

/** A facilitator that records its calls. */
export interface TestFacilitator extends Facilitator {
  /** Every settlement that moved money, in order. */
  readonly settled: readonly PaymentReceipt[];
  /** Number of calls. */
  readonly calls: { readonly verify: number; readonly settle: number };
  /** Keys of the requested settlements, in order. */
  readonly keys: readonly string[];
}

/**
 * A facilitator for tests. It accepts signatures of `testWallet()`. It rejects invalid ones, missing funds and used
 * nonces with the reasons of public facilitators. Its options make it fail.
 *
 * @example
 * ```ts
 * const facilitator = testFacilitator({ settle: ["throwAfter"] });
 * ```
 */
export function testFacilitator(options: TestFacilitatorOptions = {}): TestFacilitator {
  const settled: PaymentReceipt[] = [];
  const keys: string[] = [];
  const calls = { verify: 0, settle: 0 };
  const outcomes = new Map<string, PaymentReceipt>();
  const used = new Set<string>();
  const funds = new Map(Object.entries(options.funds ?? {}));
  const problemOf = (request: FacilitatorRequest): string | undefined => {
    const { authorization, signature } = testPayload(request.payment);
    if (signature !== signatureOf(request, authorization)) return "invalid_exact_evm_payload_signature";
    if (used.has(`${authorization.from} ${authorization.nonce}`)) return "invalid_exact_evm_nonce_already_used";
    const has = funds.get(authorization.from);
    return has !== undefined && has < BigInt(authorization.value) ? "insufficient_funds" : undefined;
  };
  const pay = ({ payment }: FacilitatorRequest): PaymentReceipt => {
    const { from, nonce, value } = testPayload(payment).authorization;
    used.add(`${from} ${nonce}`);
    const has = funds.get(from);
    if (has !== undefined) funds.set(from, has - BigInt(value));
    const receipt = {
      success: true,
      transaction: `0x${settled.length + 1}${nonce.slice(2, 10)}`,
      network: payment.network,
      payer: from,
    };
    settled.push(receipt);
    return receipt;
  };
  return {
    settled,
    calls,
    keys,
    async verify(request) {
      const fault = options.verify?.[calls.verify];
      calls.verify += 1;
      const reason = (await failing(fault, request)) ?? problemOf(request);
      return reason === undefined ? { isValid: true } : { isValid: false, invalidReason: reason };
    },
    async settle(request) {
      const fault = options.settle?.[calls.settle];
      calls.settle += 1;
      keys.push(request.idempotencyKey);
      const before = options.forgetsKeys === true ? undefined : outcomes.get(request.idempotencyKey);
      if (before !== undefined) return before;
      const reason = (fault === "throwAfter" ? undefined : await failing(fault, request)) ?? problemOf(request);
      const { network } = request.requirements;
      const receipt =
        reason === undefined ? pay(request) : { success: false, errorReason: reason, network, transaction: "" };
      outcomes.set(request.idempotencyKey, receipt);
      if (fault === "throwAfter") throw new Error("The connection to the facilitator was lost");
      return receipt;
    },
  };
}

async function failing(
  fault: FacilitatorFault | undefined,
  { signal }: FacilitatorRequest,
): Promise<string | undefined> {
  if (fault === undefined) return undefined;
  if (typeof fault === "object") return fault.reason;
  if (fault === "throw") throw new Error("The facilitator does not answer");
  return new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

interface TestPayload {
  readonly signature: string;
  readonly authorization: {
    readonly from: string;
    readonly to: string;
    readonly value: string;
    readonly validAfter: string;
    readonly validBefore: string;
    readonly nonce: string;
  };
}

/** Payments of test wallets have this form. */
function testPayload({ payload }: PaymentPayload): TestPayload {
  return JSON.parse(JSON.stringify(payload)) as TestPayload;
}

/** Depends on the same values as a real signature: authorization, network and token. */
function signatureOf({ requirements }: Pick<FacilitatorRequest, "requirements">, authorization: unknown): string {
  const { network, asset } = requirements;
  const text = JSON.stringify([network, asset.toLowerCase(), authorization]);
  let hash = 0n;
  for (const character of text) hash = (hash * 131n + BigInt(character.codePointAt(0) ?? 0)) % (1n << 256n);
  return `0x${hash.toString(16).padStart(64, "0")}`;
}

/** Options of `testWallet()`. */
export interface TestWalletOptions {
  /** Its address. */
  readonly address?: string;
  /** Milliseconds since the Unix epoch. Default: the system clock. */
  readonly now?: () => number;
  /** Makes nonces. Default: 1, 2, … */
  readonly nonce?: () => bigint;
  /** Validity of a payment, in seconds. Default: the option's, or 600, limited by the payer's maximum. */
  readonly validFor?: number;
}

/** A wallet for tests. Only `testFacilitator()` accepts its signatures. */
export function testWallet(options: TestWalletOptions = {}): Wallet & { readonly signed: number } {
  const { address = "0x857b06519E91e3A54538791bDbb0E22373e36b66", now = () => Date.now() } = options;
  const wallet = {
    signed: 0,
    sign({ requirements, x402Version, maxTimeoutSeconds: limit = Infinity }: Parameters<Wallet["sign"]>[0]) {
      wallet.signed += 1;
      const { scheme, network, payTo, maxAmountRequired, maxTimeoutSeconds = Math.min(600, limit) } = requirements;
      const seconds = Math.floor(now() / 1000);
      const nonce = (options.nonce?.() ?? BigInt(wallet.signed)).toString(16).padStart(64, "0");
      const authorization = {
        from: address,
        to: payTo,
        value: maxAmountRequired,
        validAfter: String(Math.max(0, seconds - 60)),
        validBefore: String(seconds + (options.validFor ?? maxTimeoutSeconds)),
        nonce: `0x${nonce}`,
      };
      const payload: JsonObject = { signature: signatureOf({ requirements }, authorization), authorization };
      return { x402Version, scheme, network, payload };
    },
  };
  return wallet;
}
