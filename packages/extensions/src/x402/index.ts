/**
 * The x402 payments extension (a2a-x402 v0.1 and v0.2): agents that are paid, and clients that pay.
 * @packageDocumentation
 */

import { type A2AError, invalidParams, isTerminal, type JsonValue } from "@parley/a2a/internal/model/index";
import type {
  AcceptedCall,
  AcceptedInput,
  AgentYield,
  AppendedEvent,
  AppendingTurn,
  EventReads,
  ExtensionTurn,
  ExtensionTypes,
  MetadataField,
} from "@parley/a2a/internal/protocol/index";
import { type DefinedExtension, defineExtension } from "@parley/a2a/internal/extensions/index";
import { standardSchema } from "@parley/a2a/internal/extensions/schemas";
import { Charge, withReceipts } from "./charge.ts";
import type { Facilitator } from "./facilitator.ts";
import type { ChargeInit } from "./price.ts";
import { chargeRow, PaymentRows, paymentsOf, type StoredCharge } from "./stored.ts";
import {
  errorSchema,
  payloadSchema,
  receiptsSchema,
  requiredSchema,
  statusSchema,
  clientStatuses,
  mayMovePayment,
  type PaymentPayload,
  type PaymentReceipt,
  type PaymentRequiredResponse,
  type PaymentStatus,
  x402Keys,
  x402UriV01,
  x402UriV02,
} from "./types.ts";
import { paymentOfMandate } from "./read.ts";

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

/** Result of `turn.ext()` for x402: the payments of this turn's task. */
export interface Payments {
  /**
   * Asks for a payment. Once the payment is verified, does the work, settles, and completes the task with the receipts.
   * Without a payment, the task becomes INPUT_REQUIRED and the function ends here (its `finally` runs); the paying
   * message calls the function again. Offer and payment are stored with the task, so they survive a restart. A payment
   * has one idempotency key for all settlement attempts.
   *
   * Code before `charge()` runs twice, and unpaid. The agent must be `resumable`: after a crash, the run repeats the
   * work and finishes the settlement.
   *
   * @returns the result of `work`, if `completes` is `false`.
   * @throws A2AError `InvalidAgentResponse` for a mistake of the agent.
   *
   * @example
   * ```ts
   * const payments = x402({ facilitator: httpFacilitator("https://x402.org/facilitator") });
   *
   * async function* paint(turn: Turn<{ extensions: [typeof payments] }>): AsyncGenerator<AgentYield> {
   *   const price = { network: "base", asset: "0x8335", payTo: "0x2096", maxAmountRequired: "1000000", resource: "paint" };
   *   yield* turn.ext(payments)!.charge({
   *     accepts: [price],
   *     async *work() {
   *       yield turn.artifact({ name: "picture", parts: [text("A sailboat")] });
   *     },
   *   });
   * }
   * ```
   */
  charge<Result = void, Order = undefined>(init: ChargeInit<Result, Order>): AsyncGenerator<AgentYield, Result, void>;
  /** Every payment attempt of this task, oldest first. */
  receipts(): Promise<readonly PaymentReceipt[]>;
}

/** The metadata of messages (v0.2 §7). */
type PaymentFields = {
  readonly status: MetadataField<PaymentStatus>;
  readonly required: MetadataField<PaymentRequiredResponse>;
  readonly payload: MetadataField<PaymentPayload>;
  readonly receipts: MetadataField<readonly PaymentReceipt[]>;
  readonly error: MetadataField<string>;
};

interface X402Types extends ExtensionTypes {
  readonly metadata: { readonly message: PaymentFields };
  readonly data: Readonly<Record<never, never>>;
  readonly subStates: never;
  readonly methods: Readonly<Record<never, never>>;
  readonly turn: Payments;
  readonly event: EventReads<X402Types>;
}

/** The x402 extension, in one of its versions. */
export type X402Extension = DefinedExtension<string, X402Types>;

/** Options of `x402()`. */
export interface X402Options {
  /** Verifies and settles payments. Required at a server, unused at a client. */
  readonly facilitator?: Facilitator;
  /**
   * The version of the extension, which decides its URI. Both versions are read. Default `0.1`, which most agents use.
   */
  readonly version?: "0.1" | "0.2";
  /**
   * Whether callers must activate it, as the specification recommends (§3.1). With `false`, `turn.ext()` is `undefined`
   * for callers that did not. Default true.
   */
  readonly required?: boolean;
}

class TurnPayments implements Payments {
  readonly #uri: string;
  readonly #turn: ExtensionTurn;
  readonly #facilitator: Facilitator | undefined;
  readonly #rows: PaymentRows;

  constructor(uri: string, turn: ExtensionTurn, facilitator: Facilitator | undefined) {
    this.#uri = uri;
    this.#turn = turn;
    this.#facilitator = facilitator;
    this.#rows = new PaymentRows(turn.rows);
  }

  get known(): readonly PaymentReceipt[] {
    return this.#rows.receipts;
  }

  /** The charge that this turn's message pays, if `charge()` has not handled the payment yet. */
  get untaken(): readonly [id: string, charge: StoredCharge] | undefined {
    return this.#rows.submittedBy(this.#turn.message.messageId);
  }

  async *charge<Result = void, Order = undefined>(
    init: ChargeInit<Result, Order>,
  ): AsyncGenerator<AgentYield, Result, void> {
    const host = { uri: this.#uri, turn: this.#turn, facilitator: this.#facilitator, rows: this.#rows };
    return yield* new Charge(host, init).run();
  }

  async receipts(): Promise<readonly PaymentReceipt[]> {
    await this.#rows.read();
    return this.#rows.receipts;
  }
}

/**
 * The x402 payments extension: an agent asks for a payment in a task, and does the work once it is paid.
 *
 * @example
 * ```ts
 * const payments = x402({ facilitator: httpFacilitator("https://x402.org/facilitator") });
 * ```
 */
export function x402({ facilitator, version = "0.1", required = true }: X402Options = {}): X402Extension {
  const uri = version === "0.1" ? x402UriV01 : x402UriV02;
  return defineExtension({
    uri,
    description: "Supports payments using the x402 protocol for on-chain settlement.",
    kind: "state",
    required,
    metadata: {
      message: {
        status: { key: x402Keys.status, schema: standardSchema(statusSchema) },
        required: { key: x402Keys.required, schema: standardSchema(requiredSchema) },
        payload: { key: x402Keys.payload, schema: standardSchema(payloadSchema) },
        receipts: { key: x402Keys.receipts, schema: standardSchema(receiptsSchema) },
        error: { key: x402Keys.error, schema: standardSchema(errorSchema) },
      },
    },
    onAccept: (input, call) => acceptPayment(input, call, uri),
    onTurnStart: (turn): Payments => {
      const payments = new TurnPayments(uri, turn, facilitator);
      if (turn.message.metadata?.[x402Keys.status] !== undefined) turn.waitFor(payments.receipts());
      return payments;
    },
    onAppend: (event, turn) => appended(event, uri, turn),
  });
}

/** Adds the receipts of the task to the agent's final event. */
function appended(event: AppendedEvent, uri: string, { started, rows }: AppendingTurn): AppendedEvent {
  if (event.kind === "status" && event.state === "TASK_STATE_INPUT_REQUIRED" && started instanceof TurnPayments) {
    const [id, charge] = started.untaken ?? [];
    // The agent asks something else first, and will not read this payment later. So accept another one.
    if (id !== undefined && charge !== undefined && rows !== undefined) {
      const { key, value } = chargeRow(id, { ...charge, status: "payment-required" });
      rows.set(key, value);
    }
  }
  const isLast = event.kind === "reply" || (event.kind === "status" && isTerminal(event.state));
  if (!isLast || !(started instanceof TurnPayments) || started.known.length === 0) return event;
  return withReceipts(event, uri, started.known);
}

/**
 * Accepts a message about a payment, if its task asks for one. The charge becomes submitted in the same transaction, so
 * the server rejects a second payment for the same offer before storing it. The metadata is already valid.
 */
function acceptPayment(input: AcceptedInput, call: AcceptedCall, uri: string): AcceptedInput | Promise<AcceptedInput> {
  const status = input.message.metadata?.[x402Keys.status];
  return status === undefined || status === null ? input : submitted(input, status, call, uri);
}

async function submitted(
  input: AcceptedInput,
  status: JsonValue,
  { rows, extensions }: AcceptedCall,
  uri: string,
): Promise<AcceptedInput> {
  const { message } = input;
  if (!clientStatuses.some((each) => each === status)) {
    throw refused("status", `must be ${clientStatuses.join(" or ")}: the agent sets the others`);
  }
  if (message.taskId === undefined) throw refused("status", "requires message.taskId");
  const { charges } = paymentsOf(await rows.read());
  const other = uri === x402UriV01 ? x402UriV02 : x402UriV01;
  // The caller activated both versions, and the agent charges with the other one.
  if (charges.size === 0 && extensions.includes(other)) return input;
  // The payment is for the latest question.
  const [id, charge] =
    [...charges]
      .filter(([, each]) => mayMovePayment(each.status, "payment-submitted"))
      .toSorted(([, one], [, another]) => askedIn(another) - askedIn(one))[0] ?? [];
  if (id === undefined || charge === undefined)
    throw refused("status", "is not expected: this task asks for no payment");
  const hasPayload = (message.metadata?.[x402Keys.payload] ?? undefined) !== undefined;
  if (status === "payment-submitted") {
    if (charge.cart === undefined && !hasPayload) throw refused("payload", "is required");
    if (charge.cart !== undefined && hasPayload) throw refused("payload", "must be in the payment mandate (v0.2 §7)");
    if (charge.cart !== undefined && paymentOfMandate(message.parts) === undefined) {
      throw invalidParams([
        { field: "message.parts", description: "must contain a payment mandate with an x402 payment" },
      ]);
    }
  }
  // The turn decides whether the message pays: a client may also decline.
  const { key, value } = chargeRow(id, { ...charge, status: "payment-submitted", messageId: message.messageId });
  rows.set(key, value);
  return input;
}

function askedIn({ asked, turn }: StoredCharge): number {
  return asked ?? turn;
}

function refused(name: keyof typeof x402Keys, description: string): A2AError {
  return invalidParams([{ field: `message.metadata.${x402Keys[name]}`, description }]);
}
