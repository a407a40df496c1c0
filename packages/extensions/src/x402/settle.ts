import type { ExtensionTurn } from "@parley/a2a/internal/protocol/index";
import { asked, errorCodeOf, keptReceipt, type Facilitator } from "./facilitator.ts";
import type { StoredPayment } from "./stored.ts";
import type { PaymentErrorCode, PaymentReceipt } from "./types.ts";

/** The outcome of a settlement. */
export interface Settled {
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
