import type { JsonObject, Message, Part, Task } from "@parley/a2a/internal/model/index";
import { utf8Length } from "@parley/a2a/internal/base/index";
import { fitting, isJsonList, isJsonObject, jsonOf } from "../shared/values.ts";
import {
  errorSchema,
  maxCart,
  payloadSchema,
  receiptsSchema,
  requiredSchema,
  statusSchema,
  type PaymentPayload,
  type PaymentReceipt,
  type PaymentRequiredResponse,
  type PaymentStatus,
  x402Keys,
} from "./types.ts";

/** The payment of a task, as its agent reports it. */
export interface PaymentState {
  /** Its state. */
  readonly status: PaymentStatus;
  /** The offer, if there is one. */
  readonly required?: PaymentRequiredResponse;
  /** Whether the offer is in the metadata of the message, or in an AP2 cart among the artifacts (v0.2 §4.2). */
  readonly flow?: "standalone" | "embedded";
  /** Every attempt so far. */
  readonly receipts: readonly PaymentReceipt[];
  /** Error code of a failed payment. */
  readonly error?: string;
}

interface FoundOffer {
  readonly required?: PaymentRequiredResponse;
  readonly flow?: "standalone" | "embedded";
  readonly cart?: JsonObject;
}

/**
 * Reads the payment of a task (v0.2 §4.2); `undefined` if the task is not about a payment. Members of the wrong shape
 * are left out.
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

/** The offer. If the key exists with an invalid value, the search ends there. */
function offerOf(task: Pick<Task, "status" | "artifacts">): FoundOffer {
  const value = task.status.message?.metadata?.[x402Keys.required] ?? undefined;
  if (value !== undefined) {
    const required = fitting(requiredSchema, value);
    return required === undefined ? {} : { required, flow: "standalone" };
  }
  const found = offerOfCart(task);
  return found === undefined ? {} : { ...found, flow: "embedded" };
}

/** The paying message, in the form of the flow. */
export function submission(
  task: Task,
  payload: PaymentPayload,
  createdAt: string,
): Pick<Message, "parts" | "metadata"> {
  const { flow, cart } = offerOf(task);
  const status = { [x402Keys.status]: "payment-submitted" };
  if (flow === "embedded" && cart !== undefined)
    return { parts: [mandatePart(cart, payload, createdAt)], metadata: status };
  return { parts: paymentText, metadata: { ...status, [x402Keys.payload]: jsonOf(payload) } };
}

const paymentText: readonly Part[] = [{ text: "Here is the payment authorization." }];

/*
 * Payments inside another protocol (v0.2 §4): an artifact with an AP2 cart has the offer, and a data part with a
 * mandate has the payment. The specification, the types of AP2 and the public demo have three forms of both; all are
 * read.
 */

const cartKey = "ap2.mandates.CartMandate";
const mandateKey = "ap2.mandates.PaymentMandate";
/** The payment method of x402 in W3C Payment Request. */
const x402Method = "https://www.x402.org/";

interface EmbeddedOffer {
  readonly required: PaymentRequiredResponse;
  readonly cart: JsonObject;
}

/** The offer in the newest cart of at most 32 KiB. */
function offerOfCart({ artifacts = [] }: Pick<Task, "artifacts">): EmbeddedOffer | undefined {
  for (const { parts } of [...artifacts].reverse()) {
    for (const part of parts) {
      const cart = memberOf(part, cartKey);
      const isSmall = cart !== undefined && utf8Length(JSON.stringify(cart)) <= maxCart;
      const required = isSmall ? requiredOf(cart) : undefined;
      if (cart !== undefined && required !== undefined) return { cart, required };
    }
  }
  return undefined;
}

function requiredOf(cart: JsonObject): PaymentRequiredResponse | undefined {
  const request = objectAt(cart, "payment_request") ?? objectAt(objectAt(cart, "contents"), "payment_request");
  const methods = request?.["method_data"];
  for (const method of isJsonList(methods) ? methods : []) {
    if (!isJsonObject(method) || !isX402(method["supported_methods"])) continue;
    const data = objectAt(method, "data");
    const required = fitting(requiredSchema, data?.[x402Keys.required] ?? data);
    if (required !== undefined) return required;
  }
  return undefined;
}

export function paymentOfMandate(parts: readonly Part[]): PaymentPayload | undefined {
  for (const part of parts) {
    const mandate = memberOf(part, mandateKey);
    if (mandate === undefined) continue;
    for (const found of paymentsIn(mandate)) {
      const data = found?.[x402Keys.payload] ?? found;
      const payment = fitting(payloadSchema, isJsonObject(data) ? withVersion(data) : data);
      if (payment !== undefined) return payment;
    }
  }
  return undefined;
}

/** The possible places of the payment: the specification's, and the AP2 types'. */
function paymentsIn(mandate: JsonObject): readonly (JsonObject | undefined)[] {
  const details = objectAt(mandate, "payment_details");
  const response = objectAt(objectAt(mandate, "payment_mandate_contents"), "payment_response");
  return [objectAt(objectAt(details, "payment_method"), "data"), objectAt(response, "details")];
}

/** The public demo uses the Python name of the version. */
function withVersion(data: JsonObject): JsonObject {
  const { x402_version: version, ...rest } = data;
  return version === undefined ? data : { x402Version: version, ...rest };
}

/** The part with a mandate that pays a cart, in the form of the specification (v0.2 §5.5). */
function mandatePart(cart: JsonObject, payload: PaymentPayload, createdAt: string): Part {
  const request = objectAt(cart, "payment_request") ?? objectAt(objectAt(cart, "contents"), "payment_request");
  const details = objectAt(request, "details");
  const total = objectAt(details, "total");
  return {
    data: {
      [mandateKey]: {
        payment_details: {
          payment_request_id: details?.["id"] ?? "",
          payment_method: { supported_methods: x402Method, data: jsonOf(payload) },
          ...(total?.["amount"] !== undefined && { amount: total["amount"] }),
        },
        creation_time: createdAt,
      },
    },
  };
}

/** The part of an artifact with a cart. `cart`: its other members. */
export function cartPart(cart: JsonObject, required: PaymentRequiredResponse): Part {
  const request = objectAt(cart, "payment_request") ?? {};
  const method = { supported_methods: x402Method, data: jsonOf(required) };
  return { data: { [cartKey]: { ...cart, payment_request: { ...request, method_data: [method] } } } };
}

function isX402(methods: unknown): boolean {
  const names: readonly unknown[] = Array.isArray(methods) ? methods : [methods];
  return names.some((each) => typeof each === "string" && /^https:\/\/(?:www\.)?x402\.org\/?$/.test(each));
}

function memberOf({ data }: Part, key: string): JsonObject | undefined {
  return isJsonObject(data) ? objectAt(data, key) : undefined;
}

function objectAt(value: JsonObject | undefined, key: string): JsonObject | undefined {
  const member = value !== undefined && Object.hasOwn(value, key) ? value[key] : undefined;
  return isJsonObject(member) ? member : undefined;
}
