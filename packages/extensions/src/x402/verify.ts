import type { ExtensionTurn } from "@parley/a2a/internal/protocol/index";
import { asked, errorCodeOf, type Facilitator } from "./facilitator.ts";
import { matchPayment, nonceNames, type PaymentProblem } from "./match.ts";
import type { PaymentRows, StoredCharge, StoredPayment } from "./stored.ts";
import { fingerprint } from "./fingerprint.ts";
import type { PaymentPayload } from "./types.ts";

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
