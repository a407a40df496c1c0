import { describe, expect, test } from "vitest";
import {
  testFacilitator,
  testWallet,
  x402Keys,
  type PaymentErrorCode,
  type TestFacilitatorOptions,
} from "../../src/x402/index.ts";
import type { JsonObject } from "@parley/a2a/internal/model/index";
import { gate } from "../../../server/test/engine/support.ts";
import { option, paymentOf } from "./support.ts";
import { painting, said, serving, statesOf, submitted, type SubmittedChange } from "./serving.ts";

const address = "0x857b06519E91e3A54538791bDbb0E22373e36b66";

describe("a failing payment (v0.1 §8, v0.2 §9)", () => {
  type Case = readonly [
    code: PaymentErrorCode,
    change: SubmittedChange,
    options: TestFacilitatorOptions,
    states: string,
  ];
  const early = "payment-required payment-submitted payment-failed";
  const late = "payment-required payment-submitted payment-verified payment-failed";
  const cases: readonly Case[] = [
    ["INSUFFICIENT_FUNDS", {}, { funds: { [address]: 1n } }, early],
    ["INVALID_SIGNATURE", { authorization: { validAfter: "1" } }, {}, early],
    ["INVALID_SIGNATURE", {}, { verify: [{ reason: "unexpected_verify_error" }] }, early],
    ["EXPIRED_PAYMENT", { authorization: { validBefore: "1" } }, {}, early],
    ["NETWORK_MISMATCH", { payment: { network: "base-sepolia" } }, {}, early],
    ["INVALID_AMOUNT", { authorization: { value: "1" } }, {}, early],
    ["SETTLEMENT_FAILED", {}, { settle: [{ reason: "invalid_transaction_state" }] }, late],
    ["INSUFFICIENT_FUNDS", {}, { settle: [{ reason: "insufficient_funds" }] }, late],
  ];
  test.each(cases)("fails the task with %s", async (code, change, options, states) => {
    const facilitator = testFacilitator(options);
    const { client, pay } = await serving({ facilitator });
    const failed = await pay((await client.sendMessage("a boat")).task, change);
    expect(failed.status.state).toBe("TASK_STATE_FAILED");
    expect(said(failed)).toEqual({
      [x402Keys.status]: "payment-failed",
      [x402Keys.error]: code,
      [x402Keys.receipts]: [
        {
          success: false,
          transaction: "",
          network: expect.any(String) as string,
          errorReason: expect.any(String) as string,
        },
      ],
    });
    expect(failed.status.message?.parts[0]?.text).toMatch(/^Payment failed\. /);
    expect(statesOf(failed)).toEqual(states.split(" "));
    expect(facilitator.settled).toEqual([]);
  });

  test("uses a nonce once, across tasks and callers of the agent (DUPLICATE_NONCE)", async () => {
    const { under, client, wallet, facilitator, payments } = await serving({ wallet: { nonce: () => 7n } });
    const bob = await under.as("bob");
    const { task: first } = await client.sendMessage("a boat");
    const { task: second } = await client.sendMessage("a tree");
    const ofBob = await bob.sendMessage("a house", { extensions: [payments.uri] });
    const message = await submitted(wallet, first);
    expect((await client.sendMessage({ message })).task?.status.state).toBe("TASK_STATE_COMPLETED");
    const again = (taskId = "", messageId = "") => ({ message: { ...message, taskId, messageId } });
    const { task: twice } = await client.sendMessage(again(second?.id, "m2"));
    const { task: stolen } = await bob.sendMessage(again(ofBob.task?.id, "m3"), { extensions: [payments.uri] });
    for (const task of [twice, stolen]) {
      expect(task?.status.state).toBe("TASK_STATE_FAILED");
      expect(said(task)[x402Keys.error]).toBe("DUPLICATE_NONCE");
    }
    expect(facilitator.settled).toHaveLength(1);
    expect(facilitator.calls.settle).toBe(1);
  });

  test("uses it once even before the network knows it: two concurrent tasks, one payment", async () => {
    const { client, wallet, facilitator } = await serving({ wallet: { nonce: () => 7n } });
    const tasks = await Promise.all([1, 2, 3, 4].map(() => client.sendMessage("a boat")));
    const message = await submitted(wallet, tasks[0]?.task);
    const paid = await Promise.all(
      tasks.map(({ task }, at) =>
        client.sendMessage({ message: { ...message, taskId: task?.id ?? "", messageId: `same-${at}` } }),
      ),
    );
    const states = paid.map(({ task }) => String(task?.status.state)).sort((one, other) => one.localeCompare(other));
    expect(states).toEqual(["TASK_STATE_COMPLETED", ...Array.from({ length: 3 }, () => "TASK_STATE_FAILED")]);
    expect(facilitator.calls.settle).toBe(1);
  });

  test("cannot use up the nonce of another payer: an invalid signature claims nothing", async () => {
    const { client, pay } = await serving({ wallet: { nonce: () => 7n } });
    const { task: attack } = await client.sendMessage("a boat");
    const { task } = await client.sendMessage("a boat");
    const forged = await pay(attack, { payment: {}, authorization: { validAfter: "2" } });
    expect(said(forged)[x402Keys.error]).toBe("INVALID_SIGNATURE");
    expect((await pay(task)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("may be retried if the agent allows it, with a receipt for every attempt", async () => {
    const { client, pay, facilitator } = await serving({ onMessage: painting({ attempts: 3 }) });
    const { task } = await client.sendMessage("a boat");
    const asked = await pay(task, { authorization: { value: "1" } });
    expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(said(asked)).toMatchObject({
      [x402Keys.status]: "payment-required",
      [x402Keys.required]: { accepts: [option], error: "The payment does not have the amount that was asked for." },
      [x402Keys.receipts]: [{ success: false }],
    });
    const paid = await pay(asked);
    expect(paid.status.state).toBe("TASK_STATE_COMPLETED");
    expect(said(paid)[x402Keys.receipts]).toEqual([
      expect.objectContaining({ success: false }),
      facilitator.settled[0],
    ]);
    const failed = "payment-submitted payment-failed";
    const states = `payment-required ${failed} payment-required payment-submitted payment-verified payment-completed`;
    expect(statesOf(paid)).toEqual(states.split(" "));
  });

  test("fails permanently after the last attempt", async () => {
    const { client, pay } = await serving({ onMessage: painting({ attempts: 2 }) });
    const asked = await pay((await client.sendMessage("a boat")).task, { authorization: { value: "1" } });
    const failed = await pay(asked, { authorization: { value: "2" } });
    expect(failed.status.state).toBe("TASK_STATE_FAILED");
    expect(said(failed)[x402Keys.receipts]).toHaveLength(2);
  });

  test("fails if the facilitator does not answer, and nothing is settled", async () => {
    const facilitator = testFacilitator({ verify: ["throw"] });
    const { client, pay, under } = await serving({ facilitator });
    const failed = await pay((await client.sendMessage("a boat")).task);
    expect(said(failed)[x402Keys.error]).toBe("INVALID_SIGNATURE");
    expect(failed.status.message?.parts[0]?.text).toBe("Payment failed. The payment could not be verified now.");
    expect(under.problems.join()).toContain("The facilitator does not answer");
    expect(facilitator.calls.settle).toBe(0);
  });

  test("is matched by its signature if options differ only in the token", async () => {
    const token = { ...option, asset: "0x1" };
    const { client, facilitator, under } = await serving({ onMessage: painting({ accepts: [token, option] }) });
    const { task } = await client.sendMessage("a boat");
    const wallet = testWallet({ now: () => under.clock.now() });
    const payload = await wallet.sign({ requirements: option, x402Version: 1 });
    const metadata = { [x402Keys.status]: "payment-submitted", [x402Keys.payload]: payload as unknown as JsonObject };
    const message = {
      messageId: "m",
      role: "ROLE_USER",
      taskId: task?.id ?? "",
      parts: [{ text: "paid" }],
      metadata,
    } as const;
    expect((await client.sendMessage({ message })).task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(facilitator.calls).toEqual({ verify: 2, settle: 1 });
  });
});

describe("an invalid payment message is rejected before it is stored (A2A 1.0 §3.1.1)", () => {
  const refused: readonly (readonly [name: string, field: string, metadata: JsonObject])[] = [
    ["a state that the agent sets", "status", { [x402Keys.status]: "payment-completed" }],
    ["an unknown state", "status", { [x402Keys.status]: "payment-done" }],
    ["no payload", "payload", { [x402Keys.status]: "payment-submitted" }],
    [
      "a payload without a network",
      "payload",
      { [x402Keys.status]: "payment-submitted", [x402Keys.payload]: { x402Version: 1, scheme: "exact", payload: {} } },
    ],
    [
      "a payload that is too large",
      "payload",
      {
        [x402Keys.status]: "payment-submitted",
        [x402Keys.payload]: { x402Version: 1, scheme: "exact", network: "base", payload: { big: "€".repeat(3000) } },
      },
    ],
    [
      "a payload whose option is too large",
      "payload",
      {
        [x402Keys.status]: "payment-submitted",
        [x402Keys.payload]: { ...paymentOf(), accepted: { ...option, extra: { big: "x".repeat(13_000) } } },
      },
    ],
  ];
  test.each(refused)("%s", async (_, field, metadata) => {
    const { client } = await serving();
    const { task } = await client.sendMessage("a boat");
    const message = {
      messageId: "m",
      role: "ROLE_USER",
      taskId: task?.id ?? "",
      parts: [{ text: "x" }],
      metadata,
    } as const;
    const error: unknown = await client.sendMessage({ message }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "InvalidParams",
      fields: [{ field: expect.stringContaining(`x402.payment.${field}`) as string }],
    });
    expect((await client.getTask(task?.id ?? "")).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  });

  test("a second payment for the same offer, also concurrently", async () => {
    const { client, wallet, facilitator } = await serving();
    const { task } = await client.sendMessage("a boat");
    const messages = await Promise.all(Array.from({ length: 8 }, () => submitted(wallet, task)));
    const sent = await Promise.allSettled(messages.map((message) => client.sendMessage({ message })));
    const refused = sent.filter((each) => each.status === "rejected");
    expect(refused.map(({ reason }) => (reason as { readonly code: string }).code)).toEqual(
      Array.from({ length: 7 }, () => "InvalidParams"),
    );
    const { history = [] } = await client.getTask(task?.id ?? "");
    expect(history.filter(({ messageId }) => messageId.startsWith("payment-"))).toHaveLength(1);
    expect(facilitator.calls).toEqual({ verify: 1, settle: 1 });
  });

  test("without a task, for a task that asks for none, and twice for the same offer", async () => {
    const { opened, open } = gate();
    const { client, wallet, facilitator } = await serving({
      async *onMessage(turn, payments) {
        yield* painting({ completes: false, work: () => opened })(turn, payments);
        yield turn.inputRequired("More?");
      },
    });
    const { task } = await client.sendMessage("a boat");
    const message = await submitted(wallet, task);
    const other = await submitted(wallet, task);
    const refused = { code: "InvalidParams", fields: [{ field: "message.metadata.x402.payment.status" }] };
    const { taskId: _, ...taskless } = message;
    await expect(client.sendMessage({ message: taskless })).rejects.toMatchObject(refused);
    await client.sendMessage({ message, configuration: { returnImmediately: true } });
    await expect(client.sendMessage({ message: other })).rejects.toMatchObject(refused);
    open();
    const asking = await client.waitFor(task?.id ?? "", {
      until: ({ status }) => status.state === "TASK_STATE_INPUT_REQUIRED",
    });
    expect(asking.status.message?.parts).toEqual([{ text: "More?" }]);
    await expect(client.sendMessage({ message: other })).rejects.toMatchObject(refused);
    expect(facilitator.calls).toEqual({ verify: 1, settle: 1 });
  });
});
