import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { openInspector } from "../src/inspector.ts";
import { captured, masked } from "../src/recording.ts";
import { WireLog } from "../src/wire-log.ts";

/** Bytes in use after a collection. */
function heap(): number {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect === "function") collect();
  return process.memoryUsage().heapUsed;
}

/** The numbers of the first records that a reader gets. */
async function read(log: WireLog, after: number, count: number): Promise<readonly number[]> {
  const stop = new AbortController();
  const reader = log.lines(after, stop.signal).getReader();
  const numbers: number[] = [];
  while (numbers.length < count) {
    const { value } = await reader.read();
    numbers.push((JSON.parse(new TextDecoder().decode(value)) as { n: number }).n);
  }
  stop.abort();
  await reader.cancel();
  return numbers;
}

test("the log keeps the newest records within its limit, and a reader continues with the oldest of them", async () => {
  const log = new WireLog(10_000);
  for (let at = 0; at < 1_000; at++)
    log.add({ kind: "piece", exchange: 1, body: { bytes: 800, text: "x".repeat(800) } });
  // Ten records of 1,000 characters.
  expect(await read(log, 0, 10)).toEqual([991, 992, 993, 994, 995, 996, 997, 998, 999, 1000]);
  expect(await read(log, 997, 3)).toEqual([998, 999, 1000]);
});

test("the memory of a log stays within its limit for requests with many short headers", () => {
  const log = new WireLog(8 << 20);
  const before = heap();
  const request = {
    kind: "request",
    agent: "webhooks",
    method: "POST",
    url: "http://a/",
    body: captured("", 0),
  } as const;
  for (let exchange = 0; exchange < 2_000; exchange++) {
    const headers = Array.from({ length: 400 }, (_, at) => [`x${at}`, "1"] as const);
    log.add({ ...request, exchange, headers: masked(headers, {}) });
  }
  // Without its headers counted, the log would have all of them: 100 MiB.
  expect(heap() - before).toBeLessThan(24 << 20);
  log.add({ kind: "end", exchange: 0 });
});

test("a text that is cut does not keep the whole text in memory", () => {
  const before = heap();
  const bodies = Array.from({ length: 8 }, (_, at) =>
    captured(JSON.stringify(`${at}${"x".repeat(16 << 20)}`), 16 << 20),
  );
  expect(heap() - before).toBeLessThan(32 << 20);
  expect(bodies.map(({ text }) => text.length)).toEqual(bodies.map(() => 1 << 20));
});

test("a record that is larger than the limit is kept until the next one", async () => {
  const log = new WireLog(10);
  log.add({ kind: "end", exchange: 1, error: "x".repeat(1_000) });
  expect(await read(log, 0, 1)).toEqual([1]);
  log.add({ kind: "end", exchange: 2 });
  expect(await read(log, 0, 1)).toEqual([2]);
});

test("a reader that is ahead of the log, such as after a restart, gets all records", async () => {
  const log = new WireLog();
  const reading = read(log, 1_000, 2);
  for (const exchange of [1, 2]) log.add({ kind: "end", exchange });
  expect(await reading).toEqual([1, 2]);
});

test("a repeated request has the agent's credentials only if it goes to the agent's origin", async () => {
  const sent: (readonly [url: string, headers: unknown])[] = [];
  const card = { name: "Toy", description: "", version: "1", skills: [], capabilities: {}, supportedInterfaces: [] };
  const inspector = openInspector({
    // Only the members that an inspector uses.
    open: async () =>
      Object.create({ card, service: {}, chosen: { protocolBinding: "JSONRPC", protocolVersion: "1.0" } }),
    fetch: async (url, { headers }) => {
      sent.push([url, headers]);
      return new Response("{}");
    },
    credentials: async () => ({ Authorization: "Bearer of-the-login", "X-Tenant": "acme" }),
    mounts: { add: () => {}, replace: () => {}, remove: async () => {} },
  });
  const { id } = await inspector.connect({ url: "https://toy.example/agent", headers: { "X-Tenant": "globex" } });
  const request = { agent: id, method: "GET", headers: { accept: "text/plain" } };
  for (const url of ["https://toy.example/agent/tasks", "https://other.example/", "http://toy.example/"]) {
    await inspector.send({ ...request, url });
  }
  const own = { authorization: "Bearer of-the-login", "x-tenant": "globex", accept: "text/plain" };
  expect(sent).toEqual([
    ["https://toy.example/agent/tasks", own],
    ["https://other.example/", { accept: "text/plain" }],
    ["http://toy.example/", { accept: "text/plain" }],
  ]);
});
