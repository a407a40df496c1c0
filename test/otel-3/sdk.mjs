// Sends a message to an agent with SDK 3 of OpenTelemetry and its API 1.10, and prints the spans. SDK 3 needs Node 22.15.

import { context, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { MeterProvider, InMemoryMetricExporter, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { connect } from "@parley/a2a";
import { observeRequests } from "@parley/a2a/protocol";
import { createHandler, defineAgent, memoryStore } from "@parley/server";
import { telemetry } from "@parley/telemetry";

const exporter = new InMemorySpanExporter();
trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }));
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
const metricExporter = new InMemoryMetricExporter(1);
const reader = new PeriodicExportingMetricReader({ exporter: metricExporter, exportIntervalMillis: 2 ** 30 });
const meterProvider = new MeterProvider({ readers: [reader] });

const agent = defineAgent({
  name: "Toy",
  description: "A toy",
  version: "1",
  skills: [],
  async *onMessage(turn) {
    await turn.step("look up", async () => 42);
    yield turn.artifact({ parts: [{ text: "done" }] });
  },
});
// Without a tracer provider: the package has found the one that this API has registered.
const observer = telemetry({ meterProvider });
const publicUrl = "http://localhost:4000";
const handler = createHandler(agent, { publicUrl, store: memoryStore(), observer });
/** @param {string} url @param {RequestInit} init */
const fetch = (url, init) => handler.fetch(new Request(url, init));
const client = await connect(publicUrl, { fetch, interceptors: [observeRequests(observer)] });
await client.sendMessage("Go");
await reader.forceFlush();
await handler.close();
const spans = exporter.getFinishedSpans();
const nameOf = (/** @type {string | undefined} */ id) => spans.find((span) => span.spanContext().spanId === id)?.name;
process.stdout.write(
  JSON.stringify({
    spans: spans.map((span) => [span.name, span.kind, nameOf(span.parentSpanContext?.spanId) ?? null]),
    traces: new Set(spans.map((span) => span.spanContext().traceId)).size,
    metrics: metricExporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) =>
        scopeMetrics.flatMap(({ metrics }) => metrics.map(({ descriptor }) => descriptor.name)),
      ).length,
  }),
);
await meterProvider.shutdown();
