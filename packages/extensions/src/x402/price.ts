import { utf8Length } from "@parley/a2a/internal/base/index";
import { A2AError, type Content, type JsonObject } from "@parley/a2a/internal/model/index";
import { type AgentYield, MessageRefused } from "@parley/a2a/internal/protocol/index";
import { fitting, maxOptions, requirementsSchema } from "./schemas.ts";
import type { PaymentRequirements } from "./types.ts";

/* What an agent asks for. */

/** One way to pay, as an agent says it. What is not said has a default. */
export interface PaymentOption extends Omit<PaymentRequirements, "scheme" | "resource"> {
  /** How it is paid. Default `exact`. */
  readonly scheme?: string;
  /** What is bought, such as the id of a skill or a URL. Facilitators need it. */
  readonly resource: string;
  /** For how many seconds the offer holds. Default 600. */
  readonly maxTimeoutSeconds?: number;
}

/** The work that is paid: it yields events, or returns a value, or both. It gets what was priced, see `ChargeInit.order`. */
export type Work<Result, Order = undefined> = (
  order: Order,
) => AsyncGenerator<AgentYield, Result, void> | Promise<Result> | Result;

/** What `charge()` takes. */
export interface ChargeInit<Result = void, Order = undefined> {
  /**
   * The ways to pay, of which the client chooses one: 1 to 16. The price may depend on the message. What was offered holds until it expires,
   * whatever later messages say, also the one that pays: so say in `order` what it is for.
   */
  readonly accepts: readonly PaymentOption[];
  /**
   * What the price is for: JSON of at most 16 KiB, such as what the message asked for. It is kept with the offer, and `work` and `deliver` get it as it
   * was then, whatever is here in a later turn, and whatever the message that pays says. Nothing else binds the work to its price: without it
   * use nothing in the work that a later message could change. After a payment that failed the same is offered at the same price; after an offer that has
   * expired, what is here then, at the price of then. Default: nothing.
   */
  readonly order?: Order;
  /**
   * The work. It is done after the payment is verified and before it is settled, so nobody pays for work that fails. A run that is resumed
   * does it again. It may ask questions, and must not complete the task. Default: nothing.
   */
  readonly work?: Work<Result, Order>;
  /** Makes the result known once the payment is settled. Default: nothing, since the work has said all. */
  readonly deliver?: (result: Result, order: Order) => AgentYield;
  /** Names the charge, unique in its task, for agents that charge several times. At most 100 characters. Default `payment`. */
  readonly id?: string;
  /** The text of the question. Default `Payment is required.` */
  readonly ask?: Content;
  /** The text of the last status. Default `Payment completed.` */
  readonly done?: Content;
  /** How many payments may be tried, 1 to 10: after one that failed before the work, the agent asks again. Default 1: the task fails. */
  readonly attempts?: number;
  /**
   * Whether the task is completed with the settlement. With `false` the function goes on, and has to end the task with a status that has a
   * message, or with a reply: the receipts are added to it. Default true.
   */
  readonly completes?: boolean;
  /**
   * Sells in the embedded flow (v0.2 §4): the options are in an artifact with an AP2 cart mandate, which has these members besides, and
   * the payment comes in an AP2 payment mandate, which is data: `defaultInputModes` needs `application/json`. `payment_request.details` has
   * the order.
   */
  readonly cart?: JsonObject;
}

/** The name of a charge without an `id`. */
export const usualCharge = "payment";

/** An option with its defaults. */
export function optionOf(option: PaymentOption): PaymentRequirements {
  return { scheme: "exact", description: "", mimeType: "application/json", maxTimeoutSeconds: 600, ...option };
}

/** Most bytes of the options and the cart: they are kept in a row, twice where one is paid, together with the payment. */
const maxBytes = 8 << 10;

/** Most bytes of what is priced: it is kept in a row. */
const maxOrder = 16 << 10;

/** @throws A2AError `InvalidAgentResponse` where the agent has made a mistake. */
export function checkCharge({
  accepts,
  id = usualCharge,
  attempts = 1,
  cart,
  order,
}: Pick<ChargeInit<unknown, unknown>, "accepts" | "id" | "attempts" | "cart" | "order">): void {
  if (!/^[\w.:-]{1,100}$/.test(id)) throw mistake("id must be 1 to 100 letters, digits and .:_-");
  if (!Number.isInteger(attempts) || attempts < 1 || attempts > 10) throw mistake("attempts must be from 1 to 10");
  if (accepts.length === 0 || accepts.length > maxOptions)
    throw mistake(`accepts must have 1 to ${maxOptions} options`);
  for (const [at, option] of accepts.entries()) {
    if (fitting(requirementsSchema, optionOf(option)) === undefined) {
      throw mistake(
        `accepts[${at}] is not valid: amounts are decimal digits as text, and network, asset and payTo are texts`,
      );
    }
  }
  if (utf8Length(JSON.stringify([accepts.map(optionOf), cart])) > maxBytes) {
    throw mistake(`accepts and cart must not take more than ${maxBytes} bytes`);
  }
  if (order !== undefined && !isJson(order)) throw mistake(`order must be JSON of at most ${maxOrder} bytes`);
}

function isJson(order: unknown): boolean {
  try {
    const text = JSON.stringify(order) as string | undefined;
    return text !== undefined && utf8Length(text) <= maxOrder;
  } catch {
    return false;
  }
}

/** A mistake of the agent: the operator reads it, and the task fails. */
export function mistake(text: string): A2AError {
  return new A2AError("InvalidAgentResponse", `charge(): ${text}`);
}

/**
 * Thrown by `charge()` in the agent's function, after it has asked for the payment: the turn ends, and the message with the payment begins
 * the next one. There is no need to catch it.
 */
export class PaymentRequired extends MessageRefused {
  /** `charge()` makes these. */
  constructor() {
    super([{ field: "message.parts", description: "have no payment" }], { ask: "Payment is required." });
  }
}

/**
 * Does the work of a charge. Where it asks its user a question, the turn ends here, and the next one does the work again, with the payment
 * that is verified.
 *
 * @param order - What was priced.
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
      for (const event of Array.isArray(step.value) ? step.value : [step.value]) {
        const { kind, state } = event as { readonly kind?: string; readonly state?: string };
        // The engine would end the function there, and nothing would be settled.
        if (kind === "reply" || state === "TASK_STATE_COMPLETED") {
          throw mistake("the work must not complete the task: charge() does, after the settlement");
        }
        asked ||= state === "TASK_STATE_INPUT_REQUIRED";
      }
      yield step.value;
    }
  } finally {
    await output.return(undefined as never);
  }
}

function isGenerator<Result>(output: unknown): output is AsyncGenerator<AgentYield, Result, void> {
  return typeof output === "object" && output !== null && Symbol.asyncIterator in output;
}
