import { expect, test } from "vitest";
import type { ChargeInit } from "../../src/x402/index.ts";
import { text } from "@parley/a2a/internal/model/index";
import { option } from "./support.ts";
import { painting, said, serving } from "./serving.ts";

/* v0.2 §5.1 and §10 bind a payment to an offer of its task, not to a message. `order` binds the work to its price. */

/** A painter whose price is the length of the order. */
function byLength(more: Partial<ChargeInit<void, string>> = {}) {
  return serving({
    async *onMessage(turn, payments) {
      const charge = turn.ext(payments)?.charge<void, string>({
        accepts: [{ ...option, maxAmountRequired: String(turn.text.length) }],
        order: turn.text,
        async *work(order) {
          yield turn.artifact({ artifactId: "picture", parts: [text(order)] });
        },
        ...more,
      });
      if (charge !== undefined) yield* charge;
    },
  });
}

const wished = "a boat";
const greedy = { parts: [{ text: "a thousand boats, a harbour and the sea" }] };

test("a message that pays a cheap offer and asks for more gets the priced order", async () => {
  const { client, pay, facilitator } = await byLength();
  const { task: asked } = await client.sendMessage(wished);
  const task = await pay(asked, { message: greedy });
  expect(task.status.state).toBe("TASK_STATE_COMPLETED");
  expect(task.artifacts?.[0]?.parts).toEqual([{ text: wished }]);
  expect(facilitator.settled).toHaveLength(1);
});

test("so does a message between offer and payment, and the delivery after it", async () => {
  const delivered: string[] = [];
  const { client, pay } = await byLength({
    deliver(_, order) {
      delivered.push(order);
      return { kind: "status", state: "TASK_STATE_WORKING" };
    },
  });
  const { task } = await client.sendMessage(wished);
  const again = await client.sendMessage({ message: { taskId: task?.id ?? "", ...greedy } });
  expect(JSON.stringify(said(again.task))).toContain(`"maxAmountRequired":"${wished.length}"`);
  const paid = await pay(again.task, { message: greedy });
  expect(paid.artifacts?.[0]?.parts).toEqual([{ text: wished }]);
  expect(delivered).toEqual([wished]);
});

test("a failed payment makes no offer cheaper for the same order, and none for more", async () => {
  const { client, pay } = await byLength({ attempts: 3 });
  const { task } = await client.sendMessage(wished);
  const short = { parts: [{ text: "-" }] };
  const failed = await pay(task, { message: short, authorization: { value: "1" } });
  expect(failed.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  expect(JSON.stringify(said(failed))).toContain(`"maxAmountRequired":"${wished.length}"`);
  const paid = await pay(failed, { message: short });
  expect(paid.artifacts?.[0]?.parts).toEqual([{ text: wished }]);
});

test("an expired offer is replaced, with the current order and price", async () => {
  const { under, client, pay } = await byLength();
  const { task } = await client.sendMessage(wished);
  await under.clock.advance(601_000);
  const again = await client.sendMessage({ message: { taskId: task?.id ?? "", ...greedy } });
  expect(JSON.stringify(said(again.task))).toContain(`"maxAmountRequired":"${greedy.parts[0]?.text.length}"`);
  expect((await pay(again.task)).artifacts?.[0]?.parts).toEqual(greedy.parts);
});

test.each([
  ["too large", "x".repeat(17_000)],
  ["no JSON", 1n],
  ["a function", () => 1],
])("an order that is %s fails the task before a payment is requested", async (_, order) => {
  const { client, under } = await serving({ onMessage: painting({ order: order as never }) });
  const { task } = await client.sendMessage(wished);
  expect(task?.status.state).toBe("TASK_STATE_FAILED");
  expect(under.problems.join()).toContain("order must be JSON of at most 16384 bytes");
});

test("a payment is for the latest of several offers, not for a cheaper one", async () => {
  const { client, pay, facilitator } = await serving({
    async *onMessage(turn, payments) {
      const offer = (id: string, price: string) =>
        turn.ext(payments)!.charge({ id, accepts: [{ ...option, maxAmountRequired: price }], completes: false });
      if (turn.number === 1) yield* offer("sketch", "1");
      if (turn.number === 2) yield* offer("painting", "1000");
      if (turn.number === 3) yield* offer("sketch", "1");
      yield* offer("painting", "1000");
      yield turn.completed("Done.");
    },
  });
  const asked = async (id: string, text: string) =>
    (await client.sendMessage({ message: { taskId: id, parts: [{ text }] } })).task;
  const { task } = await client.sendMessage("a sketch");
  const id = task?.id ?? "";
  await asked(id, "a painting");
  expect(JSON.stringify(said(await asked(id, "a sketch after all")))).toContain(`"maxAmountRequired":"1"`);
  const painting = await asked(id, "no, a painting");
  expect(JSON.stringify(said(painting))).toContain(`"maxAmountRequired":"1000"`);
  const paid = await pay(painting);
  expect(paid.status.state).toBe("TASK_STATE_COMPLETED");
  expect(facilitator.settled).toHaveLength(1);
});
