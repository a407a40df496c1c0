import { plain } from "@parley/a2a/internal/base/display";
import { withoutSlashes } from "@parley/a2a/internal/base/index";
import { A2AError, type JsonValue } from "@parley/a2a/internal/model/index";
import { boolean, object, optional, required, string } from "@parley/a2a/internal/model/schema";
import { guardedFetch, type GuardedFetch } from "@parley/a2a/internal/net/index";
import type { ExtensionTurn } from "@parley/a2a/internal/protocol/index";
import { digestOf, fitting } from "../shared/values.ts";
import {
  receiptSchema,
  type PaymentErrorCode,
  type PaymentPayload,
  type PaymentReceipt,
  type PaymentRequirements,
} from "./types.ts";
import { matchPayment, nonceNames, type PaymentProblem } from "./match.ts";
import type { PaymentRows, StoredCharge, StoredPayment } from "./stored.ts";

/** A payment, and the option it is for. */
export interface FacilitatorRequest {
  /** The payment as the client sent it. */
  readonly payment: PaymentPayload;
  /** The option as the agent offered it. */
  readonly requirements: PaymentRequirements;
  /** Aborted when the answer is no longer needed. */
  readonly signal?: AbortSignal;
}

/** A facilitator's verdict on a payment. */
export interface Verification {
  /** Whether it can be settled. */
  readonly isValid: boolean;
  /** Why not. */
  readonly invalidReason?: string;
  /** The payer. */
  readonly payer?: string;
}

/** Verifies and settles payments. */
export interface Facilitator {
  /** Checks a payment without changing anything. Rejects if the answer is unknown. */
  verify(request: FacilitatorRequest): Promise<Verification>;
  /**
   * Moves the money. After an unknown outcome, such as a crash, it is called again with the same key: a key must never
   * pay twice, and must return its first outcome. Rejects if the outcome is unknown.
   */
  settle(request: FacilitatorRequest & { readonly idempotencyKey: string }): Promise<PaymentReceipt>;
}

/** Options of `httpFacilitator()`. */
export interface HttpFacilitatorOptions {
  /** Headers of each request, such as an API key. */
  readonly headers?: () => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
  /** Calls the facilitator. Default: only public `https:` addresses, with a timeout of 30 seconds. */
  readonly fetch?: GuardedFetch;
}

/**
 * A facilitator with the public HTTP API of x402: `POST /verify` and `POST /settle`. The header `Idempotency-Key` names
 * a settlement. Facilitators that ignore it rely on the nonce of the payment, which a network accepts once.
 *
 * @example
 * ```ts
 * const payments = x402({ facilitator: httpFacilitator("https://x402.org/facilitator") });
 * ```
 */
export function httpFacilitator(url: string, options: HttpFacilitatorOptions = {}): Facilitator {
  const { headers, fetch = guardedFetch({ protocols: ["https:"], timeout: 30_000, maxBytes: 65_536 }) } = options;
  const base = withoutSlashes(url);
  const call = async (path: string, request: FacilitatorRequest, own: Readonly<Record<string, string>>) => {
    const { payment, requirements, signal } = request;
    const response = await fetch(`${base}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json", ...(await headers?.()), ...own },
      body: JSON.stringify({
        x402Version: payment.x402Version,
        paymentPayload: payment,
        paymentRequirements: requirements,
      }),
      ...(signal !== undefined && { signal }),
    });
    const text = await response.text();
    return { status: response.status, body: jsonOf(text) };
  };
  return {
    async verify(request) {
      const { status, body } = await call("/verify", request, {});
      const verification = fitting(verificationSchema, body);
      // A positive answer with an error status does not count.
      if (verification === undefined || (verification.isValid && status >= 300)) throw unavailable("verify", status);
      return verification;
    },
    async settle(request) {
      const { status, body } = await call("/settle", request, { "idempotency-key": request.idempotencyKey });
      const receipt = fitting(receiptSchema, body);
      // A pending settlement has no outcome yet.
      const isKnown = receipt !== undefined && status < (receipt.success ? 300 : 500) && !isPending(receipt);
      if (!isKnown) throw unavailable("settle", status);
      return receipt;
    },
  };
}

/** Longest wait for an answer, in milliseconds. */
const longestAnswer = 60_000;

/**
 * Calls a facilitator with a timeout, even if it ignores its signal.
 *
 * @param until - Aborted when the answer is no longer needed. Default: never.
 */
async function asked<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  clock: ExtensionTurn["clock"],
  until?: AbortSignal,
): Promise<T> {
  until?.throwIfAborted();
  const late = new AbortController();
  const stop = (): void => late.abort(until?.reason);
  const end = clock.after(longestAnswer, () => late.abort(new Error("The facilitator took too long")));
  until?.addEventListener("abort", stop, { once: true });
  try {
    return await new Promise<T>((resolve, reject) => {
      late.signal.addEventListener("abort", () => reject(late.signal.reason as Error), { once: true });
      ask(late.signal).then(resolve, reject);
    });
  } finally {
    end();
    until?.removeEventListener("abort", stop);
  }
}

const verificationSchema = object<Verification>({
  isValid: required(boolean),
  invalidReason: optional(string),
  payer: optional(string),
});

function jsonOf(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function unavailable(what: string, status: number): A2AError {
  return new A2AError("Unavailable", `The facilitator could not ${what} the payment (HTTP ${status})`);
}

function isPending({ success, errorReason = "" }: PaymentReceipt): boolean {
  return !success && /pending/i.test(errorReason);
}

/** Maps words in facilitators' reasons to codes of the extension. The first match wins. */
const words: readonly (readonly [RegExp, PaymentErrorCode])[] = [
  [/insufficient|balance/i, "INSUFFICIENT_FUNDS"],
  [/nonce|already.?used|duplicate|replay/i, "DUPLICATE_NONCE"],
  [/valid_?before|valid_?after|expired|timeout/i, "EXPIRED_PAYMENT"],
  [/signature/i, "INVALID_SIGNATURE"],
  [/network|chain/i, "NETWORK_MISMATCH"],
  [/value|amount/i, "INVALID_AMOUNT"],
];

export function errorCodeOf(reason: string | undefined, otherwise: PaymentErrorCode): PaymentErrorCode {
  return words.find(([word]) => word.test(reason ?? ""))?.[1] ?? otherwise;
}

/** A receipt that is safe to store and show: the facilitator's texts are untrusted. */
function keptReceipt(receipt: PaymentReceipt, network: string): PaymentReceipt {
  const { success, transaction = "", payer, errorReason } = receipt;
  return {
    success: success === true,
    transaction: plain(transaction, 256),
    network: plain(receipt.network ?? network, 256),
    ...(payer !== undefined && { payer: plain(payer, 256) }),
    ...(errorReason !== undefined && { errorReason: plain(errorReason, 300) }),
  };
}

interface Verifying {
  readonly turn: ExtensionTurn;
  readonly rows: PaymentRows;
  readonly facilitator: Facilitator;
  /** Name of the charge. */
  readonly id: string;
}

/** Milliseconds for which a nonce is reserved if the payment does not expire. */
const usualHold = 30 * 24 * 60 * 60_000;
/** A nonce stays reserved after its payment has expired, because clocks differ. */
const grace = 60 * 60_000;

/**
 * Verifies a payment (v0.2 §10): it must match an offer of this task, satisfy the facilitator, and be new to the agent.
 * Nonces are claimed only after the facilitator has checked the signature, so a caller cannot use up the nonces of others.
 *
 * @throws the reason that aborted the turn.
 */
export async function verify(
  payload: PaymentPayload,
  charge: StoredCharge,
  { turn, rows, facilitator, id }: Verifying,
): Promise<StoredPayment | PaymentProblem> {
  const { clock, signal, logger, taskId } = turn;
  const matched = await matchPayment(payload, charge.accepts, { now: clock.now(), offeredAt: charge.offeredAt });
  if ("code" in matched) return matched;
  const { facts, options } = matched;
  let problem: PaymentProblem | undefined;
  for (const requirements of options) {
    try {
      const ask = (until: AbortSignal) => facilitator.verify({ payment: payload, requirements, signal: until });
      const { isValid, invalidReason } = await asked(ask, clock, signal);
      if (isValid !== true) {
        const code = errorCodeOf(invalidReason, "INVALID_SIGNATURE");
        problem = { code, reason: sentences[code] };
        logger.info("Payment rejected", { taskId, reason: invalidReason });
        continue;
      }
    } catch (cause) {
      signal.throwIfAborted();
      logger.error("Failed to verify a payment with the facilitator", { taskId, cause });
      return { code: "INVALID_SIGNATURE", reason: "The payment could not be verified now." };
    }
    const until = facts.validBefore === undefined ? clock.now() + usualHold : facts.validBefore + grace;
    // Stores need whole milliseconds. A distant time is capped.
    const heldUntil = Math.min(Math.ceil(until), clock.now() + 10 * usualHold);
    for (const name of await nonceNames(payload, facts)) {
      if (!(await rows.claim(name, heldUntil))) return { code: "DUPLICATE_NONCE", reason: sentences.DUPLICATE_NONCE };
    }
    return { payload, requirements, key: await digestOf([taskId, id, facts.nonce]) };
  }
  return problem ?? { code: "INVALID_SIGNATURE", reason: sentences.INVALID_SIGNATURE };
}

/** Texts for the client. */
export const sentences = {
  INSUFFICIENT_FUNDS: "The wallet does not have enough funds.",
  INVALID_SIGNATURE: "The payment could not be verified.",
  EXPIRED_PAYMENT: "The payment has expired.",
  DUPLICATE_NONCE: "The payment was used before.",
  NETWORK_MISMATCH: "The payment is for another network.",
  INVALID_AMOUNT: "The payment does not have the amount that was asked for.",
  SETTLEMENT_FAILED: "The payment could not be settled.",
} as const;

interface Settled {
  readonly receipt: PaymentReceipt;
  /** Why it has failed. */
  readonly code?: PaymentErrorCode;
}

/** Maximum number of settlement calls in one run. */
const maxTries = 3;

/**
 * Settles a payment. After an unknown outcome, asks again with the same key. Canceling does not abort a running call:
 * its receipt would be lost.
 *
 * @throws the reason that aborted the turn, before a call or between two.
 */
export async function settle(
  { payload, requirements, key }: StoredPayment,
  { clock, signal, logger, taskId }: ExtensionTurn,
  facilitator: Facilitator,
): Promise<Settled> {
  for (let tries = 1; ; tries += 1) {
    signal.throwIfAborted();
    try {
      const call = { payment: payload, requirements, idempotencyKey: key };
      const answer = await asked((late) => facilitator.settle({ ...call, signal: late }), clock);
      const receipt = keptReceipt(answer, requirements.network);
      if (receipt.success) return { receipt };
      logger.warn("Payment not settled", { taskId, key, reason: receipt.errorReason });
      return { receipt, code: failureOf(receipt) };
    } catch (cause) {
      logger.error("Settlement outcome unknown", { taskId, key, tries, cause });
      if (tries === maxTries) return unknownOutcome(requirements.network);
    }
    await pause(tries * 1000, clock, signal);
  }
}

function unknownOutcome(network: string): Settled {
  const receipt = { success: false, errorReason: "facilitator_unavailable", network, transaction: "" };
  return { receipt, code: "SETTLEMENT_FAILED" };
}

/** After a successful verification, most reasons mean that the settlement failed. */
function failureOf({ errorReason }: PaymentReceipt): PaymentErrorCode {
  const code = errorCodeOf(errorReason, "SETTLEMENT_FAILED");
  return code === "INSUFFICIENT_FUNDS" || code === "EXPIRED_PAYMENT" || code === "DUPLICATE_NONCE"
    ? code
    : "SETTLEMENT_FAILED";
}

function pause(ms: number, clock: ExtensionTurn["clock"], signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = clock.after(ms, over);
    signal.addEventListener("abort", over, { once: true });
    function over(): void {
      end();
      signal.removeEventListener("abort", over);
      resolve();
    }
  });
}
