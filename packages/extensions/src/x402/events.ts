import {
  partsOf,
  type Content,
  type JsonObject,
  type JsonValue,
  type TaskState,
} from "@parley/a2a/internal/model/index";
import type { AgentEvent, ArtifactEvent, StatusEvent } from "@parley/a2a/internal/protocol/index";
import { cartPart } from "./embedded.ts";
import type { StoredCharge } from "./stored.ts";
import {
  x402Keys,
  x402Version,
  type PaymentReceipt,
  type PaymentRequiredResponse,
  type PaymentStatus,
} from "./types.ts";

/* The events of a payment: statuses whose messages have the metadata of the extension. */

/** What is said with a status. */
interface Saying {
  readonly uri: string;
  readonly state: TaskState;
  readonly status: PaymentStatus;
  readonly content: Content;
  readonly receipts?: readonly PaymentReceipt[];
  readonly more?: JsonObject;
}

/** A status about a payment. It enters the history, whatever its state is. */
export function paymentEvent({ uri, state, status, content, receipts = [], more }: Saying): StatusEvent {
  const metadata: JsonObject = { [x402Keys.status]: status, ...more, ...receiptsOf(receipts) };
  return {
    kind: "status",
    state,
    message: { parts: partsOf(content), metadata, extensions: [uri] },
    ...(state === "TASK_STATE_WORKING" && { keep: true }),
  };
}

function receiptsOf(receipts: readonly PaymentReceipt[]): JsonObject {
  return receipts.length === 0 ? {} : { [x402Keys.receipts]: receipts as unknown as JsonValue };
}

/** The question: with the options in its metadata (v0.2 §5.3), or without them where a cart has them. */
export function questionEvent(
  uri: string,
  charge: StoredCharge,
  content: Content,
  receipts: readonly PaymentReceipt[],
): StatusEvent {
  const more = charge.cart === undefined ? { [x402Keys.required]: requiredOf(charge) as unknown as JsonObject } : {};
  const state = "TASK_STATE_INPUT_REQUIRED";
  return paymentEvent({ uri, state, status: "payment-required", content, receipts, more });
}

/** The artifact with the cart of an embedded flow. */
export function cartEvent(uri: string, id: string, charge: StoredCharge, cart: JsonObject): ArtifactEvent {
  const artifact = {
    // A new offer replaces the cart of the one before.
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

/** A payment that has failed: the task fails with it, or goes on to ask again. */
export function failedEvent(
  uri: string,
  { problem }: StoredCharge,
  state: "TASK_STATE_FAILED" | "TASK_STATE_WORKING",
  receipts: readonly PaymentReceipt[],
): StatusEvent {
  const { code = "SETTLEMENT_FAILED", reason = "The payment has failed." } = problem ?? {};
  const more = { [x402Keys.error]: code };
  return paymentEvent({ uri, state, status: "payment-failed", content: `Payment failed. ${reason}`, receipts, more });
}

/** The last word of an agent, with every receipt of its task (v0.1 §4.5: "final TaskStatus.message"). */
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
