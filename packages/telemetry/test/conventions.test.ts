import { isDefaultExportSpan, LangfuseSpanProcessor } from "@langfuse/otel";
import { InMemorySpanExporter, type ReadableSpan } from "@opentelemetry/sdk-trace-base";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { A2AError } from "@parley/a2a/internal/model/index";
import { telemetry } from "../src/index.ts";
import { chain } from "./chain.ts";
import { langfuseTypeOf, phoenixKindOf, phoenixSessionOf, problemsOf } from "./conventions.ts";
import { registered, Spans } from "./support.ts";

/** Our spans follow the conventions, and suit common tools. conventions.ts names the sources. */

registered();

/** Spans of every kind, with every attribute: the spans of a message over three agents, and some that are created directly. */
async function everySpan(): Promise<readonly ReadableSpan[]> {
  const spans = new Spans();
  const options = { content: (text: string) => text, userIds: true };
  const a = await chain("JSONRPC", spans, options);
  await a.sendMessage("Go");
  await a.getTask("unknown").catch((error: A2AError) => expect(error.code).toBe("TaskNotFound"));
  const observer = telemetry({ tracerProvider: spans.provider, ...options });
  const facts = { taskId: "t", contextId: "c", messageId: "m", referenceTaskIds: ["u"], tenant: "acme" };
  const about = { agent: "/", principal: { subject: "ada" }, version: "1.0", trace: undefined };
  const call = observer.call?.({ ...about, operation: "SendMessage", ...facts });
  if (typeof call === "object") call.end?.(new A2AError("InternalError"));
  const webhook = { agent: "/", taskId: "t", configId: "c", origin: "https://example.com", seq: 1, attempt: 2 };
  const delivery = observer.delivery?.({ ...webhook, trace: undefined });
  if (typeof delivery === "object") delivery.end?.({ status: 503, error: new A2AError("Unavailable") });
  await vi.waitFor(() => expect(spans.finished).toHaveLength(16));
  return spans.finished;
}

const line = (span: ReadableSpan, what: unknown): string => `${span.name}: ${String(what)}`;

test("every attribute has the name, type and values of the conventions, and is only on spans that may have it", async () => {
  const spans = await everySpan();
  expect(spans.flatMap(problemsOf)).toEqual([]);
  // Every attribute was checked.
  const keys = new Set(spans.flatMap(({ attributes }) => Object.keys(attributes)));
  expect([...keys].sort()).toEqual([
    "a2a.message.id",
    "a2a.message.reference_task_ids",
    "a2a.method.name",
    "a2a.protocol.version",
    "a2a.task.id",
    "a2a.task.state",
    "a2a.tenant",
    "client.address",
    "error.type",
    "gen_ai.agent.description",
    "gen_ai.agent.name",
    "gen_ai.agent.version",
    "gen_ai.conversation.id",
    "gen_ai.input.messages",
    "gen_ai.operation.name",
    "gen_ai.output.messages",
    "gen_ai.tool.name",
    "gen_ai.tool.type",
    "http.response.status_code",
    "openinference.span.kind",
    "parley.attempt",
    "parley.turn",
    "parley.webhook.attempt",
    "server.address",
    "server.port",
    "session.id",
    "user.id",
  ]);
});

test("Phoenix shows turns and delegations as agents, steps as tools, and a conversation as a session", async () => {
  for (const span of await everySpan()) {
    const kind = span.name.startsWith("invoke_agent")
      ? "AGENT"
      : span.name.startsWith("execute_tool")
        ? "TOOL"
        : undefined;
    expect(line(span, phoenixKindOf(span))).toBe(line(span, kind));
    if (kind !== undefined) expect(phoenixSessionOf(span)).toEqual(expect.any(String));
  }
});

describe("Langfuse", () => {
  test("exports each span of a message by its default filter, as agents, tools and spans", async () => {
    const spans = await everySpan();
    const dropped = spans.filter((span) => !isDefaultExportSpan(span)).map(({ name }) => name);
    // `@langfuse/otel` exports only the spans of agents.
    expect(dropped).toEqual(["webhook delivery"]);
    for (const span of spans) {
      const [operation = ""] = span.name.split(" ");
      const type = { invoke_agent: "AGENT", execute_tool: "TOOL" }[operation] ?? "SPAN";
      expect(line(span, langfuseTypeOf(span))).toBe(line(span, type));
    }
  });

  test("its processor exports the spans of a server and its client", async () => {
    const exporter = new InMemorySpanExporter();
    const processor = new LangfuseSpanProcessor({ exporter, exportMode: "immediate", publicKey: "p", secretKey: "s" });
    const spans = new Spans([processor]);
    onTestFinished(() => spans.provider.shutdown());
    const a = await chain("JSONRPC", spans);
    await a.sendMessage("Go");
    await vi.waitFor(async () => {
      await processor.forceFlush();
      expect(exporter.getFinishedSpans()).toHaveLength(12);
    });
  });
});
