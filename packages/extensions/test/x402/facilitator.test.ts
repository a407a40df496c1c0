import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { errorCodeOf } from "../../src/x402/facilitator.ts";
import { httpFacilitator } from "../../src/x402/index.ts";
import { guardedFetch } from "@parley/a2a/internal/net/index";
import { option, paymentOf } from "./support.ts";

interface Call {
  readonly path: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
}

/** A facilitator over HTTP that gives these answers in order. */
async function facilitatorOf(...answers: readonly (readonly [status: number, body: string])[]) {
  const calls: Call[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      calls.push({ path: request.url, headers: request.headers, body: JSON.parse(text) });
      const [status, body] = answers[calls.length - 1] ?? [500, ""];
      response.writeHead(status, { "content-type": "application/json", location: "/elsewhere" }).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/facilitator/`;
  const fetch = guardedFetch({ allowLoopback: true, maxBytes: 65_536 });
  return { calls, url, facilitator: httpFacilitator(url, { fetch, headers: () => ({ authorization: "Bearer key" }) }) };
}

const request = { payment: paymentOf(), requirements: option };
const settling = { ...request, idempotencyKey: "key-1" };

describe("a facilitator with the public HTTP API", () => {
  test("verifies and settles with payment, option and key", async () => {
    const { calls, facilitator } = await facilitatorOf(
      [200, '{"isValid":true,"payer":"0x789","invalidReason":null}'],
      [200, '{"success":true,"transaction":"0xabc","network":"base","payer":"0x789","errorReason":null}'],
    );
    expect(await facilitator.verify(request)).toEqual({ isValid: true, payer: "0x789" });
    const receipt = { success: true, transaction: "0xabc", network: "base", payer: "0x789" };
    expect(await facilitator.settle(settling)).toEqual(receipt);
    const body = { x402Version: 1, paymentPayload: paymentOf(), paymentRequirements: option };
    expect(calls.map((call) => [call.path, call.body])).toEqual([
      ["/facilitator/verify", body],
      ["/facilitator/settle", body],
    ]);
    expect(calls.map(({ headers }) => [headers.authorization, headers["idempotency-key"]])).toEqual([
      ["Bearer key", undefined],
      ["Bearer key", "key-1"],
    ]);
  });

  test("may reject with an error status", async () => {
    const { facilitator } = await facilitatorOf(
      [400, '{"isValid":false,"invalidReason":"insufficient_funds"}'],
      [402, '{"success":false,"errorReason":"invalid_transaction_state","transaction":"","network":"base"}'],
    );
    expect(await facilitator.verify(request)).toMatchObject({ isValid: false, invalidReason: "insufficient_funds" });
    expect(await facilitator.settle(settling)).toMatchObject({ success: false });
  });

  test("does not verify with a positive answer under an error status", async () => {
    const { facilitator } = await facilitatorOf([500, '{"isValid":true}']);
    await expect(facilitator.verify(request)).rejects.toThrow("could not verify");
  });

  const unknown: readonly (readonly [name: string, status: number, body: string])[] = [
    ["an error of the server", 503, '{"success":false,"errorReason":"down","network":"base"}'],
    ["a page", 200, "<html>"],
    ["a yes that is an error", 400, '{"success":true,"transaction":"0xabc","network":"base"}'],
    ["another object", 200, '{"ok":true}'],
    ["nothing", 204, ""],
    ["a redirect, which is not followed", 307, ""],
    ["a settlement that continues", 200, '{"success":false,"errorReason":"settlement_pending","network":"base"}'],
    ["more than it may", 200, JSON.stringify({ success: true, transaction: "x".repeat(70_000) })],
  ];
  test.each(unknown)("has no outcome with %s", async (_, status, body) => {
    const { calls, facilitator } = await facilitatorOf([status, body]);
    await expect(facilitator.settle(settling)).rejects.toThrow(/could not settle|larger|too large|bytes/);
    expect(calls).toHaveLength(1);
  });

  test("is by default not called on this machine or without TLS", async () => {
    const { calls, url } = await facilitatorOf([200, '{"isValid":true}']);
    await expect(httpFacilitator(url).verify(request)).rejects.toThrow("Address refused");
    await expect(httpFacilitator("https://localhost").verify(request)).rejects.toThrow("Address refused");
    expect(calls).toEqual([]);
  });
});

test("reasons of public facilitators have the codes of the extension (v0.2 §9.1)", () => {
  const reasons = {
    insufficient_funds: "INSUFFICIENT_FUNDS",
    invalid_exact_evm_payload_signature: "INVALID_SIGNATURE",
    invalid_exact_evm_payload_authorization_valid_before: "EXPIRED_PAYMENT",
    invalid_exact_evm_payload_authorization_value: "INVALID_AMOUNT",
    invalid_exact_evm_nonce_already_used: "DUPLICATE_NONCE",
    invalid_network: "NETWORK_MISMATCH",
    unexpected_settle_error: "SETTLEMENT_FAILED",
  };
  const codes = Object.keys(reasons).map((reason) => errorCodeOf(reason, "SETTLEMENT_FAILED"));
  expect(codes).toEqual(Object.values(reasons));
});
