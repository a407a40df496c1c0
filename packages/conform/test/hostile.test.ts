import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { defineAgent, memoryStore, serve, text } from "@parley/node";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  conform,
  jsonReport,
  junitReport,
  parseSuites,
  testsOf,
  textReport,
  type ConformOptions,
} from "../src/index.ts";

/**
 * Servers that attack the runner: endless answers, no answers, invalid JSON. A run against them ends with a report, and reads no more than
 * its limit.
 */

const maxBytes = 1 << 20;
/** Bytes that the kernel and fetch may buffer beyond those that were read. */
const buffered = 16 << 20;

function streamOf(version: string): string {
  return `
acts_version: "1.0"
spec_version: "${version}"
suites:
  - id: stream
    name: A stream
    tests:
      - id: STREAM-1
        name: a stream
        level: must
        steps:
          - id: send
            operation: send_streaming_message
            params: { message: { role: ROLE_USER, parts: [{ text: hi }] } }
            expect_stream: { each_event: { schema: StreamResponse }, ordering: monotonic_state }
`;
}

const suites = [
  ...parseSuites(`
acts_version: "1.0"
spec_version: "1.0"
suites:
  - id: call
    name: A call
    tests:
      - id: GET-1
        name: a call
        level: must
        steps: [{ id: get, operation: get_task, params: { id: x }, expect: { body: { schema: Task } } }]
`),
  ...parseSuites(streamOf("1.0")),
];

interface Hostile {
  readonly url: string;
  /** Bytes that went out over all connections. */
  sent(): number;
  /** Number of unfinished answers. */
  open(): number;
}

type Answer = (response: ServerResponse, request: IncomingMessage) => unknown;

/** A server with a good card, over JSON-RPC and REST, whose answers to calls are given. */
async function start(answer: Answer, card?: Answer): Promise<Hostile> {
  const sockets = new Set<Socket>();
  const responses = new Set<ServerResponse>();
  let url = "";
  const server = createServer((request, response) => {
    responses.add(response);
    response.on("close", () => responses.delete(response));
    // The runner may close the connection while this writes.
    response.on("error", () => {});
    if (request.url?.endsWith("agent-card.json") !== true) return void answer(response, request);
    if (card !== undefined) return void card(response, request);
    const interfaces = ["JSONRPC", "HTTP+JSON"].map((protocolBinding) => ({
      url,
      protocolBinding,
      protocolVersion: "1.0",
    }));
    json(response, { name: "Hostile", supportedInterfaces: interfaces, capabilities: { streaming: true } });
  }).listen(0, "127.0.0.1");
  server.on("connection", (socket) => sockets.add(socket));
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    sent: () => [...sockets].reduce((sum, { bytesWritten }) => sum + bytesWritten, 0),
    open: () => responses.size,
  };
}

function json(response: ServerResponse, value: unknown): void {
  response.setHeader("content-type", "application/json").end(typeof value === "string" ? value : JSON.stringify(value));
}

/** Writes a chunk again and again, as fast as the other side reads, until the connection closes. */
function endless(response: ServerResponse, type: string, first: string, chunk: string): void {
  response.writeHead(200, { "content-type": type });
  response.write(first);
  const bytes = Buffer.from(chunk);
  const more = (): void => {
    if (response.destroyed) return;
    if (response.write(bytes)) setImmediate(more);
    else response.once("drain", more);
  };
  more();
}

const options: ConformOptions = { suites, maxBytes, stepTimeout: 20_000 };

describe("a server whose answers never end", () => {
  const stream = "text/event-stream";
  test.each<[string, Answer, RegExp]>([
    [
      "a text",
      (response) => endless(response, "application/json", '"', "a".repeat(65_536)),
      /larger than 1048576 bytes/,
    ],
    ["one line of a stream", (response) => endless(response, stream, "data: ", "a".repeat(65_536)), /larger than/],
    ["comments of a stream", (response) => endless(response, stream, "", `: ${"a".repeat(65_536)}\n`), /larger than/],
    ["data of one event", (response) => endless(response, stream, "", `data: ${"1".repeat(8_000)}\n`), /larger than/],
    [
      "events",
      (response) => endless(response, stream, "", `data: {"task":{"id":"t"}}\n\n`.repeat(2_000)),
      /larger than|not a JSON-RPC response|expected a Task, got no value/,
    ],
  ])("%s", async (_, answer, message) => {
    const server = await start(answer);
    const report = await conform(server.url, options);
    for (const { result, failure } of testsOf(report)) {
      expect(result).toBe("fail");
      expect(failure?.message).toMatch(message);
    }
    expect(report.verdict).toMatchObject({ result: "broken", asked: 4, held: 0 });
    // Each test over each binding is one answer.
    expect(server.sent()).toBeLessThan(4 * (maxBytes + buffered));
    await expect.poll(server.open).toBe(0);
  });

  test("nor is an endless card read on", async () => {
    const server = await start(
      () => {},
      (response) => endless(response, "application/json", "[", `"${"a".repeat(65_536)}",`),
    );
    await expect(conform(server.url, options)).rejects.toMatchObject({
      code: "NothingToTest",
      message: expect.stringMatching(/larger than/),
    });
    expect(server.sent()).toBeLessThan(maxBytes + buffered);
  });

  test("a small answer that unpacks to a large one", async () => {
    const packed = gzipSync(Buffer.alloc(16 << 20, 0x20));
    const server = await start((response) =>
      response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" }).end(packed),
    );
    const report = await conform(server.url, options);
    for (const { failure } of testsOf(report)) expect(failure?.message).toMatch(/larger than 1048576 bytes/);
  });

  test("a delivery to the webhook, and deliveries without number", async () => {
    const hook = parseSuites(`
acts_version: "1.0"
spec_version: "1.0"
suites:
  - id: hook
    name: Hook
    tests:
      - id: HOOK-1
        name: a delivery
        level: must
        transport: [jsonrpc]
        steps:
          - { id: get, operation: get_task, params: { id: "{{webhookUrl}}" } }
          - { id: wait, deliveries: { until: { body: { last: true } } } }
`);
    const statuses = new Set<number>();
    const server = await start((response, request) => {
      let said = "";
      request.on("data", (chunk: Buffer) => (said += chunk.toString()));
      request.on("end", () => {
        const { id, params } = JSON.parse(said) as { id: string; params: { id: string } };
        void (async () => {
          // Small webhooks until the receiver accepts no more, then a large one, then the expected one.
          for (let status = 200; status === 200; statuses.add(status)) {
            ({ status } = await fetch(params.id, { method: "POST", body: "{}" }));
          }
          await fetch(params.id, { method: "POST", body: "a".repeat(2 << 20) }).then(
            ({ status }) => statuses.add(status),
            () => {},
          );
          await fetch(params.id, { method: "POST", body: '{"last":true}' }).catch(() => {});
          json(response, { jsonrpc: "2.0", id, result: {} });
        })();
      });
    });
    const report = await conform(server.url, {
      suites: hook,
      bindings: ["JSONRPC"],
      maxBytes: 10_000,
      stepTimeout: 3_000,
    });
    expect(statuses).toEqual(new Set([200, 413]));
    expect(testsOf(report)[0]).toMatchObject({
      result: "fail",
      failure: { message: expect.stringMatching("no matching delivery") },
    });
    // Reports truncate the deliveries.
    expect(jsonReport(report).length).toBeLessThan(20_000);
  });
});

test("a stream over a binding of our own client is bounded as well", async () => {
  const agent = defineAgent({
    name: "Endless",
    description: "Never stops.",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      yield turn.artifact({ artifactId: "a", parts: [text("a")], open: true });
      while (!turn.signal.aborted) yield turn.append("a", [text("a".repeat(50_000))]);
    },
  });
  const server = await serve(agent, { port: 0, grpc: true, store: memoryStore(), signals: false, logger: false });
  onTestFinished(() => server.close({ grace: 0 }));
  const older = parseSuites(streamOf("0.3").replace("STREAM-1", "STREAM-2"));
  const report = await conform(server.url, { ...options, suites: [...suites, ...older], filter: ["STREAM-*"] });
  expect(report.bindings.map(({ binding, version }) => `${binding} ${version}`).sort()).toEqual(
    ["GRPC", "HTTP+JSON", "JSONRPC"].flatMap((binding) => [`${binding} 0.3`, `${binding} 1.0`]),
  );
  for (const { failure } of testsOf(report)) expect(failure?.message).toMatch(/larger than 1048576 bytes/);
});

describe("a server that never answers", () => {
  test("not even for its card: there is no report", async () => {
    const server = await start(
      () => {},
      () => {},
    );
    await expect(conform(server.url, { ...options, stepTimeout: 200 })).rejects.toMatchObject({
      name: "ConformError",
      code: "NothingToTest",
      message: "no response within 200 ms",
    });
    await expect.poll(server.open).toBe(0);
  });

  test("calls: each fails once its step is out of time", async () => {
    const server = await start(() => {});
    const report = await conform(server.url, { ...options, stepTimeout: 200 });
    expect(testsOf(report).map(({ result, failure }) => `${result}: ${failure?.message}`)).toEqual(
      Array(4).fill("fail: no response within 200 ms"),
    );
    await expect.poll(server.open).toBe(0);
  });

  test("with more than the head of a stream", async () => {
    const server = await start((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    });
    const report = await conform(server.url, { ...options, stepTimeout: 200 });
    expect(testsOf(report).map(({ result }) => result)).toEqual(Array(4).fill("fail"));
    await expect.poll(server.open).toBe(0);
  });

  test("before the run's time limit: the remaining tests count as not run, not as failed", async () => {
    const server = await start(() => {});
    const report = await conform(server.url, { ...options, timeout: 1_000, concurrency: 1 });
    expect(report.verdict).toMatchObject({
      result: "untested",
      notAsked: 4,
      reasons: [{ reason: "the run exceeded its time limit", option: "timeout", checks: 4 }],
    });
    await expect.poll(server.open).toBe(0);
  });

  test("the time limit also applies to the card", async () => {
    const server = await start(
      () => {},
      () => {},
    );
    await expect(conform(server.url, { ...options, timeout: 200 })).rejects.toThrow("no card within 200 ms");
  });
});

describe("a server that talks nonsense", () => {
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  const nonsense: readonly (readonly [string, string])[] = [
    ["nothing", ""],
    ["null", "null"],
    ["a number", "1e999"],
    ["no JSON", "<html>"],
    ["JSON that is 100,000 levels deep", deep],
    ["depth inside an answer", `{"jsonrpc":"2.0","id":1,"result":${deep},"id":${deep}}`],
    ["an error of odd types", '{"jsonrpc":"2.0","error":{"code":{},"message":[],"data":"x","details":7}}'],
    ["names of Object.prototype", '{"jsonrpc":"2.0","result":{"__proto__":1,"constructor":{},"status":{"state":{}}}}'],
    ["a text of 900,000 characters", `{"jsonrpc":"2.0","result":{"id":"${"\\u001b".repeat(150_000)}"}}`],
  ];

  test.each(nonsense)("in its answers: %s", async (_, said) => {
    for (const type of ["application/json", "text/event-stream"]) {
      const server = await start((response) =>
        response.writeHead(200, { "content-type": type }).end(type === "application/json" ? said : `data: ${said}\n\n`),
      );
      const report = await conform(server.url, options);
      expect(testsOf(report).map(({ result }) => result)).toEqual(Array(4).fill("fail"));
      // Whatever the server sends, a report is short and has no control characters.
      for (const written of [textReport(report), jsonReport(report), junitReport(report)]) {
        expect(written.length).toBeLessThan(40_000);
        expect(written).not.toContain("\u001b");
      }
    }
  });

  const base = { name: 7, supportedInterfaces: [] };
  test.each<[string, unknown]>([
    ["no object", 7],
    ["a list", []],
    ["invalid interfaces", { ...base, supportedInterfaces: [null, 1, "x", [], {}] }],
    ["odd members", { ...base, supportedInterfaces: [{ protocolBinding: {}, url: [], protocolVersion: 1 }] }],
    [
      "an invalid address",
      { ...base, supportedInterfaces: [{ protocolBinding: "JSONRPC", url: "::", protocolVersion: "1.0" }] },
    ],
    ["depth", deep],
  ])("on its card: %s", async (_, card) => {
    const server = await start(
      () => {},
      (response) => json(response, card),
    );
    await expect(conform(server.url, options)).rejects.toMatchObject({ code: "NothingToTest" });
  });

  test("in the texts of its card", async () => {
    const server = await start(
      (response) => json(response, {}),
      (response, { headers }) =>
        json(response, {
          name: {},
          version: [],
          capabilities: { streaming: "yes", extensions: [null, { required: true, uri: 7 }, { required: 1 }] },
          securityRequirements: {},
          skills: { id: 1 },
          defaultInputModes: [1, null],
          supportedInterfaces: [{ url: `http://${headers.host}`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
        }),
    );
    const report = await conform(server.url, { stepTimeout: 20_000, versions: ["1.0"], level: "must" });
    expect(report.verdict.result).toBe("broken");
    expect(testsOf(report).filter(({ result }) => result === "error")).toEqual([]);
    expect(textReport(report)).toContain("the agent at");
  });
});
