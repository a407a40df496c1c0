import { type Content, type JsonObject, partsOf, type TaskState } from "@parley/a2a/internal/model/index";
import type {
  AgentEvent,
  AgentYield,
  ArtifactEvent,
  ExtensionTurn,
  StatusEvent,
} from "@parley/a2a/internal/protocol/index";
import { fitting, jsonOf, mistake } from "../shared/values.ts";
import { cartPart, paymentOfMandate } from "./read.ts";
import { type Facilitator, sentences, settle, verify } from "./facilitator.ts";
import { isOver, type PaymentProblem } from "./match.ts";
import { call, type ChargeInit, checkCharge, optionOf, PaymentRequired, usualCharge, worked } from "./price.ts";
import { maxReceipts, type PaymentRows, type StoredCharge, type StoredPayment } from "./stored.ts";
import {
  payloadSchema,
  type PaymentPayload,
  type PaymentReceipt,
  type PaymentRequiredResponse,
  type PaymentStatus,
  x402Keys,
  x402Version,
} from "./types.ts";

interface ChargeHost {
  readonly uri: string;
  readonly turn: ExtensionTurn;
  readonly facilitator: Facilitator | undefined;
  readonly rows: PaymentRows;
}

/** One charge in one turn: ask, verify, do the work, settle. */
export class Charge<Result, Order> {
  readonly #uri: string;
  readonly #turn: ExtensionTurn;
  readonly #rows: PaymentRows;
  readonly #facilitator: Facilitator;
  readonly #init: ChargeInit<Result, Order>;
  readonly #id: string;

  /** @throws A2AError `InvalidAgentResponse` for a mistake of the agent. */
  constructor({ uri, turn, facilitator, rows }: ChargeHost, init: ChargeInit<Result, Order>) {
    if (facilitator === undefined) throw mistake(call, "x402() needs a facilitator at a server");
    if (!turn.resumable) throw mistake(call, "the agent must be resumable, so that a payment is settled after a crash");
    checkCharge(init);
    this.#uri = uri;
    this.#turn = turn;
    this.#rows = rows;
    this.#facilitator = facilitator;
    this.#init = init;
    this.#id = init.id ?? usualCharge;
  }

  async *run(): AsyncGenerator<AgentYield, Result, void> {
    await this.#rows.read();
    const { charge, payment } = yield* this.#verified();
    const isNow = charge.turn === this.#turn.number;
    // A resumed run repeats its events.
    if (isNow) yield this.#event("payment-verified", "Payment verified.");
    const result = yield* worked(this.#init.work, this.#order);
    const paid = charge.status === "payment-completed" ? charge : yield* this.#settled(charge, payment);
    if (paid.turn === this.#turn.number) yield* this.#completed(result);
    return result;
  }

  /** The order that was paid for, not this turn's order. */
  get #order(): Order {
    return this.#rows.order(this.#id) as Order;
  }

  /** Returns the charge if its payment is verified. Otherwise ends the turn. */
  async *#verified(): AsyncGenerator<AgentYield, Paid, void> {
    const charge = this.#rows.charge(this.#id);
    if (charge?.payment !== undefined && charge.status !== "payment-failed") return { charge, payment: charge.payment };
    if (charge === undefined) {
      if (!this.#rows.hasPlace(this.#id)) throw mistake(call, `a task has at most ${maxReceipts} receipts`);
      return yield* this.#ask(await this.#offer(0));
    }
    switch (charge.status) {
      case "payment-submitted":
        if (charge.messageId === this.#turn.message.messageId) return yield* this.#submitted(charge);
        return yield* this.#ask(charge);
      case "payment-required":
        return yield* this.#ask(this.#isStale(charge) ? await this.#offer(charge.failures) : charge);
      default:
        return yield* this.#ended(charge);
    }
  }

  /** Whether an offer of an earlier turn has expired. */
  #isStale({ turn, accepts, offeredAt }: StoredCharge): boolean {
    const now = this.#turn.clock.now();
    return turn !== this.#turn.number && accepts.some((option) => isOver(option, offeredAt, now));
  }

  #offer(failures: number, problem?: PaymentProblem, receipt?: PaymentReceipt): Promise<StoredCharge> {
    const { clock, number } = this.#turn;
    const { accepts, cart, order } = this.#init;
    const before = this.#rows.charge(this.#id);
    // The paying message is not a new order: after a failed payment, offer the same order at the same price.
    const isSame = problem !== undefined && before !== undefined && this.#order !== undefined;
    const offer = isSame
      ? { accepts: before.accepts, ...(before.cart !== undefined && { cart: before.cart }) }
      : { accepts: accepts.map(optionOf), ...(cart !== undefined && { cart }) };
    return this.#rows.store(
      this.#id,
      {
        status: "payment-required",
        ...offer,
        offeredAt: clock.now(),
        turn: number,
        asked: number,
        failures,
        ...(problem !== undefined && { problem }),
      },
      { receipt, ...(!isSame && { offer: { order } }) },
    );
  }

  /** Asks for the payment. Then throws PaymentRequired, which ends the turn but not the task. */
  async *#ask(charge: StoredCharge): AsyncGenerator<AgentYield, never, void> {
    const { number } = this.#turn;
    // If a task has several charges, a payment is for the one that asked last.
    if (charge.asked !== number && charge.status === "payment-required")
      await this.#store({ ...charge, asked: number });
    const { ask = "Payment is required." } = this.#init;
    const isNow = charge.turn === this.#turn.number;
    if (charge.problem !== undefined && isNow) yield this.#failed(charge, "TASK_STATE_WORKING");
    const question = questionEvent(this.#uri, charge, ask, this.#rows.receipts);
    if (charge.cart === undefined) yield question;
    else yield [cartEvent(this.#uri, this.#id, charge, charge.cart), question];
    throw new PaymentRequired();
  }

  async *#submitted(charge: StoredCharge): AsyncGenerator<AgentYield, Paid, void> {
    const { message, number } = this.#turn;
    const metadata = message.metadata ?? {};
    if (metadata[x402Keys.status] === "payment-rejected") {
      return yield* this.#ended(await this.#store({ ...charge, status: "payment-rejected", turn: number }));
    }
    const payload =
      charge.cart === undefined ? fitting(payloadSchema, metadata[x402Keys.payload]) : paymentOfMandate(message.parts);
    const outcome = payload === undefined ? unreadable : await this.#verify(payload, charge);
    if ("code" in outcome) return yield* this.#refused(charge, outcome, payload);
    const verified = { ...charge, status: "payment-verified", turn: number, payment: outcome } as const;
    return { charge: await this.#store(verified), payment: outcome };
  }

  #verify(payload: PaymentPayload, charge: StoredCharge): Promise<StoredPayment | PaymentProblem> {
    return verify(payload, charge, {
      turn: this.#turn,
      rows: this.#rows,
      facilitator: this.#facilitator,
      id: this.#id,
    });
  }

  /** The payment was not verified: ask again, or fail the task. */
  async *#refused(
    charge: StoredCharge,
    problem: PaymentProblem,
    payload: PaymentPayload | undefined,
  ): AsyncGenerator<AgentYield, never, void> {
    const network = payload?.network ?? charge.accepts[0]?.network ?? "";
    const receipt = { success: false, errorReason: problem.reason, network, transaction: "" };
    const failures = charge.failures + 1;
    const mayTryAgain = failures < (this.#init.attempts ?? 1) && this.#rows.hasPlace(this.#id, 1);
    if (mayTryAgain) return yield* this.#ask(await this.#offer(failures, problem, receipt));
    const failed = { ...charge, status: "payment-failed", turn: this.#turn.number, failures, problem } as const;
    return yield* this.#ended(await this.#store(failed, receipt));
  }

  async *#settled(charge: StoredCharge, payment: StoredPayment): AsyncGenerator<AgentYield, StoredCharge, void> {
    const { number: turn } = this.#turn;
    // Makes every event of the work durable, and records that the facilitator may have been asked.
    const settling = await this.#store({ ...charge, turn, payment: { ...payment, settling: true } });
    const { receipt, code } = await settle(payment, this.#turn, this.#facilitator);
    if (code === undefined) return this.#keep({ ...settling, status: "payment-completed" }, receipt);
    const problem = { code, reason: sentences[code] };
    return yield* this.#ended(await this.#store({ ...settling, status: "payment-failed", problem }, receipt));
  }

  /** Stores a receipt. If that fails, for example because the task was canceled, logs the transaction for the operator. */
  async #keep(charge: StoredCharge, receipt: PaymentReceipt): Promise<StoredCharge> {
    try {
      return await this.#store(charge, receipt);
    } catch (error) {
      const { transaction, network } = receipt;
      const { taskId, logger } = this.#turn;
      logger.error("Payment settled, but its receipt could not be stored", { taskId, transaction, network });
      throw error;
    }
  }

  *#completed(result: Result): Generator<AgentYield, void, void> {
    const { deliver, done = "Payment completed.", completes = true } = this.#init;
    const delivered = deliver?.(result, this.#order);
    if (delivered !== undefined) yield delivered;
    const state = completes ? "TASK_STATE_COMPLETED" : "TASK_STATE_WORKING";
    const { receipts } = this.#rows;
    yield paymentEvent({ uri: this.#uri, state, status: "payment-completed", content: done, receipts });
  }

  /** Ends the task unpaid. The function does not continue after the event. */
  async *#ended(charge: StoredCharge): AsyncGenerator<AgentYield, never, void> {
    if (charge.status === "payment-rejected") {
      yield this.#event("payment-rejected", "The payment was refused by the client.", "TASK_STATE_REJECTED");
    } else {
      yield this.#failed(charge, "TASK_STATE_FAILED");
    }
    throw new PaymentRequired();
  }

  #event(
    status: "payment-verified" | "payment-rejected",
    content: string,
    state: "TASK_STATE_WORKING" | "TASK_STATE_REJECTED" = "TASK_STATE_WORKING",
  ): AgentEvent {
    return paymentEvent({ uri: this.#uri, state, status, content, receipts: this.#rows.receipts });
  }

  #failed(charge: StoredCharge, state: "TASK_STATE_FAILED" | "TASK_STATE_WORKING"): AgentEvent {
    return failedEvent(this.#uri, charge, state, this.#rows.receipts);
  }

  #store(charge: StoredCharge, receipt?: PaymentReceipt): Promise<StoredCharge> {
    return this.#rows.store(this.#id, charge, { receipt });
  }
}

interface Paid {
  readonly charge: StoredCharge;
  readonly payment: StoredPayment;
}

const unreadable: PaymentProblem = { code: "INVALID_SIGNATURE", reason: "The message has no payment." };

/* The events of a payment: statuses whose messages carry the metadata of the extension. */

interface PaymentEventInit {
  readonly uri: string;
  readonly state: TaskState;
  readonly status: PaymentStatus;
  readonly content: Content;
  readonly receipts?: readonly PaymentReceipt[];
  readonly more?: JsonObject;
}

/** A status about a payment. Its message is added to the history in every state. */
function paymentEvent({ uri, state, status, content, receipts = [], more }: PaymentEventInit): StatusEvent {
  const metadata: JsonObject = { [x402Keys.status]: status, ...more, ...receiptsOf(receipts) };
  return {
    kind: "status",
    state,
    message: { parts: partsOf(content), metadata, extensions: [uri] },
    ...(state === "TASK_STATE_WORKING" && { keep: true }),
  };
}

function receiptsOf(receipts: readonly PaymentReceipt[]): JsonObject {
  return receipts.length === 0 ? {} : { [x402Keys.receipts]: receipts.map(jsonOf) };
}

/** The question. The options are in its metadata (v0.2 §5.3), or in the cart if there is one. */
function questionEvent(
  uri: string,
  charge: StoredCharge,
  content: Content,
  receipts: readonly PaymentReceipt[],
): StatusEvent {
  const more = charge.cart === undefined ? { [x402Keys.required]: jsonOf(requiredOf(charge)) } : {};
  const state = "TASK_STATE_INPUT_REQUIRED";
  return paymentEvent({ uri, state, status: "payment-required", content, receipts, more });
}

function cartEvent(uri: string, id: string, charge: StoredCharge, cart: JsonObject): ArtifactEvent {
  const artifact = {
    // A new offer replaces the previous cart.
    artifactId: `x402-cart-${id}`,
    name: "AP2 CartMandate",
    parts: [cartPart(cart, requiredOf(charge))],
    extensions: [uri],
  };
  return { kind: "artifact", artifact, lastChunk: true };
}

function requiredOf({ accepts, problem }: StoredCharge): PaymentRequiredResponse {
  return { x402Version, accepts, ...(problem !== undefined && { error: problem.reason }) };
}

/** A failed payment. The task fails, or continues with another question. */
function failedEvent(
  uri: string,
  { problem }: StoredCharge,
  state: "TASK_STATE_FAILED" | "TASK_STATE_WORKING",
  receipts: readonly PaymentReceipt[],
): StatusEvent {
  const { code = "SETTLEMENT_FAILED", reason = "The payment has failed." } = problem ?? {};
  const more = { [x402Keys.error]: code };
  return paymentEvent({ uri, state, status: "payment-failed", content: `Payment failed. ${reason}`, receipts, more });
}

/** The agent's final event with every receipt of its task (v0.1 §4.5: "final TaskStatus.message"). */
export function withReceipts<Event extends AgentEvent>(
  event: Event,
  uri: string,
  receipts: readonly PaymentReceipt[],
): Event {
  if (event.kind !== "reply" && event.kind !== "status") return event;
  const message = event.message ?? { parts: [{ text: "Payment completed." }] };
  if (message.metadata?.[x402Keys.status] !== undefined) return event;
  const status: PaymentStatus = receipts.at(-1)?.success === true ? "payment-completed" : "payment-failed";
  const metadata = { ...message.metadata, [x402Keys.status]: status, ...receiptsOf(receipts) };
  const extensions = [...(message.extensions ?? []), uri];
  return { ...event, message: { ...message, metadata, extensions } };
}
