import { utf8Length } from "@parley/a2a/internal/base/index";
import type { JsonObject, JsonValue, Part, Task } from "@parley/a2a/internal/model/index";
import { isObject } from "@parley/a2a/internal/model/schema";
import { fitting, maxCart, payloadSchema, requiredSchema } from "./schemas.ts";
import { x402Keys, type PaymentPayload, type PaymentRequiredResponse } from "./types.ts";

/*
 * Payments inside of another protocol (v0.2 §4): an artifact with a cart of AP2 has what is asked for, and a data part of the message with
 * a mandate has the payment. The specification, the types of AP2 and the public demo have three forms of both; all of them are read.
 */

const cartKey = "ap2.mandates.CartMandate";
const mandateKey = "ap2.mandates.PaymentMandate";
/** The payment method of x402, as W3C Payment Request names methods. */
const x402Method = "https://www.x402.org/";

/** A cart, and what it asks for. */
export interface EmbeddedOffer {
  readonly required: PaymentRequiredResponse;
  /** The whole cart mandate. */
  readonly cart: JsonObject;
}

/** What a task asks for in a cart of at most 32 KiB. The newest artifact counts. */
export function offerOfCart({ artifacts = [] }: Pick<Task, "artifacts">): EmbeddedOffer | undefined {
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
  if (!Array.isArray(methods)) return undefined;
  for (const method of methods as readonly unknown[]) {
    if (!isObject(method) || !isX402(method["supported_methods"])) continue;
    const data = objectAt(method as JsonObject, "data");
    const required = fitting(requiredSchema, data?.[x402Keys.required] ?? data);
    if (required !== undefined) return required;
  }
  return undefined;
}

/** The payment of a mandate. */
export function paymentOfMandate(parts: readonly Part[]): PaymentPayload | undefined {
  for (const part of parts) {
    const mandate = memberOf(part, mandateKey);
    if (mandate === undefined) continue;
    for (const found of paymentsIn(mandate)) {
      const data = found?.[x402Keys.payload] ?? found;
      const payment = fitting(payloadSchema, isObject(data) ? withVersion(data) : data);
      if (payment !== undefined) return payment;
    }
  }
  return undefined;
}

/** The places of the payment: of the specification, and of the types of AP2. */
function paymentsIn(mandate: JsonObject): readonly (JsonObject | undefined)[] {
  const details = objectAt(mandate, "payment_details");
  const response = objectAt(objectAt(mandate, "payment_mandate_contents"), "payment_response");
  return [objectAt(objectAt(details, "payment_method"), "data"), objectAt(response, "details")];
}

/** The demo writes the name as Python has it. */
function withVersion(data: JsonObject): JsonObject {
  const { x402_version: version, ...rest } = data as JsonObject & { readonly x402_version?: JsonValue };
  return version === undefined ? data : { x402Version: version, ...rest };
}

/** The part of a message with a mandate that pays a cart, in the form of the specification (v0.2 §5.5). */
export function mandatePart(cart: JsonObject, payload: PaymentPayload, createdAt: string): Part {
  const request = objectAt(cart, "payment_request") ?? objectAt(objectAt(cart, "contents"), "payment_request");
  const details = objectAt(request, "details");
  const total = objectAt(details, "total");
  return {
    data: {
      [mandateKey]: {
        payment_details: {
          payment_request_id: details?.["id"] ?? "",
          payment_method: { supported_methods: x402Method, data: payload as unknown as JsonObject },
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
  const method = { supported_methods: x402Method, data: required as unknown as JsonObject };
  return { data: { [cartKey]: { ...cart, payment_request: { ...request, method_data: [method] } } } };
}

function isX402(methods: unknown): boolean {
  const names: readonly unknown[] = Array.isArray(methods) ? methods : [methods];
  return names.some((each) => typeof each === "string" && /^https:\/\/(?:www\.)?x402\.org\/?$/.test(each));
}

function memberOf({ data }: Part, key: string): JsonObject | undefined {
  return isObject(data) ? objectAt(data, key) : undefined;
}

function objectAt(value: JsonObject | undefined, key: string): JsonObject | undefined {
  const member = value !== undefined && Object.hasOwn(value, key) ? value[key] : undefined;
  return isObject(member) ? member : undefined;
}
