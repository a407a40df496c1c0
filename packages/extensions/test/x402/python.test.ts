import { describe, expect, test } from "vitest";
import { connect } from "@parley/a2a/internal/client/index";
import {
  createPayer,
  payWith,
  readPayment,
  testFacilitator,
  testWallet,
  x402,
  x402UriV01,
} from "../../src/x402/index.ts";
import { defineAgent } from "@parley/server/internal/agent/index";
import { text, type JsonObject, type Task } from "@parley/a2a/internal/model/index";
import { serving as served } from "../../../server/test/intask/support.ts";

/*
 * What `x402_a2a` for Python writes and reads (google-agentic-commerce/a2a-x402, python/x402_a2a, with `x402` 0.3 and `a2a-sdk` 0.3): A2A 0.3
 * over JSON-RPC, the URI of v0.1 under the old name of the header, and `null` for what is not set.
 */

/** As its `create_payment_requirements()` and `model_dump(by_alias=True)` write it. */
const requirements = {
  scheme: "exact",
  network: "base-sepolia",
  maxAmountRequired: "100",
  resource: "/test",
  description: "Test Payment",
  mimeType: "application/json",
  outputSchema: null,
  payTo: "0x123",
  maxTimeoutSeconds: 600,
  asset: "0x456",
  extra: null,
};
const asking = {
  "x402.payment.status": "payment-required",
  "x402.payment.required": { x402Version: 1, accepts: [requirements], error: "Payment is required" },
};
const completed = {
  "x402.payment.status": "payment-completed",
  "x402.payment.receipts": [
    { success: true, errorReason: null, transaction: "0x1", network: "base-sepolia", payer: "0x789" },
  ],
};
const failed = {
  "x402.payment.status": "payment-failed",
  "x402.payment.error": "INVALID_SIGNATURE",
  "x402.payment.receipts": [{ success: false, errorReason: "bad", transaction: null, network: "base", payer: null }],
};

const statusOf = (state: string, metadata: JsonObject) => ({
  state,
  message: {
    kind: "message",
    messageId: "task-123-status",
    role: "agent",
    parts: [{ kind: "text", text: "x402" }],
    metadata,
  },
});

/** A merchant in Python, as a client sees it. `last`: its final message. */
function merchant(last: JsonObject, state: string) {
  const calls: { readonly body: Record<string, unknown>; readonly extensions: string | null }[] = [];
  const card = {
    protocolVersion: "0.3.0",
    name: "Merchant",
    description: "Sells",
    url: "https://merchant.example/",
    preferredTransport: "JSONRPC",
    version: "1",
    capabilities: {
      streaming: false,
      extensions: [{ uri: x402UriV01, description: "Supports x402 payments", required: true }],
    },
    defaultInputModes: ["text"],
    defaultOutputModes: ["text"],
    skills: [],
  };
  const fetch = async (url: string, init: RequestInit = {}): Promise<Response> => {
    if (init.method !== "POST") {
      return /agent(-card)?\.json$/.test(url) ? Response.json(card) : new Response("", { status: 404 });
    }
    const body = JSON.parse(await new Response(init.body).text()) as Record<string, unknown>;
    calls.push({ body, extensions: new Headers(init.headers).get("x-a2a-extensions") });
    const status = calls.length === 1 ? statusOf("input-required", asking) : statusOf(state, last);
    return Response.json({
      jsonrpc: "2.0",
      id: body["id"],
      result: { kind: "task", id: "task-123", contextId: "c", status },
    });
  };
  return { calls, fetch };
}

describe("a client pays a merchant in Python", () => {
  const limits = [{ network: "base-sepolia", asset: "0x456", maxAmount: 100n, payTo: ["0x123"] }];

  test("reads the offer, pays in the expected form, and reads the receipt", async () => {
    const { calls, fetch } = merchant(completed, "completed");
    const client = await connect("https://merchant.example", { fetch, extensions: [x402()] });
    const payer = createPayer({ wallet: testWallet({ address: "0x789" }), limits });
    const { task, payment } = await payWith(client, payer, "a banana");
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(payment?.receipts).toEqual([{ success: true, transaction: "0x1", network: "base-sepolia", payer: "0x789" }]);
    expect(calls.map(({ extensions }) => extensions)).toEqual([
      expect.stringContaining(x402UriV01),
      expect.stringContaining(x402UriV01),
    ]);
    // The payload as its `get_payment_payload_from_message()` reads it.
    expect(calls[1]?.body).toMatchObject({
      method: "message/send",
      params: {
        message: {
          kind: "message",
          role: "user",
          taskId: "task-123",
          metadata: {
            "x402.payment.status": "payment-submitted",
            "x402.payment.payload": {
              x402Version: 1,
              scheme: "exact",
              network: "base-sepolia",
              payload: { authorization: { from: "0x789", to: "0x123", value: "100" } },
            },
          },
        },
      },
    });
  });

  test("reads why it failed", () => {
    const message = {
      messageId: "m",
      role: "ROLE_AGENT",
      parts: [{ text: "Payment failed." }],
      metadata: failed,
    } as const;
    const task: Task = { id: "1", status: { state: "TASK_STATE_FAILED", message } };
    expect(readPayment(task)).toEqual({
      status: "payment-failed",
      error: "INVALID_SIGNATURE",
      receipts: [{ success: false, errorReason: "bad", network: "base" }],
    });
  });
});

describe("a merchant is paid by a client in Python", () => {
  test("with messages of A2A 0.3 and the old name of the header", async () => {
    const facilitator = testFacilitator();
    const payments = x402({ facilitator });
    const { fetch } = served(
      defineAgent({
        name: "Painter",
        description: "Paints",
        version: "1",
        skills: [],
        resumable: true,
        extensions: [payments],
        async *onMessage(turn) {
          const charge = turn.ext(payments)?.charge({
            accepts: [
              { network: "base-sepolia", asset: "0x456", payTo: "0x123", maxAmountRequired: "100", resource: "/test" },
            ],
            async *work() {
              yield turn.artifact({ parts: [text("a banana")] });
            },
          });
          if (charge !== undefined) yield* charge;
        },
      }),
    );
    const send = async (message: object, extensions = x402UriV01): Promise<JsonObject> => {
      const headers = {
        "content-type": "application/json",
        authorization: "Bearer ada",
        "X-A2A-Extensions": extensions,
      };
      const body = { jsonrpc: "2.0", id: 1, method: "message/send", params: { message } };
      const response = await fetch("https://agents.example.com/", {
        method: "POST",
        headers,
        body: JSON.stringify(body),
      });
      expect(response.headers.get("x-a2a-extensions") ?? "").toContain(extensions);
      return ((await response.json()) as { readonly result: JsonObject }).result;
    };
    const text1 = { kind: "text", text: "a banana", metadata: null };
    const first = { kind: "message", messageId: "1", role: "user", parts: [text1] };
    const task = (await send(first)) as unknown as { id: string; status: { message: { metadata: typeof asking } } };
    const required = task.status.message.metadata["x402.payment.required"];
    // Members that its `PaymentRequirements` needs.
    expect(required.accepts[0]).toEqual({
      scheme: "exact",
      network: "base-sepolia",
      asset: "0x456",
      payTo: "0x123",
      maxAmountRequired: "100",
      resource: "/test",
      description: "",
      mimeType: "application/json",
      maxTimeoutSeconds: 600,
    });
    const [option] = required.accepts as unknown as readonly [
      Parameters<ReturnType<typeof testWallet>["sign"]>[0]["requirements"],
    ];
    const payload = await testWallet({ address: "0x789" }).sign({ requirements: option, x402Version: 1 });
    const paid = await send({
      contextId: null,
      extensions: null,
      kind: "message",
      messageId: "2",
      referenceTaskIds: null,
      role: "user",
      taskId: task.id,
      parts: [{ kind: "text", metadata: null, text: "Payment authorization provided" }],
      metadata: { "x402.payment.status": "payment-submitted", "x402.payment.payload": payload },
    });
    expect(paid).toMatchObject({
      status: {
        state: "completed",
        message: {
          metadata: { "x402.payment.status": "payment-completed", "x402.payment.receipts": facilitator.settled },
        },
      },
    });
    expect(facilitator.settled).toMatchObject([{ success: true, payer: "0x789", network: "base-sepolia" }]);
  });
});
