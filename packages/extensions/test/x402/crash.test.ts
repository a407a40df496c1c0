import { describe, expect, test } from "vitest";
import { testFacilitator, x402Keys, type TestFacilitator } from "../../src/x402/index.ts";
import { text, type Task } from "@parley/a2a/internal/model/index";
import { option } from "./support.ts";
import { painting, said, serving, statesOf, type Serving } from "./serving.ts";

/** A facilitator whose caller dies before or after the first settlement. */
function dying(at: "before" | "after", crash: () => void, inner: TestFacilitator): TestFacilitator {
  let died = false;
  return Object.assign(Object.create(inner) as TestFacilitator, {
    async settle(request: Parameters<TestFacilitator["settle"]>[0]) {
      if (died) return inner.settle(request);
      died = true;
      if (at === "before") {
        crash();
        throw new Error("The process is dead");
      }
      const receipt = await inner.settle(request);
      crash();
      return receipt;
    },
  });
}

/** Lets an agent's process die, and resolves when it has. */
interface Death {
  crash: () => void;
  readonly over: Promise<void>;
  under?: Serving["under"];
}

function death(): Death {
  let resolve = (): void => {};
  const over = new Promise<void>((done) => (resolve = done));
  const made: Death = { over, crash: () => void made.under?.crash().then(resolve) };
  return made;
}

/** Pays, and waits for the task after the crash. */
async function paidOver({ under, client, pay }: Serving, die: Death): Promise<Task> {
  die.under = under;
  const { task } = await client.sendMessage("a boat");
  const paying = pay(task).catch(() => undefined);
  await die.over;
  await under.restart();
  await paying;
  return client.waitFor(task?.id ?? "");
}

describe("a payment survives a crash (D11, v0.2 §5.1)", () => {
  test.each(["before", "after"] as const)("%s the settlement: it is settled once, under one key", async (at) => {
    const die = death();
    const made = await serving({ facilitator: dying(at, () => die.crash(), testFacilitator()) });
    const task = await paidOver(made, die);
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(said(task)[x402Keys.receipts]).toEqual(made.facilitator.settled);
    expect(made.facilitator.settled).toHaveLength(1);
    expect(new Set(made.facilitator.keys).size).toBe(1);
    expect(made.facilitator.calls.verify).toBe(1);
    expect(statesOf(task)).toEqual(["payment-required", "payment-submitted", "payment-verified", "payment-completed"]);
    expect(task.artifacts).toHaveLength(1);
  });

  test("between verification and settlement: the work is repeated, the verification is not", async () => {
    let works = 0;
    const die = death();
    const made = await serving({
      onMessage: painting({
        async *work() {
          works += 1;
          if (works === 1) die.crash();
          yield { kind: "artifact", artifact: { artifactId: "picture", parts: [text("boat")] }, lastChunk: true };
        },
      }),
    });
    const task = await paidOver(made, die);
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(works).toBe(2);
    expect(made.facilitator.calls).toEqual({ verify: 1, settle: 1 });
    expect(statesOf(task)).toEqual(["payment-required", "payment-submitted", "payment-verified", "payment-completed"]);
  });

  test("between offer and payment: another process keeps the offer, whatever the current price", async () => {
    let price = 100;
    const made = await serving({
      async *onMessage(turn, payments) {
        price += 1;
        yield* painting({ accepts: [{ ...option, maxAmountRequired: String(price) }] })(turn, payments);
      },
    });
    const { task } = await made.client.sendMessage("a boat");
    await made.under.crash();
    await made.under.restart();
    const paid = await made.pay(task);
    expect(paid.status.state).toBe("TASK_STATE_COMPLETED");
    expect(made.facilitator.settled).toHaveLength(1);
  });

  test("with its nonce still used", async () => {
    const made = await serving({ wallet: { nonce: () => 7n } });
    const [one, two] = [await made.client.sendMessage("a boat"), await made.client.sendMessage("a tree")];
    expect((await made.pay(one.task)).status.state).toBe("TASK_STATE_COMPLETED");
    await made.under.crash();
    await made.under.restart();
    expect(said(await made.pay(two.task))[x402Keys.error]).toBe("DUPLICATE_NONCE");
  });
});

describe("a settlement with an unknown outcome", () => {
  async function settling(facilitator: TestFacilitator) {
    const made = await serving({ facilitator });
    const { task } = await made.client.sendMessage("a boat");
    let isOver = false;
    const paying = made.pay(task).finally(() => (isOver = true));
    // Digests take real time, which the clock does not control.
    while (!isOver) await made.under.clock.advance(500);
    return { ...made, task: await paying };
  }

  test("is retried under the same key, and the money moves once", async () => {
    const { task, facilitator } = await settling(testFacilitator({ settle: ["throwAfter"] }));
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(facilitator.settled).toHaveLength(1);
    expect(facilitator.keys).toHaveLength(2);
    expect(new Set(facilitator.keys).size).toBe(1);
  });

  test("fails after three attempts, and logs the key", async () => {
    const { task, facilitator, under } = await settling(testFacilitator({ settle: ["throw", "throw", "throw"] }));
    expect(said(task)).toMatchObject({
      [x402Keys.error]: "SETTLEMENT_FAILED",
      [x402Keys.receipts]: [{ success: false, errorReason: "facilitator_unavailable" }],
    });
    expect(facilitator.calls.settle).toBe(3);
    expect(under.problems.filter((each) => each.includes("Settlement outcome unknown"))).toHaveLength(3);
  });

  test("is never repeated by a facilitator without idempotency: the network accepts a nonce once", async () => {
    const { task, facilitator } = await settling(testFacilitator({ settle: ["throwAfter"], forgetsKeys: true }));
    expect(facilitator.settled).toHaveLength(1);
    expect(said(task)[x402Keys.error]).toBe("DUPLICATE_NONCE");
  });
});
