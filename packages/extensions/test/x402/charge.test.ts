import { describe, expect, onTestFinished, test } from "vitest";
import { createPayer, payWith, testFacilitator, testWallet, x402, x402Keys } from "../../src/x402/index.ts";
import { defineAgent } from "@parley/server/internal/agent/index";
import { text } from "@parley/a2a/internal/model/index";
import { testAgent } from "@parley/testing";
import { option } from "./support.ts";
import { painting, said, serving, statesOf, submitted } from "./serving.ts";

describe("a paid agent (v0.1 §4, v0.2 §5)", () => {
  test("asks for payment with the options in the metadata of the status message", async () => {
    const { client } = await serving();
    const { task } = await client.sendMessage("a boat");
    expect(task?.status).toMatchObject({
      state: "TASK_STATE_INPUT_REQUIRED",
      message: {
        role: "ROLE_AGENT",
        parts: [{ text: "Payment is required." }],
        metadata: {
          [x402Keys.status]: "payment-required",
          [x402Keys.required]: { x402Version: 1, accepts: [option] },
        },
      },
    });
    expect(task?.artifacts ?? []).toEqual([]);
  });

  test.each(["0.1", "0.2"] as const)(
    "verifies, works, settles, and completes with the receipt (%s)",
    async (version) => {
      const { client, pay, facilitator, under } = await serving({ version });
      const { task } = await client.sendMessage("a boat");
      const paid = await pay(task);
      expect(paid.status.state).toBe("TASK_STATE_COMPLETED");
      expect(said(paid)).toEqual({
        [x402Keys.status]: "payment-completed",
        [x402Keys.receipts]: [facilitator.settled[0]],
      });
      expect(facilitator.settled).toMatchObject([{ success: true, network: "base" }]);
      expect(paid.artifacts?.[0]?.parts).toEqual([{ text: "A picture of Here is the payment authorization." }]);
      expect(statesOf(paid)).toEqual([
        "payment-required",
        "payment-submitted",
        "payment-verified",
        "payment-completed",
      ]);
      expect(facilitator.calls).toEqual({ verify: 1, settle: 1 });
      expect(under.problems).toEqual([]);
    },
  );

  test("works before it settles: nobody pays for work that fails", async () => {
    const { client, pay, facilitator } = await serving({
      onMessage: painting({
        work: () => Promise.reject(new Error("no more paint")),
      }),
    });
    const { task } = await client.sendMessage("a boat");
    const paid = await pay(task);
    expect(paid.status.state).toBe("TASK_STATE_FAILED");
    expect(facilitator.settled).toEqual([]);
    expect(facilitator.calls.settle).toBe(0);
  });

  test("may ask a question during the work, and settles after it", async () => {
    const { client, pay, facilitator } = await serving({
      async *onMessage(turn, payments) {
        const charge = turn.ext(payments)?.charge({
          accepts: [option],
          async *work() {
            if (turn.text === "red") yield turn.artifact({ parts: [text("red boat")] });
            else yield turn.inputRequired("Which colour?");
          },
        });
        if (charge !== undefined) yield* charge;
      },
    });
    const { task } = await client.sendMessage("a boat");
    const asked = await pay(task);
    expect(asked.status).toMatchObject({
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { parts: [{ text: "Which colour?" }] },
    });
    expect(facilitator.calls).toEqual({ verify: 1, settle: 0 });
    const done = await client.sendMessage({ parts: [{ text: "red" }], taskId: asked.id });
    expect(done.task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(said(done.task)[x402Keys.receipts]).toEqual(facilitator.settled);
    expect(facilitator.calls).toEqual({ verify: 1, settle: 1 });
  });

  test("asks again after a message without payment, with the same offer until it expires", async () => {
    let price = 100;
    const { client, under } = await serving({
      async *onMessage(turn, payments) {
        price += 1;
        yield* painting({ accepts: [{ ...option, maxAmountRequired: String(price) }] })(turn, payments);
      },
    });
    const { task } = await client.sendMessage("a boat");
    const again = await client.sendMessage({ parts: [{ text: "cheaper?" }], taskId: task?.id ?? "" });
    expect(said(again.task)[x402Keys.required]).toMatchObject({ accepts: [{ maxAmountRequired: "101" }] });
    await under.clock.advance(600_001);
    const later = await client.sendMessage({ parts: [{ text: "now?" }], taskId: task?.id ?? "" });
    expect(said(later.task)[x402Keys.required]).toMatchObject({ accepts: [{ maxAmountRequired: "103" }] });
  });

  test("ends the task if the client declines (v0.2 §5.4)", async () => {
    const { client, facilitator } = await serving();
    const { task } = await client.sendMessage("a boat");
    const refusal = {
      parts: [{ text: "No" }],
      taskId: task?.id ?? "",
      metadata: { [x402Keys.status]: "payment-rejected" },
    };
    const { task: over } = await client.sendMessage({ message: { messageId: "no", role: "ROLE_USER", ...refusal } });
    expect(over?.status.state).toBe("TASK_STATE_REJECTED");
    expect(said(over)).toEqual({ [x402Keys.status]: "payment-rejected" });
    expect(facilitator.calls).toEqual({ verify: 0, settle: 0 });
  });

  test("can charge twice in a task: the last message has every receipt (v0.1 §4.5)", async () => {
    const { client, pay, facilitator } = await serving({
      async *onMessage(turn, payments) {
        const charge = (id: string, amount: string) =>
          turn
            .ext(payments)
            ?.charge({ id, accepts: [{ ...option, maxAmountRequired: amount }], completes: false, work: () => id });
        const done: string[] = [];
        for (const [id, amount] of [
          ["sketch", "1"],
          ["picture", "2"],
        ] as const) {
          const paying = charge(id, amount);
          if (paying !== undefined) done.push(yield* paying);
        }
        yield turn.completed(done.join(" and "));
      },
    });
    const { task } = await client.sendMessage("a boat");
    const half = await pay(task);
    expect(half.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(said(half)[x402Keys.receipts]).toEqual(facilitator.settled);
    const paid = await pay(half);
    expect(paid.status).toMatchObject({
      state: "TASK_STATE_COMPLETED",
      message: { parts: [{ text: "sketch and picture" }] },
    });
    expect(said(paid)).toEqual({ [x402Keys.status]: "payment-completed", [x402Keys.receipts]: facilitator.settled });
    expect(facilitator.settled).toHaveLength(2);
  });

  test("logs its own mistakes, and charges nobody", async () => {
    const mistakes = [
      { accepts: [] },
      { accepts: [{ ...option, maxAmountRequired: "1.5" }] },
      { accepts: Array.from({ length: 17 }, () => option) },
      { accepts: [{ ...option, extra: { big: "x".repeat(8200) } }] },
      { id: "" },
      { attempts: 0 },
    ];
    for (const mistake of mistakes) {
      const { client, under } = await serving({ onMessage: painting(mistake) });
      const { task } = await client.sendMessage("a boat");
      expect(task?.status.state).toBe("TASK_STATE_FAILED");
      expect(under.problems.join()).toContain("charge(): ");
    }
    const { client, under } = await serving({ agent: { resumable: false } });
    expect((await client.sendMessage("a boat")).task?.status.state).toBe("TASK_STATE_FAILED");
    expect(under.problems.join()).toContain("resumable");
  });

  test("does not settle if its work completes the task", async () => {
    const { client, pay, under, facilitator } = await serving({
      async *onMessage(turn, payments) {
        yield* painting({
          work: async function* () {
            yield turn.completed("done");
          },
        })(turn, payments);
      },
    });
    const paid = await pay((await client.sendMessage("a boat")).task);
    expect(paid.status.state).toBe("TASK_STATE_FAILED");
    expect(under.problems.join()).toContain("the work must not complete the task");
    expect(facilitator.calls.settle).toBe(0);
  });

  test("is paid once for a retried message", async () => {
    const { client, wallet, facilitator } = await serving();
    const { task } = await client.sendMessage("a boat");
    const message = await submitted(wallet, task);
    const answers = await Promise.all([1, 2, 3].map(() => client.sendMessage({ message })));
    answers.push(await client.sendMessage({ message }));
    expect(answers.map((answer) => answer.task?.status.state)).toEqual(
      Array.from({ length: 4 }, () => "TASK_STATE_COMPLETED"),
    );
    expect(facilitator.calls).toEqual({ verify: 1, settle: 1 });
  });

  test("settles one of two concurrent payments for an offer", async () => {
    const { client, pay, facilitator } = await serving();
    const { task } = await client.sendMessage("a boat");
    await Promise.allSettled([pay(task), pay(task)]);
    expect(facilitator.settled).toHaveLength(1);
  });

  test("speaks both versions, and is paid by a caller of either", async () => {
    const facilitator = testFacilitator();
    const [v01, v02] = [x402({ facilitator, required: false }), x402({ facilitator, version: "0.2", required: false })];
    const agent = defineAgent({
      name: "Painter",
      description: "Paints",
      version: "1",
      skills: [],
      resumable: true,
      extensions: [v01, v02],
      async *onMessage(turn) {
        const payments = turn.ext(v01) ?? turn.ext(v02);
        if (payments === undefined) yield turn.completed("Not for nothing");
        else yield* payments.charge({ accepts: [option] });
      },
    });
    const under = await testAgent(agent);
    onTestFinished(() => under.close());
    const payer = createPayer({
      wallet: testWallet({ now: () => under.clock.now() }),
      limits: [{ network: "base", asset: option.asset, maxAmount: option.maxAmountRequired }],
      now: () => under.clock.now(),
    });
    for (const extension of [v01, v02]) {
      const client = await under.connect({ extensions: [extension] });
      expect((await payWith(client, payer, "a boat")).task?.status.state).toBe("TASK_STATE_COMPLETED");
    }
    expect((await under.client.sendMessage("a boat")).task?.status.message?.parts).toEqual([
      { text: "Not for nothing" },
    ]);
    expect(facilitator.settled).toHaveLength(2);
  });

  test("limits receipts to the rows of a task, and asks for no payment without room for its receipt", async () => {
    const { client, pay, under, facilitator } = await serving({
      async *onMessage(turn, payments) {
        for (let at = 0; ; at += 1) {
          const charge = turn.ext(payments)?.charge({ id: `n${at}`, accepts: [option], completes: false });
          if (charge !== undefined) yield* charge;
        }
      },
    });
    let { task } = await client.sendMessage("a boat");
    for (let count = 0; count < 20 && task !== undefined; count += 1) task = await pay(task);
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
    expect(facilitator.settled).toHaveLength(20);
    expect(under.problems.join()).toContain("at most 20 receipts");
  });

  test("has at most 20 receipts, even if payments fail and are retried", async () => {
    const { client, pay, under, facilitator } = await serving({
      async *onMessage(turn, payments) {
        for (let at = 0; ; at += 1) {
          const charge = turn.ext(payments)?.charge({
            id: `n${at}`,
            accepts: [option],
            completes: false,
            attempts: 10,
          });
          if (charge !== undefined) yield* charge;
        }
      },
    });
    let { task } = await client.sendMessage("a boat");
    for (let count = 0; count < 19 && task !== undefined; count += 1) task = await pay(task);
    expect(facilitator.settled).toHaveLength(19);
    // The last charge has room for one more attempt, not for ten.
    if (task !== undefined) task = await pay(task, { authorization: { value: "1" } });
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
    expect(said(task)[x402Keys.receipts]).toHaveLength(20);
    expect(under.problems).toEqual([]);
  });

  test("reserves a receipt for each open charge", async () => {
    let turns = 0;
    const { client, pay, facilitator, under } = await serving({
      async *onMessage(turn, payments) {
        turns += 1;
        const charge = (id: string) => turn.ext(payments)?.charge({ id, accepts: [option], completes: false });
        // First an unpaid offer, then others.
        if (turns === 1) return yield* charge("open")!;
        for (let at = 0; ; at += 1) yield* charge(`n${at}`)!;
      },
    });
    let { task } = await client.sendMessage("a boat");
    task = (await client.sendMessage({ message: { taskId: task?.id ?? "", parts: [{ text: "another" }] } })).task;
    for (let count = 0; count < 19 && task?.status.state === "TASK_STATE_INPUT_REQUIRED"; count += 1) {
      task = await pay(task);
    }
    expect(under.problems.join()).toContain("at most 20 receipts");
    expect(facilitator.settled).toHaveLength(19);
  });
});
