import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { defineAgent, silentLogger, text } from "@parley/server";
import type { Client } from "@parley/a2a";
import {
  createPayer,
  httpFacilitator,
  testFacilitator,
  testWallet,
  x402,
  x402Keys,
  type Facilitator,
  type PaymentPayload,
  type PaymentRequiredResponse,
  type TestFacilitator,
} from "@parley/extensions/x402";
import type { JsonObject, Message, Task } from "@parley/a2a/model";
import { guardedFetch } from "@parley/a2a/protocol";
import { testAgent } from "@parley/testing";
import { describe, expect, it, onTestFinished } from "vitest";

/*
 * Callers who want paid work for free, or twice for one payment, and a hostile facilitator (x402 §9, §10; "What is checked" of
 * the extension's page). The test counts work: unpaid work must not be done.
 */

const option = {
  scheme: "exact",
  network: "base",
  asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bda02913",
  payTo: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
  maxAmountRequired: "48240000",
  resource: "https://painter.example/paint",
} as const;

interface Shop {
  readonly client: Client;
  readonly works: () => number;
  readonly now: () => number;
  /** Creates a client of another caller. */
  other(): Promise<Client>;
}

async function shop(facilitator: Facilitator, networks: readonly string[] = ["base"]): Promise<Shop> {
  const payments = x402({ facilitator });
  let works = 0;
  const agent = defineAgent({
    name: "Painter",
    description: "Paints for money",
    version: "1.0.0",
    skills: [],
    resumable: true,
    extensions: [payments],
    async *onMessage(turn) {
      yield* turn.ext(payments)!.charge({
        order: turn.text,
        accepts: networks.map((network) => ({ ...option, network })),
        async *work(wish) {
          works += 1;
          yield turn.artifact({ parts: [text(`A picture of ${wish}`)] });
        },
      });
    },
  });
  const under = await testAgent(agent, { logger: silentLogger });
  onTestFinished(() => under.close());
  const open = () => under.connect({ extensions: [x402()] });
  return { client: await open(), works: () => works, now: () => under.clock.now(), other: open };
}

async function offered(client: Client): Promise<Task> {
  const { task } = await client.sendMessage("a boat");
  if (task === undefined) throw new Error("There is no task");
  return task;
}

let count = 0;
function paying({ id }: Task, payload: unknown, more: Partial<Message> = {}): { message: Message } {
  count += 1;
  const metadata = { [x402Keys.status]: "payment-submitted", [x402Keys.payload]: payload as JsonObject };
  return {
    message: { messageId: `p${count}`, role: "ROLE_USER", taskId: id, parts: [{ text: "paid" }], metadata, ...more },
  };
}

const signedFor = (now: () => number, task: Task, nonce = 1n): PaymentPayload => {
  const required = task.status.message?.metadata?.[x402Keys.required] as unknown as PaymentRequiredResponse;
  const [requirements] = required.accepts;
  if (requirements === undefined) throw new Error("Nothing is offered");
  return testWallet({ now, nonce: () => nonce }).sign({ requirements, x402Version: 1 }) as PaymentPayload;
};

const errorOf = (task: Task | undefined): unknown =>
  task?.status.message?.metadata?.[x402Keys.error] ?? task?.status.state;

/** Creates a facilitator for a form other than EIP-3009. It reads only its own members, and its network always returns the same transaction. */
function ofForm(read: (payload: JsonObject) => string | undefined): TestFacilitator {
  const answers = testFacilitator();
  return {
    ...answers,
    verify: ({ payment }) => Promise.resolve({ isValid: read(payment.payload) === "good" }),
    settle: ({ requirements: { network } }) => Promise.resolve({ success: true, transaction: "t", network }),
  };
}

const decoded = (text: unknown): string => Buffer.from(String(text), "base64").toString("utf8");

describe("one payment pays for work once, whatever is written beside or into it", () => {
  const authorization = (now: number, nonce: string) => ({
    from: "0x1111111111111111111111111111111111111111",
    to: option.payTo,
    value: option.maxAmountRequired,
    validAfter: "0",
    validBefore: String(Math.floor(now / 1000) + 300),
    nonce,
  });
  type Form = (now: number) => readonly JsonObject[];
  const good = Buffer.from("good").toString("base64");
  const transactions: Form = (now) => [
    { transaction: good },
    // Other spellings: changed bits after the last byte, characters that decoders skip, and both alphabets.
    { transaction: "Z29vZB==" },
    { transaction: "Z29vZP" },
    { transaction: "Z29*vZA==" },
    { transaction: " Z29vZA" },
    { transaction: good, signature: "0x01" },
    { transaction: good, signature: "0x02" },
    { transaction: good, note: "again" },
    // An EIP-3009 authorization, which this scheme does not read.
    { transaction: good, authorization: authorization(now, "0x1") },
    { transaction: good, authorization: authorization(now, "0x2") },
  ];
  const permits: Form = (now) => [
    { signature: "0xab", permit2Authorization: { nonce: "1" } },
    { signature: "0xAB", permit2Authorization: { nonce: "1" } },
    { signature: "0xab", permit2Authorization: { nonce: "1" }, transaction: "AQID" },
    { signature: "0xab", permit2Authorization: { nonce: "1" }, transaction: "AQIE" },
    { signature: "0xab", permit2Authorization: { nonce: "1" }, authorization: authorization(now, "0x1") },
    { signature: "0xab", permit2Authorization: { nonce: "1" }, authorization: authorization(now, "0x2") },
  ];
  it.each([
    ["a transaction", transactions, (payload: JsonObject) => decoded(payload["transaction"])],
    [
      "a permit",
      permits,
      ({ signature }: JsonObject) =>
        /^0xab$/i.test(typeof signature === "string" ? signature : "") ? "good" : undefined,
    ],
  ])("%s", async (_, forms, read) => {
    // Each form comes first in one run.
    for (const first of forms(0).keys()) {
      const { client, works, now } = await shop(ofForm(read));
      const all = forms(now());
      const codes: unknown[] = [];
      for (const payload of [all[first], ...all]) {
        const task = await offered(client);
        const sent = await client.sendMessage(
          paying(task, { x402Version: 1, scheme: "exact", network: "base", payload }),
        );
        codes.push(errorOf(sent.task));
      }
      expect([codes[0], new Set(codes.slice(1))]).toEqual(["TASK_STATE_COMPLETED", new Set(["DUPLICATE_NONCE"])]);
      expect(works()).toBe(1);
    }
  });

  it("an authorization, in every spelling of its nonce and its payer", async () => {
    const facilitator = ofForm(() => "good");
    const { client, works, now, other } = await shop(facilitator);
    const from = "0xAbCdefABCDEFabcdefABCDEFabcdefABCDEFABCD";
    const spelt = [
      { nonce: "0xff", from },
      { nonce: "0x00ff", from },
      { nonce: "FF", from: from.toLowerCase() },
      { nonce: 255, from },
      { nonce: " 0XfF", from: `0x${from.slice(2).toUpperCase()}` },
      { nonce: "0xff", from: from.slice(2) },
      { nonce: "0xff", from: ` ${from}` },
    ];
    const codes: unknown[] = [];
    for (const spelling of spelt) {
      for (const caller of [client, await other()]) {
        const task = await offered(caller);
        const payload = { signature: `0x${codes.length}`, authorization: { ...authorization(now(), ""), ...spelling } };
        codes.push(
          errorOf(
            (await caller.sendMessage(paying(task, { x402Version: 1, scheme: "exact", network: "base", payload })))
              .task,
          ),
        );
      }
    }
    expect(codes[0]).toBe("TASK_STATE_COMPLETED");
    expect(new Set(codes.slice(1))).toEqual(new Set(["DUPLICATE_NONCE"]));
    expect(works()).toBe(1);
  });
});

describe("no work is done for", () => {
  const amounts = [
    "+48240000",
    "-48240000",
    "4.824e7",
    "48240000.0",
    " 48240000",
    "48240000\n",
    "0x2e01600",
    "٤٨٢٤٠٠٠٠",
    "",
  ];
  const changes: readonly (readonly [string, (signed: JsonObject) => JsonObject])[] = [
    ...[
      ...amounts,
      "0",
      "48239999",
      "48240001",
      "9".repeat(78),
      "9".repeat(5000),
      48240000.5,
      1e21,
      null,
      ["48240000"],
    ].map(
      (value) =>
        [`the amount ${JSON.stringify(value).slice(0, 24)}`, (signed: JsonObject) => ({ ...signed, value })] as const,
    ),
    ["another payee", (signed) => ({ ...signed, to: "0x0000000000000000000000000000000000000001" })],
    ["a payee list", (signed) => ({ ...signed, to: [option.payTo] })],
    ["a payment that ends now", (signed) => ({ ...signed, validBefore: "1" })],
    ["a payment without an end", ({ validBefore: _, ...signed }) => signed],
    ["a payment for later", (signed) => ({ ...signed, validAfter: "99999999999" })],
    ["a time with an exponent", (signed) => ({ ...signed, validBefore: "1e20" })],
    ["no nonce", ({ nonce: _, ...signed }) => signed],
    ["an empty nonce", (signed) => ({ ...signed, nonce: "" })],
    ["a nonce that is not text", (signed) => ({ ...signed, nonce: { a: 1 } })],
  ];

  it("an authorization that says something else, even if the facilitator accepts everything", async () => {
    const { client, works, now } = await shop(ofForm(() => "good"));
    for (const [what, change] of changes) {
      const task = await offered(client);
      const payment = signedFor(now, task);
      const { authorization } = payment.payload as { authorization: JsonObject };
      const payload = { ...payment, payload: { ...payment.payload, authorization: change(authorization) } };
      const code = await client.sendMessage(paying(task, payload)).then(
        ({ task: paid }) => errorOf(paid),
        (error: { code?: string }) => error.code,
      );
      expect(code, what).toMatch(/^(INVALID_AMOUNT|INVALID_SIGNATURE|EXPIRED_PAYMENT|InvalidParams)$/);
    }
    expect(works()).toBe(0);
  });

  it("a payment of another option, scheme, network or version than was offered", async () => {
    const { client, works, now } = await shop(
      ofForm(() => "good"),
      ["base", "polygon"],
    );
    for (const change of [
      { network: "base-sepolia" },
      { network: "BASE" },
      { network: "base\u0000" },
      { scheme: "upto" },
      { x402Version: 2 },
      { accepted: { ...option, maxAmountRequired: "1" } },
      { accepted: { ...option, payTo: "0x01" } },
      { accepted: { ...option, asset: "0x01" } },
      { accepted: { ...option, resource: "https://elsewhere.example" } },
      { accepted: { ...option, network: "polygon" } },
    ]) {
      const task = await offered(client);
      const sent = await client.sendMessage(paying(task, { ...signedFor(now, task), ...change }));
      expect(errorOf(sent.task), JSON.stringify(change)).toMatch(/^(INVALID_|NETWORK_MISMATCH)/);
    }
    expect(works()).toBe(0);
  });

  it.each([
    ["says it is verified", { [x402Keys.status]: "payment-verified" }],
    ["says it is paid", { [x402Keys.status]: "payment-completed", [x402Keys.receipts]: [{ success: true }] }],
    ["submits nothing", { [x402Keys.status]: "payment-submitted" }],
    ["has receipts of its own", { [x402Keys.receipts]: [{ success: true, transaction: "0x1", network: "base" }] }],
    [
      "makes an offer of its own",
      { [x402Keys.required]: { x402Version: 1, accepts: [{ ...option, maxAmountRequired: "0" }] } },
    ],
    ["has a status that is a list", { [x402Keys.status]: ["payment-submitted"] }],
  ])("a message that %s", async (_, metadata) => {
    const { client, works } = await shop(testFacilitator());
    const task = await offered(client);
    const sent = await client.sendMessage(paying(task, {}, { metadata })).catch(() => undefined);
    expect(sent?.task?.status.state ?? "TASK_STATE_INPUT_REQUIRED").toBe("TASK_STATE_INPUT_REQUIRED");
    // The offer is unchanged, so nothing from the message has replaced it.
    const now = await client.getTask(task.id);
    const required = now.status.message?.metadata?.[x402Keys.required] as unknown as PaymentRequiredResponse;
    expect(required.accepts[0]?.maxAmountRequired).toBe(option.maxAmountRequired);
    expect(works()).toBe(0);
  });
});

it("of twenty concurrent payments for one task one is accepted, and one settlement is requested", async () => {
  const facilitator = testFacilitator();
  const { client, works, now } = await shop(facilitator);
  const task = await offered(client);
  const sent = await Promise.allSettled(
    Array.from({ length: 20 }, (_, at) => client.sendMessage(paying(task, signedFor(now, task, BigInt(at + 1))))),
  );
  expect(sent.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect([works(), facilitator.settled.length, new Set(facilitator.keys).size]).toEqual([1, 1, 1]);
});

it("one payment for twenty concurrent tasks is settled once, and work is done once", async () => {
  const facilitator = testFacilitator();
  const { client, works, now } = await shop(facilitator);
  const tasks = await Promise.all(Array.from({ length: 20 }, () => offered(client)));
  const payment = signedFor(now, tasks[0] as Task);
  const done = await Promise.all(
    tasks.map(async (task) => errorOf((await client.sendMessage(paying(task, payment))).task)),
  );
  expect(done.filter((code) => code === "TASK_STATE_COMPLETED")).toHaveLength(1);
  expect([works(), facilitator.settled.length]).toEqual([1, 1]);
});

it("an agent that changes its card between two attempts gets the payment that was signed first, and no other", async () => {
  const wallet = testWallet();
  const payer = createPayer({ wallet, limits: [{ network: "base", asset: option.asset, maxAmount: "48240000" }] });
  const required = { x402Version: 1, accepts: [option] };
  const asks = { [x402Keys.status]: "payment-required", [x402Keys.required]: required as unknown as JsonObject };
  const task: Task = {
    id: "t",
    status: {
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "pay" }], metadata: asks },
    },
  };
  const cardAt = (url: string) => ({
    name: url,
    supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  });
  const sent: unknown[] = [];
  const client = {
    card: cardAt("https://painter.example"),
    sendMessage({ message }: { readonly message: Message }): Promise<never> {
      sent.push(message);
      return Promise.reject(new Error("The answer was lost"));
    },
    waitFor: () => Promise.resolve(task),
  };
  for (const url of ["https://painter.example/2", "https://evil.example", "https://painter.example"]) {
    await expect(payer.pay(client, task)).rejects.toThrow("The answer was lost");
    // Replaces the card like `client.getExtendedAgentCard()`.
    client.card = cardAt(url);
  }
  expect(wallet.signed).toBe(1);
  expect(sent).toEqual([sent[0], sent[0], sent[0]]);
});

describe("a hostile facilitator over HTTP", () => {
  type Answer = (request: IncomingMessage, response: ServerResponse) => void;
  const json =
    (value: unknown, status = 200, headers = {}): Answer =>
    (_, response) => {
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
    };
  const yes: Answer = (request, response) =>
    json(request.url === "/verify" ? { isValid: true } : { success: true, transaction: "0x1", network: "base" })(
      request,
      response,
    );

  async function listening(answer: Answer): Promise<{ readonly url: string; readonly seen: string[] }> {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      seen.push(`${request.url} ${JSON.stringify(request.headers)}`);
      request.resume().on("end", () => answer(request, response));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
  }

  const fetch = guardedFetch({ allowLoopback: true, timeout: 1_000, maxBytes: 65_536 });
  const headers = () => ({ authorization: "Bearer key-of-the-merchant" });

  it("that does not verify gets no work done: redirects, 10 MiB, silence, wrong types, errors", async () => {
    const evil = await listening(yes);
    const bad: readonly (readonly [string, Answer])[] = [
      ["a redirect", json({}, 307, { location: `${evil.url}/verify` })],
      ["a redirect with a yes", json({ isValid: true }, 302, { location: `${evil.url}/verify` })],
      ["10 MiB", (_, response) => void response.writeHead(200).end(`{"isValid":true,"x":"${"x".repeat(10 << 20)}"}`)],
      ["silence", () => undefined],
      ["half an answer", (_, response) => void response.writeHead(200, { "content-length": 99 }).write('{"isValid":')],
      ["a text", json({ isValid: "true" })],
      ["a number", json({ isValid: 1 })],
      ["a list", json([{ isValid: true }])],
      ["null", json(null)],
      ["a prototype", (_, response) => void response.end('{"__proto__":{"isValid":true}}')],
      ["an error with a yes", json({ isValid: true }, 500)],
    ];
    for (const [what, answer] of bad) {
      const site = await listening(answer);
      const { client, works, now } = await shop(httpFacilitator(site.url, { fetch, headers }));
      const task = await offered(client);
      expect(errorOf((await client.sendMessage(paying(task, signedFor(now, task)))).task), what).toBe(
        "INVALID_SIGNATURE",
      );
      expect(works(), what).toBe(0);
    }
    // The merchant's key was not sent to any other server.
    expect(evil.seen).toEqual([]);
  });

  it("whose receipt is not positive, or whose texts are hostile, is not believed and not quoted", async () => {
    const esc = "\u001b[2J\u202e";
    const answers: readonly (readonly [string, Answer, string])[] = [
      ["a text", json({ success: "true" }), "TASK_STATE_FAILED"],
      ["a no", json({ success: false, errorReason: `${esc}no` }), "TASK_STATE_FAILED"],
      ["controls", json({ success: true, transaction: esc, network: esc, payer: esc }), "TASK_STATE_COMPLETED"],
    ];
    for (const [what, answer, state] of answers) {
      const site = await listening((request, response) =>
        (request.url === "/verify" ? yes : answer)(request, response),
      );
      const payments = httpFacilitator(site.url, { fetch });
      const { client, now } = await shop({
        ...payments,
        settle: (request) => payments.settle(request).catch(() => ({ success: false })),
      });
      const task = await offered(client);
      const { task: paid } = await client.sendMessage(paying(task, signedFor(now, task)));
      expect(paid?.status.state, what).toBe(state);
      // eslint-disable-next-line no-control-regex
      expect(JSON.stringify(paid?.status.message), what).not.toMatch(/\\u001b|[\u001b\u202e]/);
    }
  });
});
