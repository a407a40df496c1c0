import { describe, expect, test, vi } from "vitest";
import {
  testFacilitator,
  testWallet,
  x402,
  x402Keys,
  type FacilitatorRequest,
  type PaymentReceipt,
  type TestFacilitator,
  type Verification,
} from "../../src/x402/index.ts";
import { defineAgent } from "@parley/server/internal/agent/index";
import { testAgent } from "@parley/testing";
import { option } from "./support.ts";
import { painting, said, serving, submitted } from "./serving.ts";

const minute = 60_000;

/** A facilitator that accepts a payment until its network knows it. */
function unknowing(): TestFacilitator {
  return { ...testFacilitator(), verify: () => Promise.resolve({ isValid: true }) };
}

describe("a payment is used once, even if", () => {
  test("old data is deleted before it expires", async () => {
    const retention = { terminal: minute };
    const facilitator = unknowing();
    const { under, client, wallet } = await serving({
      facilitator,
      options: { retention },
      wallet: { nonce: () => 7n, validFor: 7200 },
    });
    const { task: first } = await client.sendMessage("a boat");
    const message = await submitted(wallet, first);
    expect((await client.sendMessage({ message })).task?.status.state).toBe("TASK_STATE_COMPLETED");
    await under.clock.advance(60 * minute);
    await vi.waitFor(() => expect(client.getTask(first?.id ?? "")).rejects.toMatchObject({ code: "TaskNotFound" }));
    const { task: second } = await client.sendMessage("a boat");
    const again = await client.sendMessage({ message: { ...message, taskId: second?.id ?? "", messageId: "again" } });
    expect(said(again.task)[x402Keys.error]).toBe("DUPLICATE_NONCE");
    expect(facilitator.keys).toHaveLength(1);
  });

  test("an agent speaks both versions, and its caller pays each once", async () => {
    const facilitator = unknowing();
    const [v01, v02] = [x402({ facilitator, required: false }), x402({ facilitator, required: false, version: "0.2" })];
    const agent = defineAgent({
      name: "Painter",
      description: "Paints for money",
      version: "1",
      skills: [],
      resumable: true,
      extensions: [v01, v02],
      async *onMessage(turn) {
        const payments = turn.ext(v01) ?? turn.ext(v02);
        if (payments !== undefined) yield* payments.charge({ accepts: [option] });
      },
    });
    await using under = await testAgent(agent);
    const wallet = testWallet({ now: () => under.clock.now(), nonce: () => 7n });
    const codes: unknown[] = [];
    for (const extensions of [[v01.uri], [v02.uri], [v01.uri, v02.uri]]) {
      const client = await under.connect({ extensions });
      const message = await submitted(wallet, (await client.sendMessage("a boat")).task);
      const { task } = await client.sendMessage({ message });
      codes.push(said(task)[x402Keys.error] ?? task?.status.state);
    }
    expect(codes).toEqual(["TASK_STATE_COMPLETED", "DUPLICATE_NONCE", "DUPLICATE_NONCE"]);
    expect(facilitator.keys).toHaveLength(1);
  });
});

test("a payment during another question of the agent is not used, and another one is accepted", async () => {
  let calls = 0;
  const { client, pay, facilitator } = await serving({
    async *onMessage(turn, payments) {
      calls += 1;
      if (calls === 2) yield turn.inputRequired("Are you sure?");
      else yield* painting()(turn, payments);
    },
  });
  const { task } = await client.sendMessage("a boat");
  const asking = await pay(task);
  expect(asking.status.message?.parts).toEqual([{ text: "Are you sure?" }]);
  const again = await client.sendMessage({ taskId: asking.id, parts: [{ text: "yes" }] });
  expect(said(again.task)[x402Keys.status]).toBe("payment-required");
  expect((await pay(again.task)).status.state).toBe("TASK_STATE_COMPLETED");
  expect(facilitator.calls).toEqual({ verify: 1, settle: 1 });
});

describe("a facilitator that ignores its signal", () => {
  const never = (): Promise<never> => new Promise(() => {});

  test("times out in verification, and the payment fails", async () => {
    const test = testFacilitator();
    const verify = vi.fn<(request: FacilitatorRequest) => Promise<Verification>>(never);
    const { under, client, wallet } = await serving({ facilitator: { ...test, verify } });
    const message = await submitted(wallet, (await client.sendMessage("a boat")).task);
    const sent = client.sendMessage({ message });
    await vi.waitFor(() => expect(verify).toHaveBeenCalledOnce());
    await under.clock.advance(minute);
    expect((await sent).task?.status.message?.parts[0]?.text).toContain("could not be verified now");
  });

  test("is retried under the same key in settlement", async () => {
    const test = testFacilitator();
    const settle = vi.fn<TestFacilitator["settle"]>((request) => test.settle(request)).mockImplementationOnce(never);
    const { under, client, wallet } = await serving({ facilitator: { ...test, settle } });
    const message = await submitted(wallet, (await client.sendMessage("a boat")).task);
    const sent = client.sendMessage({ message });
    await vi.waitFor(() => expect(settle).toHaveBeenCalledOnce());
    await under.clock.advance(minute);
    await vi.waitFor(async () => {
      await under.clock.advance(1000);
      expect(settle).toHaveBeenCalledTimes(2);
    });
    expect((await sent).task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(new Set(settle.mock.calls.map(([{ idempotencyKey }]) => idempotencyKey)).size).toBe(1);
    expect(test.settled).toHaveLength(1);
  });

  test("an answer that is not positive settles nothing", async () => {
    const settle = (): Promise<PaymentReceipt> =>
      Promise.resolve({ success: "false" as unknown as boolean, transaction: "" });
    const { client, pay } = await serving({ facilitator: { ...testFacilitator(), settle } });
    const failed = await pay((await client.sendMessage("a boat")).task);
    expect(said(failed)[x402Keys.error]).toBe("SETTLEMENT_FAILED");
  });
});
