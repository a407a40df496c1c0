import { expect, test } from "vitest";
import {
  createPayer,
  memoryLedger,
  PaymentRefused,
  testWallet,
  x402Keys,
  type PayingClient,
  type PaymentRequirements,
  type SentPayment,
} from "../../src/x402/index.ts";
import type { JsonObject, Message, Task } from "@parley/a2a/internal/model/index";
import { option } from "./support.ts";

/* A payer that lives long: nothing is paid that it could not remember. */

const least = 2 * ((12 + 16 + 32 + 8) << 10);

function paymentWith(more: JsonObject = {}): SentPayment {
  const message: Message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "paid" }], metadata: more };
  return { message, requirements: option };
}

/** An agent that asks for a payment in any number of tasks. */
function asking(change: Partial<PaymentRequirements> = {}) {
  const sent: Message[] = [];
  const client: PayingClient = {
    card: { name: "A", supportedInterfaces: [] },
    sendMessage({ message }) {
      sent.push(message);
      return Promise.resolve({ task: { id: message.taskId ?? "", status: { state: "TASK_STATE_COMPLETED" } } });
    },
    waitFor: () => Promise.reject(new Error("not reached")),
  };
  const taskOf = (id: string): Task => {
    const required = { x402Version: 1, accepts: [{ ...option, ...change }] };
    const metadata = { [x402Keys.status]: "payment-required", [x402Keys.required]: required };
    const message = { messageId: "q", role: "ROLE_AGENT", parts: [{ text: "pay" }], metadata } as unknown as Message;
    return { id, status: { state: "TASK_STATE_INPUT_REQUIRED", message } };
  };
  return { client, sent, taskOf };
}

const limits = [{ network: "base", asset: option.asset, maxAmount: option.maxAmountRequired }];

test("a ledger in memory stays within its limit of bytes, and forgets nothing", () => {
  const ledger = memoryLedger({ bytes: least });
  let count = 0;
  const fill = (): void => {
    for (; ; count += 1) void ledger.keep(`task ${count}`, paymentWith({ big: "x".repeat(10_000) }));
  };
  expect(fill).toThrow(expect.objectContaining({ code: "TooManyRequests" }));
  // Each has two bytes a character.
  expect(count).toBeGreaterThan(3);
  expect(count).toBeLessThanOrEqual(least / 20_000);
  for (let at = 0; at < count; at += 1)
    expect(ledger.find(`task ${at}`)).toMatchObject({ message: { messageId: "m" } });
  expect(ledger.find(`task ${count}`)).toBe(undefined);
  // A paid task keeps its payment, whatever else there is.
  expect(ledger.keep("task 0", paymentWith())).toEqual(ledger.find("task 0"));
});

test("one payment cannot take the space of many", () => {
  const ledger = memoryLedger();
  expect(() => ledger.keep("task", paymentWith({ big: "x".repeat(70_000) }))).toThrow(/does not fit/);
});

test("a stored payment does not change with its object", () => {
  const ledger = memoryLedger();
  const payment = paymentWith({ nonce: "1" });
  void ledger.keep("task", payment);
  (payment.message.metadata as { nonce: string }).nonce = "2";
  expect(ledger.find("task")).toEqual(paymentWith({ nonce: "1" }));
});

test("a payer with a full ledger signs and sends nothing, and pays no task twice", async () => {
  const { client, sent, taskOf } = asking();
  const wallet = testWallet();
  const payer = createPayer({ wallet, limits, ledger: memoryLedger({ bytes: least }) });
  await payer.pay(client, taskOf("0"));
  const error: unknown = await payer.pay(client, taskOf("1")).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(PaymentRefused);
  expect(error).toMatchObject({ kind: "full", code: "Aborted" });
  expect([wallet.signed, sent.length]).toEqual([1, 1]);
  // The one before is known: its message is sent again, and no other.
  await payer.pay(client, taskOf("0"));
  expect(wallet.signed).toBe(1);
  expect(new Set(sent.map(({ messageId }) => messageId)).size).toBe(1);
});

test("a payment that a ledger cannot store is not sent", async () => {
  const { client, sent, taskOf } = asking();
  const ledger = { find: () => undefined, keep: () => Promise.reject(new Error("The database is down")) };
  const payer = createPayer({ wallet: testWallet(), limits, ledger });
  await expect(payer.pay(client, taskOf("0"))).rejects.toThrow("The database is down");
  expect(sent).toEqual([]);
});

test.each([0, least - 1, NaN, -1])("a ledger of %d bytes is rejected", (bytes) => {
  expect(() => memoryLedger({ bytes })).toThrow(TypeError);
});

test("an option that is too large for the ledger is not paid", async () => {
  const { client, sent, taskOf } = asking({ extra: { big: "x".repeat(17_000) } });
  const payer = createPayer({ wallet: testWallet(), limits });
  await expect(payer.pay(client, taskOf("0"))).rejects.toMatchObject({ kind: "limit" });
  expect(sent.map(({ metadata }) => metadata?.[x402Keys.status])).toEqual(["payment-rejected"]);
});
