import { describe, expect, test } from "vitest";
import {
  createPayer,
  memoryLedger,
  payWith,
  testWallet,
  x402Keys,
  type PayerOptions,
  type PayingClient,
  type PaymentRequirements,
} from "../../src/x402/index.ts";
import type { Message, SendMessageRequest, Task } from "@parley/a2a/internal/model/index";
import { option } from "./support.ts";
import { painting, said, serving, type ServingInit } from "./serving.ts";

const limit = { network: "base", asset: option.asset, maxAmount: "50000000" };

async function paying(options: Partial<PayerOptions> = {}, init: ServingInit = {}) {
  const made = await serving(init);
  const payer = createPayer({ wallet: made.wallet, limits: [limit], now: () => made.under.clock.now(), ...options });
  return { ...made, payer };
}

describe("a client that pays (v0.2 §5.4, §5.5)", () => {
  test("signs an option within its limits, sends it, and returns the task with its receipts", async () => {
    const { client, payer, facilitator } = await paying();
    const { task, payment } = await payWith(client, payer, "a boat");
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(payment).toMatchObject({ requirements: { maxAmountRequired: "48240000" }, receipts: facilitator.settled });
    expect(facilitator.settled).toHaveLength(1);
  });

  test("pays nothing if nothing is asked for", async () => {
    const { client, payer, wallet } = await paying(
      {},
      {
        onMessage: async function* (turn) {
          yield turn.reply("free");
        },
      },
    );
    expect((await payWith(client, payer, "a boat")).message?.parts).toEqual([{ text: "free" }]);
    expect(wallet.signed).toBe(0);
  });

  type Refused = readonly [name: string, limits: PayerOptions["limits"], option: Partial<PaymentRequirements>];
  const refused: readonly Refused[] = [
    ["more than it may", [{ ...limit, maxAmount: 48239999n }], {}],
    ["on another network", [{ ...limit, network: "base-sepolia" }], {}],
    ["in another token", [{ ...limit, asset: "0x1" }], {}],
    ["to someone else", [{ ...limit, payTo: ["0xFriend"] }], {}],
    ["in a scheme that it does not know", [limit], { scheme: "upto" }],
    ["anything without limits", [], {}],
    ["an option that is valid for a year", [limit], { maxTimeoutSeconds: 365 * 24 * 3600 }],
    ["an option that is valid for a second more than an hour", [limit], { maxTimeoutSeconds: 3601 }],
  ];
  test.each(refused)("does not pay %s, and tells the agent so", async (_, limits, change) => {
    const accepts = [{ ...option, ...change }];
    const { client, payer, wallet, facilitator } = await paying({ limits }, { onMessage: painting({ accepts }) });
    const error: unknown = await payWith(client, payer, "a boat").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ kind: "limit" });
    const { id } = (error as { readonly task: Task }).task;
    expect(said(await client.getTask(id))[x402Keys.status]).toBe("payment-rejected");
    expect(wallet.signed).toBe(0);
    expect(facilitator.calls.verify).toBe(0);
  });

  test("chooses an option by its first matching limit, in any spelling of an address", async () => {
    const accepts = [{ ...option, network: "avalanche" }, option, { ...option, maxAmountRequired: "1", asset: "0xAB" }];
    const limits = [{ ...limit, network: "polygon" }, { ...limit, asset: "0xab", payTo: [option.payTo] }, limit];
    const { client, payer } = await paying({ limits }, { onMessage: painting({ accepts }) });
    expect((await payWith(client, payer, "a boat")).payment?.requirements.maxAmountRequired).toBe("1");
  });

  test("pays options up to the longest validity, and tells the wallet", async () => {
    const signing: unknown[] = [];
    const accepts = [{ ...option, maxTimeoutSeconds: 7200 }];
    const { client, payer, wallet } = await paying(
      { maxTimeoutSeconds: 7200 },
      { onMessage: painting({ accepts }), wallet: {} },
    );
    const sign = wallet.sign.bind(wallet);
    wallet.sign = (request) => (signing.push(request.maxTimeoutSeconds), sign(request));
    expect((await payWith(client, payer, "a boat")).task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(signing).toEqual([7200]);
  });

  test("an option without a validity is signed for at most the payer's limit", async () => {
    const { maxTimeoutSeconds: _, ...endless } = option;
    const { payload } = await testWallet({ now: () => 0 }).sign({
      requirements: endless,
      x402Version: 1,
      maxTimeoutSeconds: 60,
    });
    expect(payload).toMatchObject({ authorization: { validBefore: "60" } });
  });

  test.each([0, -1, 0.5, NaN, Infinity, "600"])("rejects %j seconds as the longest time", (maxTimeoutSeconds) => {
    const options = { wallet: testWallet(), limits: [limit], maxTimeoutSeconds: maxTimeoutSeconds as number };
    expect(() => createPayer(options)).toThrow(/^maxTimeoutSeconds must be/);
  });

  test.each(["1e6", "-1", "0.5", "", "abc", -1n, 0.5, undefined])("rejects %s as a limit", (amount) => {
    const limits = [limit, { ...limit, maxAmount: amount as string }];
    expect(() => createPayer({ wallet: testWallet(), limits })).toThrow(
      /^limits\[1\]\.maxAmount must be a whole number/,
    );
  });

  test("asks for confirmation if configured", async () => {
    const { client, payer, wallet } = await paying({ confirm: ({ maxAmountRequired }) => maxAmountRequired === "1" });
    await expect(payWith(client, payer, "a boat")).rejects.toMatchObject({ kind: "confirm" });
    expect(wallet.signed).toBe(0);
  });
});

describe("a client never pays twice for a task", () => {
  test("even if the agent asks again after a failure", async () => {
    const { client, payer, wallet } = await paying(
      {},
      { onMessage: painting({ attempts: 3 }), wallet: { validFor: 0 } },
    );
    const { task, payment } = await payWith(client, payer, "a boat");
    expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(payment?.receipts).toMatchObject([{ success: false }]);
    await expect(payer.pay(client, task as Task)).rejects.toMatchObject({ kind: "paid" });
    expect(wallet.signed).toBe(1);
  });

  test("even in two concurrent calls", async () => {
    const { client, payer, wallet, facilitator } = await paying();
    const { task } = await client.sendMessage("a boat");
    const paid = await Promise.all([1, 2, 3].map(() => payer.pay(client, task as Task)));
    expect(paid.map((each) => each.task.status.state)).toEqual(Array.from({ length: 3 }, () => "TASK_STATE_COMPLETED"));
    expect([wallet.signed, facilitator.settled.length]).toEqual([1, 1]);
  });

  test("even if the answer was lost: another process sends the same message", async () => {
    const ledger = memoryLedger();
    const { client, payer, wallet, facilitator, under } = await paying({ ledger });
    const { task } = await client.sendMessage("a boat");
    const lost: PayingClient = {
      card: client.card,
      waitFor: () => Promise.reject(new Error("not reached")),
      async sendMessage(request: SendMessageRequest) {
        await client.sendMessage(request);
        throw new Error("The answer was lost");
      },
    };
    await expect(payer.pay(lost, task as Task)).rejects.toThrow("The answer was lost");
    const later = createPayer({ wallet, limits: [limit], ledger, now: () => under.clock.now() });
    expect((await later.pay(client, task as Task)).task.status.state).toBe("TASK_STATE_COMPLETED");
    expect([wallet.signed, facilitator.settled.length]).toEqual([1, 1]);
  });

  test("but does for a task of another agent with the same id", async () => {
    const { payer, wallet } = await paying();
    const sent: Message[] = [];
    const clientOf = (url: string): PayingClient => ({
      card: { name: "Painter", supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }] },
      sendMessage: ({ message }) => {
        sent.push(message);
        return Promise.resolve({ task: { id: "1", status: { state: "TASK_STATE_COMPLETED" } } });
      },
      waitFor: () => Promise.reject(new Error("not reached")),
    });
    const metadata = {
      [x402Keys.status]: "payment-required",
      [x402Keys.required]: { x402Version: 1, accepts: [option] },
    };
    const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "pay" }], metadata } as const;
    const task: Task = {
      id: "1",
      status: { state: "TASK_STATE_INPUT_REQUIRED", message: message as unknown as Message },
    };
    await payer.pay(clientOf("https://a.example"), task);
    await payer.pay(clientOf("https://b.example"), task);
    expect(wallet.signed).toBe(2);
    expect(new Set(sent.map(({ messageId }) => messageId)).size).toBe(2);
  });
});

describe("an offer is untrusted", () => {
  const odd: readonly (readonly [name: string, required: unknown])[] = [
    ["no options", { x402Version: 1, accepts: [] }],
    ["too many", { x402Version: 1, accepts: Array.from({ length: 17 }, () => option) }],
    ["a negative amount", { x402Version: 1, accepts: [{ ...option, maxAmountRequired: "-1" }] }],
    ["an amount that is a number", { x402Version: 1, accepts: [{ ...option, maxAmountRequired: 1 }] }],
    ["a text", "pay me"],
  ];
  test.each(odd)("%s: nothing is signed", async (_, required) => {
    const { client, payer, wallet } = await paying();
    const metadata = { [x402Keys.status]: "payment-required", [x402Keys.required]: required };
    const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "pay" }], metadata } as unknown as Message;
    const task: Task = { id: "1", status: { state: "TASK_STATE_INPUT_REQUIRED", message } };
    await expect(payer.pay(client, task)).rejects.toMatchObject({ kind: "none" });
    expect(wallet.signed).toBe(0);
  });
});
