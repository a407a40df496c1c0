import { once } from "node:events";
import { createServer, type Server as HttpServer } from "node:http";
import { connect as dial, type AddressInfo } from "node:net";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { observeRequests } from "@parley/a2a/internal/protocol/index";
import { connect, serve, type ServeOptions } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { observers, telemetry } from "../src/index.ts";
import { prometheus } from "../src/prometheus/index.ts";
import { samples } from "./lived.ts";
import { agentOf, registered, Spans } from "./support.ts";

/** Receivers that hang, streams that are dropped midway, and clocks that jump. */

registered();

// Servers of earlier tests end their spans later.
let spans = new Spans();
beforeEach(() => void (spans = new Spans()));

const named = (name: string, kind?: number) =>
  spans.finished.filter((span) => span.name === name && (kind === undefined || span.kind === kind));
const [ofServer, ofClient] = [1, 2];

async function serving(onMessage: Parameters<typeof agentOf>[1], options: ServeOptions = {}) {
  const metrics = prometheus();
  const observer = observers(telemetry({ tracerProvider: spans.provider, meterProvider: false }), metrics);
  const server = await serve(agentOf("Toy", onMessage), {
    port: 0,
    signals: false,
    logger: false,
    store: await sqliteStore({ path: ":memory:" }),
    observer,
    ...options,
  });
  onTestFinished(() => server.close({ grace: 0 }));
  const open = (url: string) => connect(url, { observer, interceptors: [observeRequests(observer)], retry: false });
  /** The samples of a metric, by their labels. */
  const read = async (metric: string) =>
    new Map([...samples(await metrics.text())].filter(([name]) => name.startsWith(metric)));
  return { server, open, read };
}

/** The value of the only sample whose labels have these texts. */
function only(found: ReadonlyMap<string, number>, ...texts: readonly string[]): number | undefined {
  const [value, ...more] = [...found].flatMap(([name, each]) =>
    texts.every((text) => name.includes(text)) ? [each] : [],
  );
  expect(more).toEqual([]);
  return value;
}

async function listening(server: HttpServer): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("a receiver of webhooks that hangs", () => {
  const durations = "parley_webhook_delivery_duration_seconds_count";

  async function hanging(push: NonNullable<Exclude<ServeOptions["push"], boolean>>) {
    let heard = 0;
    const url = await listening(createServer(() => (heard += 1)));
    const toy = await serving(
      async function* (turn) {
        for (let n = 0; n < 20; n += 1) yield turn.artifact({ parts: [{ text: `${n}` }] });
      },
      { push },
    );
    const client = await toy.open(toy.server.url);
    const configuration = { taskPushNotificationConfig: { url: `${url}/hook` } };
    const { task } = await client.sendMessage({ message: "work", configuration });
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    await vi.waitFor(() => expect(heard).toBeGreaterThan(0));
    return toy;
  }

  test("harms no task, and counts as failed attempts", async () => {
    const { read } = await hanging({ timeout: 30, retryAfter: [10] });
    await vi.waitFor(async () => expect(only(await read(durations), '"failed"')).toBeGreaterThan(1));
    const [first, second] = named("webhook delivery");
    expect([first?.status.code, second?.attributes["parley.webhook.attempt"]]).toEqual([2, 2]);
    // Each attempt has its own span, which ended.
    expect(named("webhook delivery").every(({ duration: [seconds] }) => seconds < 10)).toBe(true);
  });

  test("is no failure of an attempt that a stopping server aborts", async () => {
    const { server, read } = await hanging({ timeout: 20_000 });
    await server.close({ grace: 0 });
    expect([...(await read(durations))]).toEqual([[`${durations}{parley_outcome="aborted"}`, 1]]);
    const [span, ...more] = named("webhook delivery");
    expect([more.length, span?.status.code, span?.attributes["error.type"]]).toEqual([0, 0, "Aborted"]);
  });
});

describe("a stream that is dropped midway has one span on each side, and one value of each metric", () => {
  const serverEvents = "a2a_server_response_sse_event_count";
  const calls = "a2a_server_operation_duration_seconds_count";

  const works = () =>
    serving(async function* (turn) {
      yield turn.artifact({ artifactId: "a", parts: [{ text: "0" }], open: true });
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    });

  async function endedOnce({ read }: Awaited<ReturnType<typeof works>>, state: string): Promise<void> {
    await vi.waitFor(() => expect(named("SendStreamingMessage", ofServer)).toHaveLength(1));
    const [span] = named("SendStreamingMessage", ofServer);
    expect([span?.status.code, span?.attributes["a2a.task.state"]]).toEqual([0, state]);
    expect(only(await read(calls), "SendStreamingMessage")).toBe(1);
    expect(only(await read(`${serverEvents}_sum`), "SendStreamingMessage")).toBeGreaterThan(0);
  }

  test("by its reader", async () => {
    const toy = await works();
    const client = await toy.open(toy.server.url);
    for await (const event of client.sendStreamingMessage("go")) if (event.artifactUpdate !== undefined) break;
    await endedOnce(toy, "TASK_STATE_WORKING");
    const [request, ...more] = named("SendStreamingMessage", ofClient);
    expect([more.length, request?.status.code]).toEqual([0, 0]);
    expect(only(await toy.read("a2a_client_operation_duration_seconds_count"), "SendStreamingMessage")).toBe(1);
  });

  test("by its socket", async () => {
    const toy = await works();
    const { port, host, hostname } = new URL(toy.server.url);
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "go" }] };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendStreamingMessage", params: { message } });
    const socket = dial(Number(port), hostname);
    const head = ["POST / HTTP/1.1", `host: ${host}`, "a2a-version: 1.0", "content-type: application/json"];
    socket.write(`${[...head, `content-length: ${body.length}`].join("\r\n")}\r\n\r\n${body}`);
    await once(socket, "data");
    socket.resetAndDestroy();
    await endedOnce(toy, "TASK_STATE_WORKING");
  });

  test("by its server", async () => {
    const toy = await works();
    const client = await toy.open(toy.server.url);
    for await (const event of client.sendStreamingMessage("go"))
      if (event.artifactUpdate !== undefined) void toy.server.close({ grace: 0 });
    await endedOnce(toy, "TASK_STATE_FAILED");
    await vi.waitFor(() => expect(named("invoke_agent Toy")).toHaveLength(1));
  });

  test("by what is between them: the span of the client has the error", async () => {
    const toy = await works();
    const card = (await (await fetch(`${toy.server.url}/.well-known/agent-card.json`)).json()) as {
      supportedInterfaces: { url: string }[];
    };
    const origin = await listening(
      createServer((request, response) => {
        if (request.method === "GET") return response.end(JSON.stringify(own));
        response.writeHead(200, { "content-type": "text/event-stream" });
        const status = { state: "TASK_STATE_WORKING", timestamp: "2026-01-01T00:00:00Z" };
        const result = { task: { id: "t", contextId: "c", status } };
        response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result })}\n\n`, () => response.destroy());
        return response;
      }),
    );
    const [first] = card.supportedInterfaces;
    const own = { ...card, supportedInterfaces: [{ ...first, url: origin, protocolBinding: "JSONRPC" }] };
    const client = await toy.open(origin);
    const reading = async (): Promise<void> => {
      for await (const event of client.sendStreamingMessage("go")) expect(event.task?.id).toBe("t");
    };
    await expect(reading()).rejects.toThrow(Error);
    const failed = named("SendStreamingMessage", ofClient);
    expect(failed.map(({ status, attributes }) => [status.code, attributes["a2a.task.id"]])).toEqual([[2, "t"]]);
    const events = await toy.read("a2a_client_response_sse_event_count_sum");
    expect(only(events, "SendStreamingMessage", "error_type")).toBe(1);
  });
});

describe("a clock that jumps", () => {
  test.each([-3_600_000, 3_600_000])(
    "by %i ms midway makes no duration and no age negative, or an hour long",
    async (jump) => {
      let release = (): void => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      const { server, open, read } = await serving(
        async function* (turn) {
          yield turn.working("on it");
          await turn.step("pay", () => held);
          yield turn.completed("done");
        },
        { limits: { runs: 1 } },
      );
      const client = await open(server.url);
      const configuration = { returnImmediately: true };
      for (const message of ["one", "two"]) await client.sendMessage({ message, configuration });
      const now = Date.now;
      vi.spyOn(Date, "now").mockImplementation(() => now() + jump);
      onTestFinished(() => void vi.restoreAllMocks());
      const age = only(await read("parley_queue_age_seconds")) ?? NaN;
      // The age is that of a stored time, so a jump forward shows.
      expect(age).toBeGreaterThanOrEqual(0);
      release();
      await vi.waitFor(() => expect(named("invoke_agent Toy")).toHaveLength(2));
      for (const {
        name,
        duration: [seconds, nanos],
      } of spans.finished) {
        expect([name, seconds < 60, seconds >= 0 && nanos >= 0]).toEqual([name, true, true]);
      }
      for (const metric of ["a2a_server_operation", "gen_ai_invoke_agent", "gen_ai_execute_tool"]) {
        for (const [name, sum] of await read(`${metric}_duration_seconds_sum`)) {
          expect([name, sum >= 0 && sum < 60]).toEqual([name, true]);
        }
      }
    },
  );
});
