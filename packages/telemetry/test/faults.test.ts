import { createServer } from "node:net";
import { diag, DiagLogLevel } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  SimpleSpanProcessor,
  type SpanExporter,
} from "@opentelemetry/sdk-trace-base";
import { NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { connect } from "@parley/a2a/internal/client/index";
import { safeObserver } from "@parley/a2a/internal/protocol/index";
import { createHandler } from "@parley/server/internal/handler";
import { memoryStore } from "@parley/server/internal/store/index";
import { LinesLogger } from "../../a2a/test/transport/support.ts";
import { diagLogger, telemetry, type TelemetryOptions } from "../src/index.ts";
import { agentOf, registered, Spans } from "./support.ts";

/** An exporter that fails changes nothing for the agent. */

registered();

/** Sends messages to an agent with this provider. Returns what its log has. */
async function logOf(tracerProvider: BasicTracerProvider, options: TelemetryOptions = {}): Promise<readonly string[]> {
  const logger = new LinesLogger();
  const agent = agentOf("Toy", async function* (turn) {
    yield turn.artifact({ parts: [{ text: "done" }] });
  });
  const publicUrl = "http://localhost:4000";
  const observer = telemetry({ ...options, tracerProvider });
  const handler = createHandler(agent, { publicUrl, store: memoryStore(), logger, observer });
  onTestFinished(() => handler.close());
  const fetch = (url: string, init: RequestInit): Promise<Response> => handler.fetch(new Request(url, init));
  const client = await connect(publicUrl, { fetch, binding: "JSONRPC" });
  for (let message = 0; message < 20; message += 1) {
    const { task } = await client.sendMessage("work");
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
  }
  return logger.lines.map(({ message }) => message);
}

const nothing = async (): Promise<void> => {};

describe("an agent is unharmed by", () => {
  test("an exporter that never answers, behind a buffer that is full", async () => {
    let exported = 0;
    const exporter: SpanExporter = { export: (spans) => void (exported += spans.length), shutdown: nothing };
    const limits = { maxQueueSize: 4, maxExportBatchSize: 2, scheduledDelayMillis: 1, exportTimeoutMillis: 60_000 };
    const spanProcessors = [new BatchSpanProcessor(exporter, limits)];
    expect(await logOf(new BasicTracerProvider({ spanProcessors }))).toEqual([]);
    expect(exported).toBeLessThan(40);
  });

  test("an exporter that throws", async () => {
    const exporter: SpanExporter = {
      export() {
        throw new Error("no collector");
      },
      shutdown: nothing,
    };
    const spanProcessors = [new SimpleSpanProcessor(exporter)];
    expect(await logOf(new BasicTracerProvider({ spanProcessors }))).toEqual([]);
  });

  test("a processor that throws, with one log line", async () => {
    const broken = (): never => {
      throw new Error("no collector");
    };
    const spanProcessors = [{ onStart: broken, onEnd: broken, forceFlush: nothing, shutdown: nothing }];
    expect(await logOf(new BasicTracerProvider({ spanProcessors }))).toEqual(["An observer failed"]);
  });

  test("content that cannot be redacted: it is logged once, and the spans have no content", async () => {
    const { provider, exporter } = new Spans();
    const content = (): never => {
      throw new Error("no rule for this text");
    };
    expect(await logOf(provider, { content })).toEqual(["An observer failed"]);
    const turns = exporter.getFinishedSpans().filter(({ name }) => name === "invoke_agent Toy");
    expect(turns).toHaveLength(20);
    for (const { attributes } of turns) expect(Object.keys(attributes).join()).not.toContain("messages");
  });

  test("an OTLP address where no server listens, with one log line", async () => {
    const server = createServer();
    const port = await new Promise<number>((resolve) =>
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        resolve(typeof address === "object" && address !== null ? address.port : 0);
      }),
    );
    await new Promise((resolve) => server.close(resolve));
    const told = new LinesLogger();
    diag.setLogger(diagLogger(told), DiagLogLevel.WARN);
    onTestFinished(() => diag.disable());
    const exporter = new OTLPTraceExporter({ url: `http://127.0.0.1:${port}/v1/traces`, timeoutMillis: 50 });
    const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
    expect(await logOf(provider)).toEqual([]);
    await expect(provider.forceFlush()).rejects.toBeDefined();
    // Forty exports have failed, and are logged once.
    expect(told.lines.map(({ message, fields }) => [message, String(fields?.["cause"])])).toEqual([
      ["OpenTelemetry reported a problem; not logging repetitions", expect.stringContaining("ECONNREFUSED")],
    ]);
  });
});

test("each error of an observer is logged once, and at most twenty errors", () => {
  const logger = new LinesLogger();
  const observer = safeObserver(
    {
      lease: ({ taskId }) => {
        throw new Error(taskId);
      },
    },
    logger,
  );
  for (let at = 0; at < 100; at += 1) {
    observer.lease?.({ agent: "toy", taskId: String(at % 50), contextId: "c", change: "lost" });
  }
  expect(logger.lines.map(({ fields }) => String(fields?.["cause"]))).toEqual(
    Array.from({ length: 20 }, (_, at) => `Error: ${at}`),
  );
});
