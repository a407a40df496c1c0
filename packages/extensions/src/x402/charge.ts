import type { JsonValue } from "@parley/a2a/internal/model/index";
import type { AgentEvent, AgentYield, ExtensionTurn } from "@parley/a2a/internal/protocol/index";
import { paymentOfMandate } from "./embedded.ts";
import { cartEvent, failedEvent, paymentEvent, questionEvent } from "./events.ts";
import type { Facilitator } from "./facilitator.ts";
import { isOver, type PaymentProblem } from "./match.ts";
import { checkCharge, mistake, optionOf, PaymentRequired, usualCharge, type ChargeInit } from "./price.ts";
import { fitting, payloadSchema } from "./schemas.ts";
import { settle } from "./settle.ts";
import { maxReceipts, type PaymentRows, type StoredCharge, type StoredPayment } from "./stored.ts";
import { x402Keys, type PaymentPayload, type PaymentReceipt } from "./types.ts";
import { sentences, verify } from "./verify.ts";
import { worked } from "./work.ts";

/** What a charge is made with. */
export interface ChargeHost {
  readonly uri: string;
  readonly turn: ExtensionTurn;
  readonly facilitator: Facilitator | undefined;
  readonly rows: PaymentRows;
}

/** One charge in one turn: asks, verifies, lets the work be done, and settles. */
export class Charge<Result, Order> {
  readonly #uri: string;
  readonly #turn: ExtensionTurn;
  readonly #rows: PaymentRows;
  readonly #facilitator: Facilitator;
  readonly #init: ChargeInit<Result, Order>;
  readonly #id: string;

  /** @throws A2AError `InvalidAgentResponse` where the agent has made a mistake. */
  constructor({ uri, turn, facilitator, rows }: ChargeHost, init: ChargeInit<Result, Order>) {
    if (facilitator === undefined) throw mistake("x402() needs a facilitator at a server");
    if (!turn.resumable) throw mistake("the agent has to be resumable, so that a payment is settled after a crash");
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
    // A run that is resumed repeats its events.
    if (isNow) yield this.#said("payment-verified", "Payment verified.");
    const result = yield* worked(this.#init.work, this.#order);
    const paid = charge.status === "payment-completed" ? charge : yield* this.#settled(charge, payment);
    if (paid.turn === this.#turn.number) yield* this.#completed(result);
    return result;
  }

  /** What the offer was for that is paid: not what the agent says in this turn. */
  get #order(): Order {
    return this.#rows.order(this.#id) as Order;
  }

  /** The charge, once its payment is verified. Else the turn ends here. */
  async *#verified(): AsyncGenerator<AgentYield, Paid, void> {
    const charge = this.#rows.charge(this.#id);
    if (charge?.payment !== undefined && charge.status !== "payment-failed") return { charge, payment: charge.payment };
    switch (charge?.status) {
      case undefined:
        if (!this.#rows.hasPlace(this.#id)) throw mistake(`a task has at most ${maxReceipts} receipts`);
        return yield* this.#ask(await this.#offer(0));
      case "payment-submitted":
        if (charge.messageId === this.#turn.message.messageId) return yield* this.#submitted(charge);
        return yield* this.#ask(charge);
      case "payment-required":
        return yield* this.#ask(this.#isStale(charge) ? await this.#offer(charge.failures) : charge);
      default:
        return yield* this.#ended(charge as StoredCharge);
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
    // The message that pays is no new wish: after a payment that failed the same is offered at the same price.
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
      { receipt, ...(!isSame && { offer: { order: order as JsonValue | undefined } }) },
    );
  }

  /** Asks for the payment. The thrown error ends the turn quietly: the question stays. */
  async *#ask(charge: StoredCharge): AsyncGenerator<AgentYield, never, void> {
    const { number } = this.#turn;
    // A payment is for what was asked for last, where a task has several charges.
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

  /** A payment that was not verified: the client is asked again, or the task fails. */
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
    // With this row every event of the work is stored, and a later run knows that the facilitator may have been asked.
    const settling = await this.#store({ ...charge, turn, payment: { ...payment, settling: true } });
    const { receipt, code } = await settle(payment, this.#turn, this.#facilitator);
    if (code === undefined) return this.#keep({ ...settling, status: "payment-completed" }, receipt);
    const problem = { code, reason: sentences[code] };
    return yield* this.#ended(await this.#store({ ...settling, status: "payment-failed", problem }, receipt));
  }

  /** Where the task was canceled meanwhile, the receipt cannot be kept with it. The operator has to know of it. */
  async #keep(charge: StoredCharge, receipt: PaymentReceipt): Promise<StoredCharge> {
    try {
      return await this.#store(charge, receipt);
    } catch (error) {
      const { transaction, network } = receipt;
      const { taskId, logger } = this.#turn;
      logger.error("A payment was settled, and its receipt is not stored", { taskId, transaction, network });
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

  /** Ends the task: nothing is paid. The function does not go on after the event. */
  async *#ended(charge: StoredCharge): AsyncGenerator<AgentYield, never, void> {
    if (charge.status === "payment-rejected") {
      yield this.#said("payment-rejected", "The payment was refused by the client.", "TASK_STATE_REJECTED");
    } else {
      yield this.#failed(charge, "TASK_STATE_FAILED");
    }
    throw new PaymentRequired();
  }

  #said(
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

/** A charge whose payment is verified. */
interface Paid {
  readonly charge: StoredCharge;
  readonly payment: StoredPayment;
}

const unreadable: PaymentProblem = { code: "INVALID_SIGNATURE", reason: "The message has no payment." };
