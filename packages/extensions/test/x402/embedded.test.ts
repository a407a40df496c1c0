import { describe, expect, test } from "vitest";
import { createPayer, payWith, readPayment, x402Keys } from "../../src/x402/index.ts";
import { paymentOfMandate } from "../../src/x402/read.ts";
import type { JsonObject, JsonValue, Message, Part, Task } from "@parley/a2a/internal/model/index";
import { option, paymentOf } from "./support.ts";
import { painting, said, serving } from "./serving.ts";

const required = { x402Version: 1, accepts: [option] } as unknown as JsonObject;
const method = (data: JsonValue) => [{ supported_methods: "https://www.x402.org/", data }];
const details = { id: "order_shoes_123", total: { amount: { currency: "USD", value: 120 } } };

/** A task that asks for a payment, with a cart among its artifacts. */
function taskWith(cart: JsonValue, metadata: JsonObject = {}): Task {
  const message = {
    messageId: "m",
    role: "ROLE_AGENT",
    parts: [{ text: "Payment is required for this cart." }],
    metadata: { [x402Keys.status]: "payment-required", ...metadata },
  } as unknown as Message;
  const other = { artifactId: "other", parts: [{ text: "A shoe" }, { data: [1] }, { data: null }] };
  const artifact = {
    artifactId: "cart",
    name: "AP2 CartMandate",
    parts: [{ data: { "ap2.mandates.CartMandate": cart } }],
  };
  return { id: "1", status: { state: "TASK_STATE_INPUT_REQUIRED", message }, artifacts: [artifact, other] };
}

describe("an AP2 payment is found in an artifact (v0.2 §4.2)", () => {
  const carts: readonly (readonly [name: string, cart: JsonValue])[] = [
    ["the specification", { id: "cart_shoes_123", payment_request: { method_data: method(required), details } }],
    ["the types of AP2", { contents: { id: "c", payment_request: { method_data: method(required), details } } }],
    [
      "the public demo",
      { contents: { id: "c", payment_request: { method_data: method({ [x402Keys.required]: required }), details } } },
    ],
    [
      "a list of methods",
      { payment_request: { method_data: [{ supported_methods: ["CARD", "https://www.x402.org/"], data: required }] } },
    ],
  ];
  test.each(carts)("in the form of %s", (_, cart) => {
    expect(readPayment(taskWith(cart))).toMatchObject({ flow: "embedded", required: { accepts: [option] } });
  });

  test("unless the metadata has one, which takes precedence", () => {
    const cart = { payment_request: { method_data: method(required) } };
    const own = { x402Version: 1, accepts: [{ ...option, maxAmountRequired: "1" }] } as unknown as JsonObject;
    const read = readPayment(taskWith(cart, { [x402Keys.required]: own }));
    expect(read).toMatchObject({ flow: "standalone", required: { accepts: [{ maxAmountRequired: "1" }] } });
    // A mismatch is not replaced by something else.
    expect(readPayment(taskWith(cart, { [x402Keys.required]: { x402Version: 1 } }))?.required).toBe(undefined);
  });

  const wrong: readonly JsonValue[] = [
    null,
    [],
    "cart",
    {},
    { payment_request: [] },
    { payment_request: { method_data: "x402" } },
    { payment_request: { method_data: [null, 1, { supported_methods: "CARD", data: required }] } },
    { payment_request: { method_data: method({ x402Version: 1, accepts: [] }) } },
    { payment_request: { method_data: [{ supported_methods: "https://www.x402.org.evil.example/", data: required }] } },
  ];
  test.each(wrong.map((cart) => [cart]))("and not in %j", (cart) => {
    expect(readPayment(taskWith(cart))).toEqual({ status: "payment-required", receipts: [] });
  });
});

describe("a payment mandate has the payment", () => {
  const payment = paymentOf() as unknown as JsonObject;
  const { x402Version, ...rest } = payment;
  const mandates: readonly (readonly [name: string, mandate: JsonValue])[] = [
    ["the specification", { payment_details: { payment_method: { data: payment } } }],
    ["the types of AP2", { payment_mandate_contents: { payment_response: { details: payment } } }],
    [
      "the public demo",
      { payment_mandate_contents: { payment_response: { details: { ...rest, x402_version: x402Version ?? 1 } } } },
    ],
  ];
  test.each(mandates)("in the form of %s", (_, mandate) => {
    const parts: readonly Part[] = [{ text: "Pay" }, { data: { "ap2.mandates.PaymentMandate": mandate } }];
    expect(paymentOfMandate(parts)).toEqual(paymentOf());
  });

  test("or none", () => {
    const none: readonly JsonValue[] = [null, {}, { payment_details: [] }, { payment_details: { payment_method: {} } }];
    for (const mandate of none) {
      expect(paymentOfMandate([{ data: { "ap2.mandates.PaymentMandate": mandate } }])).toBe(undefined);
    }
  });
});

describe("an agent sells a cart, and a client pays it (v0.2 §5.3, §5.5)", () => {
  const cart = { id: "cart_1", payment_request: { details }, merchant_signature: "sig" };
  const limits = [{ network: "base", asset: option.asset, maxAmount: "50000000" }];
  /** A mandate is data. */
  const agent = { defaultInputModes: ["text/plain", "application/json"] };

  test("with the options in the artifact, and the payment in a mandate", async () => {
    const { client, wallet, under, facilitator } = await serving({
      onMessage: painting({ cart }),
      agent,
      version: "0.2",
    });
    const { task: asking } = await client.sendMessage("a boat");
    expect(said(asking)).toEqual({ [x402Keys.status]: "payment-required" });
    expect(asking?.artifacts?.[0]).toMatchObject({
      name: "AP2 CartMandate",
      parts: [
        {
          data: {
            "ap2.mandates.CartMandate": { id: "cart_1", payment_request: { details }, merchant_signature: "sig" },
          },
        },
      ],
    });
    const payer = createPayer({ wallet, limits, now: () => under.clock.now() });
    const { task } = await payer.pay(client, asking as Task);
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(said(task)[x402Keys.receipts]).toEqual(facilitator.settled);
    const sent = task.history?.find(({ metadata }) => metadata?.[x402Keys.status] === "payment-submitted");
    expect(sent?.metadata).toEqual({ [x402Keys.status]: "payment-submitted" });
    expect(sent?.parts[0]?.data).toMatchObject({
      "ap2.mandates.PaymentMandate": {
        payment_details: {
          payment_request_id: "order_shoes_123",
          payment_method: { supported_methods: "https://www.x402.org/", data: { network: "base", scheme: "exact" } },
          amount: { currency: "USD", value: 120 },
        },
      },
    });
  });

  test("and a payment in the metadata is rejected (v0.2 §7, MUST NOT)", async () => {
    const { client } = await serving({ onMessage: painting({ cart }), agent });
    const { task } = await client.sendMessage("a boat");
    const metadata = {
      [x402Keys.status]: "payment-submitted",
      [x402Keys.payload]: paymentOf() as unknown as JsonObject,
    };
    const base = { role: "ROLE_USER", taskId: task?.id ?? "", parts: [{ text: "paid" }] } as const;
    await expect(client.sendMessage({ message: { ...base, messageId: "a", metadata } })).rejects.toMatchObject({
      fields: [{ field: "message.metadata.x402.payment.payload" }],
    });
    const status = { [x402Keys.status]: "payment-submitted" };
    await expect(client.sendMessage({ message: { ...base, messageId: "b", metadata: status } })).rejects.toMatchObject({
      fields: [{ field: "message.parts" }],
    });
  });

  test("by one call", async () => {
    const { client, wallet, under } = await serving({ onMessage: painting({ cart }), agent });
    const payer = createPayer({ wallet, limits, now: () => under.clock.now() });
    expect((await payWith(client, payer, "a boat")).task?.status.state).toBe("TASK_STATE_COMPLETED");
  });
});
