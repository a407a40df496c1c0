import { describe, expect, test } from "vitest";
import { connect, type ConnectOptions } from "../../src/client/index.ts";
import type { AgentCard } from "../../src/model/index.ts";
import {
  cardOf,
  chunkEvent,
  deadUrl,
  errorOf,
  HandClock,
  jsonRpcAt,
  listen,
  restAt,
  rpcServer,
  soon,
  taskEvent,
  taskOf,
  until,
} from "./support.ts";

/** Tests a client's limits for a peer's data, in bytes and depth, and for the time of calls. */

const json = { "content-type": "application/json" };

async function cardServer(text: string): Promise<string> {
  return listen((_, response) => response.writeHead(200, json).end(text));
}

const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;

describe("an error page", () => {
  test.each([
    ["of nothing but beginnings of tags", "<".repeat(1_000_000)],
    ["of styles that never end", "<style>".repeat(140_000)],
    ["of scripts that never end", "<script ".repeat(120_000)],
    ["of spaces", " ".repeat(1_000_000)],
    ["of tags that never end", "<a ".repeat(300_000)],
  ])("%s costs no more than its length to show", async (_, page) => {
    const url = await listen((_request, response) =>
      response.writeHead(500, { "content-type": "text/html" }).end(page),
    );
    const client = await connect(cardOf([jsonRpcAt(url)]), { retry: false });
    const before = process.cpuUsage();
    expect(await errorOf(client.getTask("t1"))).toMatchObject({ code: "InvalidResponse" });
    const { user, system } = process.cpuUsage(before);
    // Measures CPU time instead of wall time. A quadratic pattern would take half an hour of CPU time.
    expect((user + system) / 1e6).toBeLessThan(5);
  });
});

describe("a card (A2A 1.0 §4.4.1)", () => {
  const many = (count: number): AgentCard =>
    cardOf(Array.from({ length: count }, (_, at) => jsonRpcAt(`http://h${at}.example`)));

  test("over its limit is rejected, even if other answers may be larger", async () => {
    const text = JSON.stringify(many(300_000));
    const asked = await errorOf(connect(await cardServer(text), { retry: false }));
    expect(asked).toMatchObject({ code: "InvalidResponse", message: expect.stringContaining("1048576 bytes") });
    const wide = { retry: false, maxCardBytes: 64 << 20 } as const;
    expect((await connect(await cardServer(JSON.stringify(many(1_000))), wide)).card.supportedInterfaces.length).toBe(
      1_000,
    );
  });

  test("is read up to a hundred interfaces, and its errors stay short", async () => {
    const lost = Array.from({ length: 150 }, (_, at) => jsonRpcAt(`/${"x".repeat(1_000)}${at}`));
    const error = (await errorOf(connect(cardOf([...lost, jsonRpcAt("http://good.example")])))) as Error;
    expect(error).toMatchObject({ code: "InvalidResponse" });
    expect(error.message.length).toBeLessThan(3_000);
  });

  test.each([5_000, 100_000])("nested %i levels deep is InvalidResponse", async (depth) => {
    const text = JSON.stringify(cardOf([])).replace(/}$/, `,"skills":${nested(depth)}}`);
    expect(await errorOf(connect(await cardServer(text), { retry: false }))).toMatchObject({
      code: "InvalidResponse",
      message: expect.stringContaining("deeper than 512 levels"),
    });
  });

  test("passed as a value that nests too deeply is InvalidResponse", async () => {
    let deep: unknown = [];
    for (let level = 0; level < 20_000; level++) deep = [deep];
    const card = { ...cardOf([jsonRpcAt("http://good.example")]), capabilities: { extensions: deep } } as AgentCard;
    expect(await errorOf(connect(card))).toMatchObject({ code: "InvalidResponse" });
  });
});

describe("an answer", () => {
  test.each(["JSONRPC", "HTTP+JSON"])("nested deep is InvalidResponse over %s", async (protocolBinding) => {
    const url = await listen((_, response) =>
      response.writeHead(200, json).end(`{"jsonrpc":"2.0","id":1,"result":${nested(100_000)}}`),
    );
    const client = await connect(cardOf([{ url, protocolBinding, protocolVersion: "1.0" }]), { retry: false });
    expect(await errorOf(client.getTask("t1"))).toMatchObject({
      code: "InvalidResponse",
      message: expect.stringContaining("deeper than 512 levels"),
    });
  });

  test("of a stream that nests too deeply is InvalidResponse", async () => {
    const server = await rpcServer(({ events }) => {
      events.send(taskEvent());
      events.raw(`data: ${nested(100_000)}\n\n`);
    });
    const client = await connect(cardOf([jsonRpcAt(server.url)]), { retry: false, reconnect: false });
    const stream = client.subscribeToTask("t1")[Symbol.asyncIterator]();
    await stream.next();
    expect(await errorOf(stream.next())).toMatchObject({
      code: "InvalidResponse",
      message: expect.stringContaining("deeper than 512 levels"),
    });
  });

  test("of many short lines is one event, bounded in bytes", async () => {
    const server = await rpcServer(({ events }) => {
      events.send(chunkEvent("one"));
      for (let count = 0; count < 20; count++) events.raw("data:\n".repeat(10_000));
    });
    const options: ConnectOptions = { retry: false, reconnect: false, maxEventBytes: 1 << 20 };
    const client = await connect(cardOf([jsonRpcAt(server.url)]), options);
    const stream = client.subscribeToTask("t1")[Symbol.asyncIterator]();
    await stream.next();
    expect(await errorOf(stream.next())).toMatchObject({
      code: "InvalidResponse",
      message: expect.stringContaining("1048576 bytes"),
    });
  });
});

describe("the timeout of connect", () => {
  test.each([
    ["a server that says nothing", () => undefined],
    [
      "a card that drips",
      (_: unknown, response: import("node:http").ServerResponse) => void response.writeHead(200, json).write("{"),
    ],
  ])("ends %s, and names the address that did not answer", async (_, listener) => {
    const clock = new HandClock();
    const url = await listen(listener);
    const failed = errorOf(connect(url, { clock, timeout: 1_234 }));
    await clock.armed(1_234);
    clock.advance(1_234);
    expect(await failed).toMatchObject({
      code: "Timeout",
      message: `Connecting, last to ${url}/.well-known/agent-card.json, took longer than 1234 ms`,
    });
    expect(clock.waiting).toBe(0);
  });

  test("covers all addresses of the card and all attempts, with the message of the last attempt", async () => {
    const clock = new HandClock();
    let asked = 0;
    const url = await listen((_, response) => {
      asked++;
      response.writeHead(503, { "retry-after": "20" }).end();
    });
    const failed = errorOf(connect(url, { clock, timeout: 10_000 }));
    await until(() => asked === 1);
    await clock.armed(20_000);
    clock.advance(10_000);
    expect(await failed).toMatchObject({
      code: "Timeout",
      message: expect.stringContaining("(Temporarily unavailable)"),
    });
  });

  test("covers a function for headers that never returns", async () => {
    const clock = new HandClock();
    const failed = errorOf(
      connect("http://good.example", { clock, timeout: 500, headers: () => new Promise(() => undefined) }),
    );
    await clock.armed(500);
    clock.advance(500);
    expect(await failed).toMatchObject({ code: "Timeout" });
  });
});

describe("when all interfaces fail", () => {
  test("the error lists each interface with its error, and the card", async () => {
    const dead = await deadUrl();
    const page = await listen((_, response) => response.writeHead(404, { "content-type": "text/html" }).end("<p>lost"));
    const url = await cardServer(JSON.stringify(cardOf([jsonRpcAt(dead), restAt(page)])));
    const client = await connect(url, { retry: false });
    const error = (await errorOf(client.sendMessage("hi"))) as Error;
    expect(error).toMatchObject({ code: "InvalidResponse", metadata: { httpStatus: "404", tried: `${dead} ${page}` } });
    const [first, ...lines] = error.message.split("\n");
    expect(first).toBe(`No interface of the card "Stranger" at ${url}/.well-known/agent-card.json works:`);
    expect(lines).toEqual([
      expect.stringMatching(`^  JSONRPC 1.0 at ${dead}: .*ECONNREFUSED`),
      expect.stringMatching(`^  HTTP\\+JSON 1.0 at ${page}: .*HTTP 404, text/html: lost$`),
    ]);
  });

  test("the error still shows that the message was not sent", async () => {
    const client = await connect(cardOf([jsonRpcAt(await deadUrl()), restAt(await deadUrl())]), soon);
    const tries: string[] = [];
    const error = await errorOf(client.sendMessage("hi"));
    expect(error).toMatchObject({ code: "ConnectionFailed" });
    expect((error as Error).message.split("\n")).toHaveLength(3);
    expect(tries).toEqual([]);
    const rpc = await rpcServer((call) => call.answer(taskOf("TASK_STATE_WORKING")));
    expect(
      (await (await connect(cardOf([jsonRpcAt(await deadUrl()), jsonRpcAt(rpc.url)]), soon)).getTask("t1")).id,
    ).toBe("t1");
  });
});

test("connecting leaves no listener on the caller's signal", async () => {
  const url = await listen((_, response) =>
    response.writeHead(200, json).end(JSON.stringify(cardOf([jsonRpcAt("http://agent.example")]))),
  );
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...given: Parameters<typeof add>) => ((listeners += 1), add(...given));
  signal.removeEventListener = (...given: Parameters<typeof remove>) => ((listeners -= 1), remove(...given));
  await connect(url, { signal });
  expect(listeners).toBe(0);
});
