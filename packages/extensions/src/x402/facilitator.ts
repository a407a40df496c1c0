import { plain } from "@parley/a2a/internal/base/display";
import { withoutSlashes } from "@parley/a2a/internal/base/index";
import { A2AError, type JsonValue } from "@parley/a2a/internal/model/index";
import { boolean, object, optional, required, string } from "@parley/a2a/internal/model/schema";
import { guardedFetch, type GuardedFetch } from "@parley/a2a/internal/net/index";
import type { ExtensionTurn } from "@parley/a2a/internal/protocol/index";
import { fitting, receiptSchema } from "./schemas.ts";
import type { PaymentErrorCode, PaymentPayload, PaymentReceipt, PaymentRequirements } from "./types.ts";
import { fingerprint, matchPayment, nonceNames, type PaymentProblem } from "./match.ts";
import type { PaymentRows, StoredCharge, StoredPayment } from "./stored.ts";

/* Who verifies and settles payments for an agent. */

/** A payment, and the option that it is for. */
export interface FacilitatorRequest {
  /** The payment, as the client has sent it. */
  readonly payment: PaymentPayload;
  /** The option, as the agent has offered it. */
  readonly requirements: PaymentRequirements;
  /** Aborted when the answer is no longer wanted. */
  readonly signal?: AbortSignal;
}

/** What a facilitator says about a payment. */
export interface Verification {
  /** Whether it can be settled. */
  readonly isValid: boolean;
  /** Why not. */
  readonly invalidReason?: string;
  /** Who pays. */
  readonly payer?: string;
}

/** Verifies and settles payments. */
export interface Facilitator {
  /** Whether a payment is good. Nothing changes. Rejects where this cannot be found out now. */
  verify(request: FacilitatorRequest): Promise<Verification>;
  /**
   * Moves the money. It is called again with the same key where the outcome of an earlier call is not known, as after a crash:
   * the same key must never pay twice, and gives the outcome of the first call. Rejects where the outcome is not known now.
   */
  settle(request: FacilitatorRequest & { readonly idempotencyKey: string }): Promise<PaymentReceipt>;
}

/** Options of `httpFacilitator()`. */
export interface HttpFacilitatorOptions {
  /** Headers of each request, such as those with an API key. */
  readonly headers?: () => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
  /** Calls the facilitator. Default: public `https:` addresses alone, with a timeout of 30 seconds. */
  readonly fetch?: GuardedFetch;
}

/**
 * A facilitator with the public HTTP API of x402: `POST /verify` and `POST /settle`. The key of a settlement is in the header
 * `Idempotency-Key`. A facilitator that does not know this header relies on the nonce of the payment, which a network takes once.
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
      // A yes that is an error as well is no yes.
      if (verification === undefined || (verification.isValid && status >= 300)) throw unavailable("verify", status);
      return verification;
    },
    async settle(request) {
      const { status, body } = await call("/settle", request, { "idempotency-key": request.idempotencyKey });
      const receipt = fitting(receiptSchema, body);
      // The outcome of a settlement that is still going on is not known.
      const isKnown = receipt !== undefined && status < (receipt.success ? 300 : 500) && !isPending(receipt);
      if (!isKnown) throw unavailable("settle", status);
      return receipt;
    },
  };
}

/** How long a facilitator may take for an answer, in milliseconds. */
const longestAnswer = 60_000;

/**
 * Asks a facilitator. One that does not answer in time is not waited for, also where it does not look at its signal.
 *
 * @param until - Aborted when the answer is no longer wanted. Default: it is always wanted.
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

/** Whether a settlement goes on, and has no outcome yet. */
function isPending({ success, errorReason = "" }: PaymentReceipt): boolean {
  return !success && /pending/i.test(errorReason);
}

/** The words in the reasons of facilitators, and the codes of the extension. The first one that fits counts. */
const words: readonly (readonly [RegExp, PaymentErrorCode])[] = [
  [/insufficient|balance/i, "INSUFFICIENT_FUNDS"],
  [/nonce|already.?used|duplicate|replay/i, "DUPLICATE_NONCE"],
  [/valid_?before|valid_?after|expired|timeout/i, "EXPIRED_PAYMENT"],
  [/signature/i, "INVALID_SIGNATURE"],
  [/network|chain/i, "NETWORK_MISMATCH"],
  [/value|amount/i, "INVALID_AMOUNT"],
];

/** The code for the reason of a facilitator. */
export function errorCodeOf(reason: string | undefined, otherwise: PaymentErrorCode): PaymentErrorCode {
  return words.find(([word]) => word.test(reason ?? ""))?.[1] ?? otherwise;
}

/** The receipt as it may be kept and shown: the facilitator wrote its texts. */
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

/** What a payment is verified with. */
interface Verifying {
  readonly turn: ExtensionTurn;
  readonly rows: PaymentRows;
  readonly facilitator: Facilitator;
  /** Name of the charge. */
  readonly id: string;
}

/** How long a nonce stays taken where the payment does not say how long it is good, in milliseconds. */
const usualHold = 30 * 24 * 60 * 60_000;
/** A nonce stays taken for a while after its payment has expired: clocks differ. */
const grace = 60 * 60_000;

/**
 * Verifies a payment (v0.2 §10): it is for an option that was offered for this task, the facilitator finds it good, and no task of the
 * agent had it before. Nothing is taken before the facilitator has seen the signature, so nobody can use up the nonces of others.
 *
 * @throws what aborted the turn.
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
        logger.info("A payment was not accepted", { taskId, reason: invalidReason });
        continue;
      }
    } catch (cause) {
      signal.throwIfAborted();
      logger.error("The facilitator could not verify a payment", { taskId, cause });
      return { code: "INVALID_SIGNATURE", reason: "The payment could not be verified now." };
    }
    const until = facts.validBefore === undefined ? clock.now() + usualHold : facts.validBefore + grace;
    // A time that is too far away is cut: stores keep whole milliseconds.
    const held = Math.min(Math.ceil(until), clock.now() + 10 * usualHold);
    for (const name of await nonceNames(payload, facts)) {
      if (!(await rows.claim(name, held))) return { code: "DUPLICATE_NONCE", reason: sentences.DUPLICATE_NONCE };
    }
    return { payload, requirements, key: await fingerprint([taskId, id, facts.nonce]) };
  }
  return problem ?? { code: "INVALID_SIGNATURE", reason: sentences.INVALID_SIGNATURE };
}

/** What the client reads. */
export const sentences = {
  INSUFFICIENT_FUNDS: "The wallet does not have enough funds.",
  INVALID_SIGNATURE: "The payment could not be verified.",
  EXPIRED_PAYMENT: "The payment has expired.",
  DUPLICATE_NONCE: "The payment was used before.",
  NETWORK_MISMATCH: "The payment is for another network.",
  INVALID_AMOUNT: "The payment does not have the amount that was asked for.",
  SETTLEMENT_FAILED: "The payment could not be settled.",
} as const;

/** The outcome of a settlement. */
interface Settled {
  readonly receipt: PaymentReceipt;
  /** Why it has failed. */
  readonly code?: PaymentErrorCode;
}

/** How often the facilitator is asked in one run. */
const maxTries = 3;

/**
 * Settles a payment. Where the outcome of a call is not known, the facilitator is asked again under the same key. A cancel does not stop a call
 * that is under way: its receipt would be lost.
 *
 * @throws what aborted the turn, before a call or between two.
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
      logger.warn("A payment was not settled", { taskId, key, reason: receipt.errorReason });
      return { receipt, code: failureOf(receipt) };
    } catch (cause) {
      logger.error("The outcome of a settlement is not known", { taskId, key, tries, cause });
      if (tries === maxTries) return unknownOutcome(requirements.network);
    }
    await pause(tries * 1000, clock, signal);
  }
}

function unknownOutcome(network: string): Settled {
  const receipt = { success: false, errorReason: "facilitator_unavailable", network, transaction: "" };
  return { receipt, code: "SETTLEMENT_FAILED" };
}

/** After a payment was verified, most reasons are failures of the settlement. */
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
