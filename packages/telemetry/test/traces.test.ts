import { createContextKey, context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { A2AError } from "@parley/a2a/internal/model/index";
import { connect } from "@parley/a2a/internal/client/index";
import { observeRequests } from "@parley/a2a/internal/protocol/index";
import { createHandler } from "@parley/server/internal/handler";
import type { AgentDefinition } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import { observers, telemetry, type TelemetryOptions } from "../src/index.ts";
import { agentOf, registered, Spans } from "./support.ts";

registered();

const url = "http://localhost:4000";

async function* answering(turn: Parameters<AgentDefinition["onMessage"]>[0]) {
  if (turn.text === "hello") return turn.reply("Hello");
  if (turn.text === "throw") throw new Error("the agent is broken");
  if (turn.text === "ask" && turn.number === 1) {
    yield turn.inputRequired("secret-of-question");
    return undefined;
  }
  const chunks = Number(/^\d+$/.exec(turn.text)?.[0] ?? 1);
  yield turn.artifact({ artifactId: "a", parts: [{ text: "0" }], open: true });
  for (let at = 1; at < chunks; at += 1) yield turn.append("a", [{ text: String(at) }]);
  return undefined;
}

/** Serves an agent without a network. `around` wraps each request, as an instrumentation of the transport does. */
async function connected({
  onMessage = answering,
  around = (work) => work(),
  version,
  client: clientOptions,
  ...options
}: TelemetryOptions & {
  readonly onMessage?: AgentDefinition["onMessage"];
  readonly around?: (work: () => Promise<Response>) => Promise<Response>;
  readonly version?: string;
  readonly client?: TelemetryOptions;
} = {}) {
  const spans = new Spans();
  const handler = createHandler(agentOf("Toy", onMessage), {
    publicUrl: url,
    store: memoryStore(),
    observer: telemetry({ tracerProvider: spans.provider, ...options }),
  });
  onTestFinished(() => handler.close());
  const seen: Headers[] = [];
  const fetch = (to: string, init: RequestInit): Promise<Response> => {
    seen.push(new Headers(init.headers));
    return context.with(trace.deleteSpan(context.active()), () => around(() => handler.fetch(new Request(to, init))));
  };
  const requests = clientOptions && observeRequests(telemetry({ tracerProvider: spans.provider, ...clientOptions }));
  const client = await connect(url, {
    fetch,
    binding: "JSONRPC",
    ...(version !== undefined && { version }),
    interceptors: requests === undefined ? [] : [requests],
  });
  return { spans, client, seen, handler };
}

/** The span of an HTTP server, as its instrumentation opens it. */
function instrumented(spans: Spans, attributes: Record<string, string> = { "http.request.method": "POST" }) {
  return async (work: () => Promise<Response>): Promise<Response> => {
    const span = spans.provider.getTracer("http").startSpan("POST", { kind: SpanKind.SERVER, attributes });
    const key = createContextKey("OpenTelemetry SDK Context Key RPC_METADATA");
    const inner = trace.setSpan(context.active(), span).setValue(key, { type: "http", span });
    const response = await context.with(inner, work);
    const body = await response.text();
    // The request for the card is not a call.
    if (!body.includes('"supportedInterfaces"')) span.end();
    return new Response(body, { status: response.status, headers: response.headers });
  };
}

const child = (of: ReadableSpan): string | undefined => of.parentSpanContext?.spanId;

describe("a call within the span of an instrumented transport (a2a.http.server, a2a.grpc.server)", () => {
  test("enriches and renames the span of HTTP, and makes no second one", async () => {
    const spans = new Spans();
    const { client } = await connected({ tracerProvider: spans.provider, around: instrumented(spans) });
    const { task } = await client.sendMessage("work");
    expect(spans.finished.map(({ name, kind }) => [name, kind])).toEqual([
      ["invoke_agent Toy", SpanKind.INTERNAL],
      ["SendMessage", SpanKind.SERVER],
    ]);
    const http = spans.named("SendMessage");
    expect(http.attributes).toMatchObject({
      "http.request.method": "POST",
      "a2a.method.name": "SendMessage",
      "a2a.task.id": task?.id,
      "a2a.task.state": "TASK_STATE_COMPLETED",
      "gen_ai.agent.name": "Toy",
    });
    expect(child(spans.named("invoke_agent Toy"))).toBe(http.spanContext().spanId);
  });

  test("keeps the name of a span of gRPC", async () => {
    const spans = new Spans();
    const around = instrumented(spans, { "rpc.system.name": "grpc" });
    const { client } = await connected({ tracerProvider: spans.provider, around });
    await client.sendMessage("hello");
    expect(spans.named("POST").attributes["a2a.method.name"]).toBe("SendMessage");
  });

  test("is a separate span below it with the convention of 2026-05", async () => {
    const spans = new Spans();
    const around = instrumented(spans);
    const { client } = await connected({ tracerProvider: spans.provider, around, convention: "2026-05" });
    await client.sendMessage("hello");
    expect(child(spans.named("SendMessage"))).toBe(spans.named("POST").spanContext().spanId);
    expect(spans.named("POST").attributes["a2a.method.name"]).toBeUndefined();
  });
});

describe("a span of a call", () => {
  test.each(["1.0", "0.3"])("has the name of 1.0 and the version of the call: %s", async (version) => {
    const { client, spans } = await connected({ version });
    await client.sendMessage("hello");
    const { attributes } = spans.named("SendMessage");
    expect([attributes["a2a.method.name"], attributes["a2a.protocol.version"]]).toEqual(["SendMessage", version]);
  });

  test("covers the whole stream, and 5,000 tokens are two spans on the server", async () => {
    const { client, spans } = await connected({ client: {} });
    let events = 0;
    for await (const event of client.sendStreamingMessage("5000")) {
      expect(event).toBeDefined();
      if (events === 10) expect(spans.finished.filter(({ name }) => name === "SendStreamingMessage")).toEqual([]);
      events += 1;
    }
    expect(events).toBeGreaterThanOrEqual(5_000);
    await vi.waitFor(() => expect(spans.finished).toHaveLength(3));
    expect(spans.finished.filter(({ kind }) => kind !== SpanKind.CLIENT)).toHaveLength(2);
    const state = "TASK_STATE_COMPLETED";
    for (const span of spans.finished.filter(({ name }) => name === "SendStreamingMessage"))
      expect(span.attributes["a2a.task.state"]).toBe(state);
  });

  test("has the code of an error: a caller's error fails only the client's span, not the server's", async () => {
    const { client, spans } = await connected({ client: {} });
    await client.getTask("unknown").catch((error: A2AError) => expect(error.code).toBe("TaskNotFound"));
    await client.sendMessage("throw");
    const [server, at] = spans.finished.filter(({ name }) => name === "GetTask");
    expect([server?.attributes["error.type"], at?.attributes["error.type"]]).toEqual(["TaskNotFound", "TaskNotFound"]);
    expect([server?.status.code, at?.status.code]).toEqual([SpanStatusCode.UNSET, SpanStatusCode.ERROR]);
    const turn = spans.named("invoke_agent Toy");
    expect([turn.status, turn.attributes["error.type"]]).toEqual([{ code: SpanStatusCode.ERROR }, "InternalError"]);
  });

  test("never has gen_ai.operation.name or content; a turn has content if the option requests it", async () => {
    const secret = "secret-of-message 1234";
    const content: TelemetryOptions["content"] = (text, role) => `${role} ${text.replace(/\d+/, "…")}`;
    const { client, spans } = await connected({ content, client: { content }, userIds: true });
    await client.sendMessage(secret);
    await client.sendMessage("hello");
    for (const { attributes } of spans.finished.filter(({ name }) => name === "SendMessage")) {
      expect(attributes).not.toHaveProperty(["gen_ai.operation.name"]);
      expect(JSON.stringify(attributes)).not.toContain("secret");
    }
    const [asked, greeted] = spans.finished.filter(({ name }) => name === "invoke_agent Toy");
    expect(asked?.attributes["gen_ai.input.messages"]).toBe(
      '[{"role":"user","parts":[{"type":"text","content":"user secret-of-message …"}]}]',
    );
    expect(greeted?.attributes["gen_ai.output.messages"]).toBe(
      '[{"role":"assistant","parts":[{"type":"text","content":"assistant Hello"}]}]',
    );
    expect(greeted?.attributes["user.id"]).toBe("anonymous");
  });

  test("without that option no span has content or the caller", async () => {
    const { client, spans } = await connected({ client: {} });
    await client.sendMessage("secret-of-message");
    const all = JSON.stringify(spans.finished.map(({ attributes, events }) => [attributes, events]));
    expect(all).not.toMatch(/secret|user\.id/);
  });

  test("has at most 256 characters of untrusted text", async () => {
    const spans = new Spans();
    const observer = telemetry({ tracerProvider: spans.provider });
    const taskId = "x".repeat(5_000);
    const call = { operation: "GetTask", agent: "toy", principal: { subject: "ada" }, version: "1.0" } as const;
    const begun = observer.call?.({ ...call, trace: undefined, taskId });
    if (typeof begun === "object") begun.end?.();
    expect(spans.named("GetTask").attributes["a2a.task.id"]).toHaveLength(256);
  });
});

describe("the context", () => {
  test("is sent with tracestate and baggage, and is active in the agent's code", async () => {
    const seen: unknown[] = [];
    const {
      client,
      spans,
      seen: sent,
    } = await connected({
      client: {},
      onMessage: (turn) => {
        seen.push(
          propagation.getActiveBaggage()?.getEntry("tenant")?.value,
          trace.getActiveSpan()?.spanContext().traceId,
        );
        return turn.reply("Hello");
      },
    });
    const remote = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7", traceFlags: 1 };
    const { createTraceState } = await import("@opentelemetry/api");
    const outer = propagation.setBaggage(
      trace.setSpanContext(context.active(), { ...remote, traceState: createTraceState("vendor=1") }),
      propagation.createBaggage({ tenant: { value: "acme" } }),
    );
    await context.with(outer, () => client.sendMessage("hello"));
    expect(seen).toEqual(["acme", remote.traceId]);
    const headers = sent.at(-1);
    expect([headers?.get("tracestate"), headers?.get("baggage")]).toEqual(["vendor=1", "tenant=acme"]);
    const [server, atClient] = ["invoke_agent Toy", "SendMessage"].map((name) => spans.named(name));
    expect(server?.spanContext().traceState?.serialize()).toBe("vendor=1");
    expect(atClient?.spanContext().traceId).toBe(remote.traceId);
  });

  test("a span that the agent creates, such as for its model, is below the turn", async () => {
    const spans = new Spans();
    const { client } = await connected({
      tracerProvider: spans.provider,
      onMessage: (turn) =>
        spans.provider.getTracer("model").startActiveSpan("chat", (span) => {
          span.end();
          return turn.reply("Hello");
        }),
    });
    await client.sendMessage("hello");
    expect(child(spans.named("chat"))).toBe(spans.named("invoke_agent Toy").spanContext().spanId);
  });

  test("without agent spans, spans that the agent creates are below the call", async () => {
    const spans = new Spans();
    const { client } = await connected({
      tracerProvider: spans.provider,
      agentSpans: false,
      async onMessage(turn) {
        await turn.step("look up", async () => {
          spans.provider.getTracer("framework").startSpan("invoke_agent Toy").end();
        });
        return turn.reply("Hello");
      },
    });
    await client.sendMessage("hello");
    expect(spans.finished.map(({ name }) => name)).toEqual(["invoke_agent Toy", "SendMessage"]);
    expect(child(spans.named("invoke_agent Toy"))).toBe(spans.named("SendMessage").spanContext().spanId);
  });
});

describe("later work is a separate trace with a link", () => {
  test("a resumed stream is linked to the span in which the task began, at the client and on the server", async () => {
    const { client, spans } = await connected({ client: {} });
    const { task } = await client.sendMessage("ask");
    const stream = client.subscribeToTask(task?.id ?? "");
    await stream.next();
    await stream.return();
    await vi.waitFor(() => expect(spans.finished.filter(({ name }) => name === "SubscribeToTask")).toHaveLength(2));
    const began = spans.finished.filter(({ name }) => name === "SendMessage").map((span) => span.spanContext().spanId);
    for (const span of spans.finished.filter(({ name }) => name === "SubscribeToTask")) {
      expect(began).toContain(span.links[0]?.context.spanId);
      expect(span.links[0]?.attributes).toEqual({ "parley.relationship": "resume_origin" });
    }
  });

  test("a second turn is linked to the span in which its task began", async () => {
    const { client, spans } = await connected();
    const { task } = await client.sendMessage("ask");
    await client.sendMessage({ taskId: task?.id ?? "", parts: [{ text: "answer" }] });
    const [first, second] = spans.finished.filter(({ name }) => name === "invoke_agent Toy");
    expect(first?.links).toEqual([]);
    expect(second?.links.map(({ attributes }) => attributes)).toEqual([{ "parley.relationship": "task_origin" }]);
    expect(second?.spanContext().traceId).not.toBe(first?.spanContext().traceId);
  });

  test("a turn of a later message, and a retried turn, are linked to their calls", () => {
    const spans = new Spans();
    const observer = telemetry({ tracerProvider: spans.provider });
    const caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const about = {
      agent: "toy",
      taskId: "t",
      contextId: "c",
      trace: caller,
      card: { name: "Toy", description: "", version: "" },
      message: { messageId: "m", role: "ROLE_USER" as const, parts: [] },
      principal: { subject: "ada" },
    };
    for (const attempt of [1, 2]) {
      const begun = observer.turn?.({ ...about, turn: 1, attempt });
      if (typeof begun === "object") begun.end?.();
    }
    const links = spans.finished.map(({ links: [link], parentSpanContext }) => [
      parentSpanContext,
      link?.context.traceId,
      link?.attributes?.["parley.relationship"],
    ]);
    const { 1: traceId } = caller.split("-");
    expect(links).toEqual([
      [undefined, traceId, "origin"],
      [undefined, traceId, "resume_origin"],
    ]);
  });
});

describe("a delivery to a webhook", () => {
  test("is a span that the receiver continues: the first attempt in the trace of its event, a retry in a new trace", () => {
    const spans = new Spans();
    const observer = telemetry({ tracerProvider: spans.provider });
    const trace_ = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const about = { agent: "toy", taskId: "t", configId: "c", origin: "https://example.com", seq: 3, trace: trace_ };
    for (const attempt of [1, 2]) {
      const begun = observer.delivery?.({ ...about, attempt });
      if (typeof begun !== "object") throw new Error("Nothing was opened");
      const span = begun.run?.(() => trace.getActiveSpan()?.spanContext());
      expect(begun.trace).toBe(`00-${span?.traceId}-${span?.spanId}-01`);
      begun.end?.({ status: attempt === 1 ? 503 : 200 });
    }
    const [first, again] = spans.finished;
    expect(first?.spanContext().traceId).toBe(trace_.split("-")[1]);
    expect(again?.parentSpanContext).toBeUndefined();
    for (const span of spans.finished) expect(span.links[0]?.context.spanId).toBe("00f067aa0ba902b7");
    expect(first?.attributes).toMatchObject({ "http.response.status_code": 503, "server.address": "example.com" });
  });
});

describe("observers()", () => {
  test("calls all observers, even if one of them throws, and logs its error once", () => {
    const spans = new Spans();
    const broken = (): never => {
      throw new Error("no collector");
    };
    const both = observers({ call: broken, lease: broken }, telemetry({ tracerProvider: spans.provider }));
    const about = { agent: "toy", taskId: "t", contextId: "c", name: "pay" };
    const begun = both.step?.(about);
    if (typeof begun === "object") begun.end?.();
    expect(spans.finished).toHaveLength(1);
    const call = both.call?.({
      operation: "GetTask",
      agent: "toy",
      principal: { subject: "ada" },
      version: "1.0",
      trace: undefined,
    });
    expect(() => typeof call === "object" && call.end?.()).toThrow("no collector");
    expect(spans.named("GetTask").ended).toBe(true);
    expect(() => both.lease?.({ ...about, change: "lost" })).toThrow("no collector");
  });
});

test.each([
  [{ convention: "2025" }, "convention"],
  [{ content: true }, "content"],
  [{ agentSpan: false }, "agentSpan"],
])("the options %o are refused", (options, field) => {
  expect(() => telemetry(options as TelemetryOptions)).toThrow(
    expect.objectContaining({ code: "InvalidParams", fields: [expect.objectContaining({ field })] }),
  );
});
