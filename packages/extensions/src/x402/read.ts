import type { JsonObject, Message, Part, Task } from "@parley/a2a/internal/model/index";
import { mandatePart, offerOfCart } from "./embedded.ts";
import { errorSchema, fitting, receiptsSchema, requiredSchema, statusSchema } from "./schemas.ts";
import {
  x402Keys,
  type PaymentPayload,
  type PaymentReceipt,
  type PaymentRequiredResponse,
  type PaymentStatus,
} from "./types.ts";

/** The payment of a task, as its agent shows it. */
export interface PaymentState {
  /** Where it is. */
  readonly status: PaymentStatus;
  /** What is asked for, where it is. */
  readonly required?: PaymentRequiredResponse;
  /** Whether that is in the metadata of the message, or in a cart of AP2 among the artifacts (v0.2 §4.2). */
  readonly flow?: "standalone" | "embedded";
  /** Every attempt so far. */
  readonly receipts: readonly PaymentReceipt[];
  /** Why it has failed: a code. */
  readonly error?: string;
}

/** What is asked for in a task, and the cart that has it. */
interface FoundOffer {
  readonly required?: PaymentRequiredResponse;
  readonly flow?: "standalone" | "embedded";
  readonly cart?: JsonObject;
}

/**
 * Reads the payment of a task (v0.2 §4.2). `undefined`: it is about no payment. The agent wrote it: what does not fit is absent.
 *
 * @example
 * ```ts
 * const client = await connect("https://agents.example.com", { extensions: [x402()] });
 * const { task } = await client.sendMessage("Draw a sailboat");
 * if (task !== undefined) console.log(readPayment(task)?.required?.accepts[0]?.maxAmountRequired);
 * ```
 */
export function readPayment(task: Pick<Task, "status" | "artifacts">): PaymentState | undefined {
  const metadata = task.status.message?.metadata ?? {};
  const status = fitting(statusSchema, metadata[x402Keys.status]);
  if (status === undefined) return undefined;
  const error = fitting(errorSchema, metadata[x402Keys.error]);
  const { required, flow } = status === "payment-required" ? offerOf(task) : {};
  return {
    status,
    ...(required !== undefined && flow !== undefined && { required, flow }),
    receipts: fitting(receiptsSchema, metadata[x402Keys.receipts]) ?? [],
    ...(error !== undefined && { error }),
  };
}

/** What is asked for. Where the key is there and does not fit, it is not looked for elsewhere. */
function offerOf(task: Pick<Task, "status" | "artifacts">): FoundOffer {
  const value = task.status.message?.metadata?.[x402Keys.required] ?? undefined;
  if (value !== undefined) {
    const required = fitting(requiredSchema, value);
    return required === undefined ? {} : { required, flow: "standalone" };
  }
  const found = offerOfCart(task);
  return found === undefined ? {} : { ...found, flow: "embedded" };
}

/** The message that submits a payment: the payment is where the flow has it. */
export function submission(
  task: Task,
  payload: PaymentPayload,
  createdAt: string,
): Pick<Message, "parts" | "metadata"> {
  const { flow, cart } = offerOf(task);
  const status = { [x402Keys.status]: "payment-submitted" };
  if (flow === "embedded" && cart !== undefined)
    return { parts: [mandatePart(cart, payload, createdAt)], metadata: status };
  return { parts: said, metadata: { ...status, [x402Keys.payload]: payload as unknown as JsonObject } };
}

const said: readonly Part[] = [{ text: "Here is the payment authorization." }];
