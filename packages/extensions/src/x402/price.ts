import { utf8Length } from "@parley/a2a/internal/base/index";
import { type Content, type JsonObject } from "@parley/a2a/internal/model/index";
import { type AgentEvent, type AgentYield, MessageRefused } from "@parley/a2a/internal/protocol/index";
import { fitting, mistake } from "../shared/values.ts";
import { maxOptions, requirementsSchema, type PaymentRequirements } from "./types.ts";

export const call = "charge()";

/** One way to pay. Omitted members have defaults. */
export interface PaymentOption extends Omit<PaymentRequirements, "scheme" | "resource"> {
  /** The payment scheme. Default `exact`. */
  readonly scheme?: string;
  /** The purchased good, such as the id of a skill or a URL. Facilitators require it. */
  readonly resource: string;
  /** Validity of the offer, in seconds. Default 600. */
  readonly maxTimeoutSeconds?: number;
}

/** The paid work: yields events, returns a value, or both. Its argument is `ChargeInit.order`. */
export type Work<Result, Order = undefined> = (
  order: Order,
) => AsyncGenerator<AgentYield, Result, void> | Promise<Result> | Result;

/** Argument of `charge()`. */
export interface ChargeInit<Result = void, Order = undefined> {
  /**
   * The ways to pay, 1 to 16; the client chooses one. The price may depend on the message. An offer stays valid until
   * it expires, even if later messages ask for something else, so put what you priced into `order`.
   */
  readonly accepts: readonly PaymentOption[];
  /**
   * The order that the price is for: JSON of at most 16 KiB, such as the request in the message. It is stored with the offer,
   * and `work` and `deliver` get the stored value, even if later messages differ. Nothing else binds the work to its price,
   * so the work must not use anything that a later message could change. After a failed payment, `charge()` offers the same
   * order at the same price; after an expired offer, the current order at the current price. Default: none.
   */
  readonly order?: Order;
  /**
   * The work. It runs after verification and before settlement, so callers do not pay for failed work. A resumed run
   * repeats it. It may ask questions, and must not complete the task. Default: none.
   */
  readonly work?: Work<Result, Order>;
  /** Yields the result after settlement. Default: nothing. */
  readonly deliver?: (result: Result, order: Order) => AgentYield;
  /** Name of the charge, unique in its task. At most 100 characters. Default `payment`. */
  readonly id?: string;
  /** The question. Default `Payment is required.` */
  readonly ask?: Content;
  /** The final status. Default `Payment completed.` */
  readonly done?: Content;
  /**
   * Maximum number of payments, 1 to 10: if one fails before the work, the agent asks again. Default 1: the task fails.
   */
  readonly attempts?: number;
  /**
   * Whether settlement completes the task. With `false` the function continues, and must end the task with a reply or a
   * status that has a message; the receipts are added to it. Default true.
   */
  readonly completes?: boolean;
  /**
   * Uses the embedded flow (v0.2 §4): the options are in an artifact with an AP2 cart mandate that also has these
   * members, and the payment comes in an AP2 payment mandate as data, so `defaultInputModes` needs `application/json`.
   * `payment_request.details` has the order.
   */
  readonly cart?: JsonObject;
}

export const usualCharge = "payment";

export function optionOf(option: PaymentOption): PaymentRequirements {
  return { scheme: "exact", description: "", mimeType: "application/json", maxTimeoutSeconds: 600, ...option };
}

/** Maximum size of the options and the cart, in bytes. Their row also stores the payment, and contains them twice after the payment. */
const maxBytes = 8 << 10;

/** Largest order, in bytes. Limited, because it is stored in a row. */
const maxOrder = 16 << 10;

/** @throws A2AError `InvalidAgentResponse` for a mistake of the agent. */
export function checkCharge({
  accepts,
  id = usualCharge,
  attempts = 1,
  cart,
  order,
}: Pick<ChargeInit<unknown, unknown>, "accepts" | "id" | "attempts" | "cart" | "order">): void {
  if (!/^[\w.:-]{1,100}$/.test(id)) throw mistake(call, "id must be 1 to 100 letters, digits and .:_-");
  if (!Number.isInteger(attempts) || attempts < 1 || attempts > 10)
    throw mistake(call, "attempts must be from 1 to 10");
  if (accepts.length === 0 || accepts.length > maxOptions)
    throw mistake(call, `accepts must have 1 to ${maxOptions} options`);
  for (const [at, option] of accepts.entries()) {
    if (fitting(requirementsSchema, optionOf(option)) === undefined) {
      throw mistake(
        call,
        `accepts[${at}] is not valid: amounts are decimal digits as text, and network, asset and payTo are texts`,
      );
    }
  }
  if (utf8Length(JSON.stringify([accepts.map(optionOf), cart])) > maxBytes) {
    throw mistake(call, `accepts and cart must not take more than ${maxBytes} bytes`);
  }
  if (order !== undefined && !isJson(order)) throw mistake(call, `order must be JSON of at most ${maxOrder} bytes`);
}

function isJson(order: unknown): boolean {
  try {
    const text: string | undefined = JSON.stringify(order);
    return text !== undefined && utf8Length(text) <= maxOrder;
  } catch {
    return false;
  }
}

/**
 * Thrown by `charge()` in the agent's function after it has asked for the payment. It ends the turn; the paying message
 * begins the next one. Do not catch it.
 */
export class PaymentRequired extends MessageRefused {
  /** Thrown by `charge()`. */
  constructor() {
    super([{ field: "message.parts", description: "must contain a payment" }], { ask: "Payment is required." });
  }
}

/**
 * Does the work of a charge. If it asks a question, the turn ends, and the next turn repeats the work with the verified
 * payment.
 */
export async function* worked<Result, Order>(
  work: Work<Result, Order> | undefined,
  order: Order,
): AsyncGenerator<AgentYield, Result, void> {
  const output = work?.(order);
  if (!isGenerator<Result>(output)) return (await output) as Result;
  let asked = false;
  try {
    for (;;) {
      const step = await output.next();
      if (step.done === true) {
        if (asked) throw new PaymentRequired();
        return step.value;
      }
      for (const event of eventsIn(step.value)) {
        const state = event.kind === "status" ? event.state : undefined;
        // The engine would end the function here, before the settlement.
        if (event.kind === "reply" || state === "TASK_STATE_COMPLETED") {
          throw mistake(call, "the work must not complete the task: charge() does, after the settlement");
        }
        asked ||= state === "TASK_STATE_INPUT_REQUIRED";
      }
      yield step.value;
    }
  } finally {
    await output.return(undefined as never);
  }
}

function eventsIn(output: AgentYield): readonly AgentEvent[] {
  return "kind" in output ? [output] : output;
}

function isGenerator<Result>(output: unknown): output is AsyncGenerator<AgentYield, Result, void> {
  return typeof output === "object" && output !== null && Symbol.asyncIterator in output;
}
