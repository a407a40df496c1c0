import { observationOf } from "@parley/a2a/internal/protocol/index";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { Gauges } from "@parley/a2a/internal/protocol/index";
import { createHandler } from "@parley/server/internal/handler";
import { memoryStore } from "@parley/server/internal/store/index";
import { observers, telemetry } from "../src/index.ts";
import { all } from "../src/metrics/definitions.ts";
import { prometheus } from "../src/prometheus/index.ts";
import { prometheusName } from "../src/prometheus/registry.ts";
import { agentOf } from "./support.ts";
import { lived, samples, url } from "./lived.ts";

describe("/metrics", () => {
  test("has a value of every metric, in the text format of Prometheus", async () => {
    const metrics = prometheus();
    const { fetch } = await lived(metrics, [metrics.route]);
    const response = await fetch(`${url}/metrics`);
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "text/plain; version=0.0.4; charset=utf-8",
    ]);
    const text = await response.text();
    const found = samples(text);
    for (const metric of all) expect(text).toContain(`# TYPE ${prometheusName(metric)} ${metric.kind}\n`);
    const call = 'a2a_method_name="SendStreamingMessage",a2a_protocol_version="1.0",gen_ai_agent_name="Toy"';
    expect(found.get(`a2a_server_operation_duration_seconds_count{${call}}`)).toBe(1);
    expect(found.get(`a2a_client_operation_duration_seconds_bucket{${call},le="+Inf"}`)).toBe(1);
    const failed =
      'a2a_method_name="GetTask",a2a_protocol_version="1.0",gen_ai_agent_name="Toy",error_type="TaskNotFound"';
    expect(found.get(`a2a_server_operation_duration_seconds_count{${failed}}`)).toBe(1);
    expect(found.get("parley_queue_length")).toBe(0);
    const state = (name: string) => `parley_store_connections{parley_store_connection_state="${name}"}`;
    expect([found.get(state("used")), found.get(state("idle")), found.get("parley_store_connection_waits")]).toEqual([
      3, 2, 1,
    ]);
    expect(found.get("process_memory_usage_bytes")).toBeGreaterThan(1e6);
    expect(found.get('process_cpu_time_seconds_total{cpu_mode="user"}')).toBeGreaterThan(0);
  });

  test("never names a task, a message or a caller", async () => {
    const metrics = prometheus();
    const { fetch } = await lived(metrics, [metrics.route]);
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(text).not.toMatch(/task_?id|context|message_id|subject|anonymous/i);
  });

  test("needs the authenticator of the server, unless anyone may read it", async () => {
    for (const access of ["authenticated", "anyone"] as const) {
      const metrics = prometheus({ access, path: "/internal/metrics" });
      const handler = createHandler(
        agentOf("Toy", (turn) => turn.reply("Hello")),
        {
          publicUrl: url,
          store: memoryStore(),
          observer: metrics,
          routes: [metrics.route],
          authenticator: {
            securitySchemes: { key: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
            securityRequirements: [{ schemes: { key: { list: [] } } }],
            authenticate: () => {
              throw new A2AError("Unauthenticated");
            },
          },
        },
      );
      onTestFinished(() => handler.close());
      const { status } = await handler.fetch(new Request(`${url}/internal/metrics`));
      expect(status).toBe(access === "anyone" ? 200 : 401);
    }
  });

  test("has no gauges after the server has closed", async () => {
    const metrics = prometheus();
    const { handler } = await lived(metrics);
    await handler.close();
    expect(samples(await metrics.text()).has("parley_queue_length")).toBe(false);
  });

  test("reports that a store cannot be read, and has all other values", async () => {
    const metrics = prometheus();
    const gauges: Gauges = {
      process: () => ({ activeRuns: 3, restingRuns: 0, usedBytes: 7 }),
      store: async () => {
        throw new A2AError("Unavailable");
      },
    };
    const close = metrics.gauges?.(gauges);
    const found = samples(await metrics.text());
    expect([found.get("parley_store_unreadable"), found.get("parley_runs_active")]).toEqual([1, 3]);
    expect(found.has("parley_queue_length")).toBe(false);
    close?.();
  });

  test("has the other values if a store does not answer, and asks it once", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const metrics = prometheus();
    const store = vi.fn<Gauges["store"]>(() => new Promise<never>(() => {}));
    const close = metrics.gauges?.({ process: () => ({ activeRuns: 3, restingRuns: 0, usedBytes: 7 }), store });
    onTestFinished(() => close?.());
    for (let scrape = 0; scrape < 3; scrape += 1) {
      const text = metrics.text();
      await vi.advanceTimersByTimeAsync(10_000);
      const found = samples(await text);
      expect([found.get("parley_runs_active"), found.get("parley_store_unreadable")]).toEqual([3, 1]);
    }
    expect(store).toHaveBeenCalledOnce();
  });

  test("reads the store once for concurrent readers", async () => {
    const metrics = prometheus();
    const store = vi.fn<Gauges["store"]>().mockResolvedValue({
      queuedTasks: 1,
      queueAgeMs: 2500,
      waitingTasks: 2,
      dueWebhooks: 3,
      webhookDelayMs: 1500,
      suspendedTasks: 4,
    });
    const close = metrics.gauges?.({ process: () => ({ activeRuns: 0, restingRuns: 0, usedBytes: 0 }), store });
    const [found] = (await Promise.all([metrics.text(), metrics.text()])).map(samples);
    expect(store).toHaveBeenCalledOnce();
    expect(found?.get("parley_queue_age_seconds")).toBe(2.5);
    expect(found?.get("parley_webhooks_delay_seconds")).toBe(1.5);
    close?.();
  });
});

describe("a million values of a label", () => {
  test("become a hundred, and one more value `other`", async () => {
    const metrics = prometheus();
    const about = { agent: "/", taskId: "t", contextId: "c" };
    const count = 1_000_000;
    for (let at = 0; at < count; at += 1) {
      const begun = metrics.step?.({ ...about, name: `book ${at}` });
      observationOf(begun).end?.();
    }
    const text = await metrics.text();
    const counts = [...samples(text)].filter(([name]) => name.startsWith("gen_ai_execute_tool_duration_seconds_count"));
    expect(counts).toHaveLength(101);
    expect(counts.at(-1)?.[0]).toContain('gen_ai_tool_name="other"');
    expect(counts.reduce((sum, [, value]) => sum + value, 0)).toBe(count);
  });

  test("of called agents are limited, too, and use limited memory", async () => {
    const metrics = prometheus();
    const about = { operation: "GetTask", version: "1.0", trace: undefined } as const;
    const count = 50_000;
    for (let at = 0; at < count; at += 1) {
      const card = { name: `${"x".repeat(at % 2 === 0 ? 5 : 2_000)} ${at}`, description: "", version: "1" };
      observationOf(metrics.request?.({ ...about, card, url: `http://${at}.example.com` })).end?.();
    }
    const counts = [...samples(await metrics.text())].filter(([name]) =>
      name.startsWith("a2a_client_operation_duration_seconds_count"),
    );
    expect(counts).toHaveLength(101);
    expect(counts.reduce((sum, [, value]) => sum + value, 0)).toBe(count);
  });

  test("escapes a value, and replaces a long value by `other`", async () => {
    const metrics = prometheus();
    for (const name of ['say "hi"\n\\', "x".repeat(200)]) {
      const begun = metrics.delegation?.({ agent: "/", taskId: "t", contextId: "c", name, url: undefined });
      observationOf(begun).end?.();
    }
    const names = [...samples(await metrics.text()).keys()].filter((key) =>
      key.includes("delegation_duration_seconds_count"),
    );
    expect(names).toEqual([
      'parley_delegation_duration_seconds_count{gen_ai_agent_name="say \\"hi\\"\\n\\\\"}',
      'parley_delegation_duration_seconds_count{gen_ai_agent_name="other"}',
    ]);
  });
});

test("an OpenTelemetry meter has the same metrics, with the same labels and units", async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 30 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  onTestFinished(() => meterProvider.shutdown());
  const scraped = prometheus();
  await lived(observers(telemetry({ tracerProvider: false, meterProvider }), scraped));
  await reader.forceFlush();
  const exported = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
  const byName = new Map(exported.map((metric) => [metric.descriptor.name, metric]));
  expect([...byName.keys()].sort()).toEqual(all.map(({ name }) => name).sort());
  for (const { name, unit } of all) expect(byName.get(name)?.descriptor.unit).toBe(unit);
  const text = await scraped.text();
  for (const metric of all) {
    for (const { attributes } of byName.get(metric.name)?.dataPoints ?? []) {
      const labels = metric.labels.flatMap((label) =>
        attributes[label] === undefined ? [] : [`${label.replaceAll(".", "_")}="${String(attributes[label])}"`],
      );
      const suffix = metric.kind === "histogram" ? "_count" : "";
      expect(text).toContain(`${prometheusName(metric)}${suffix}${labels.length > 0 ? `{${labels.join(",")}}` : ""} `);
    }
  }
});

test("the gauges of several servers of a process add up, except ages and failures", async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 30 });
  const meterProvider = new MeterProvider({ readers: [reader] });
  onTestFinished(() => meterProvider.shutdown());
  const scraped = prometheus();
  const { gauges } = observers(telemetry({ tracerProvider: false, meterProvider }), scraped);
  const process = (activeRuns: number) => () => ({ activeRuns, restingRuns: 0, usedBytes: 0 });
  const stored = { queuedTasks: 1, waitingTasks: 0, dueWebhooks: 0, webhookDelayMs: 0, suspendedTasks: 0 };
  const store = (queueAgeMs: number) => async () => ({ ...stored, queueAgeMs });
  const failing = (): Promise<never> => Promise.reject(new A2AError("Unavailable"));
  const ends = [
    gauges?.({ process: process(1), store: store(2000) }),
    gauges?.({ process: process(2), store: store(1000) }),
    gauges?.({ process: process(4), store: failing }),
    gauges?.({ process: process(8), store: failing }),
  ];
  const exported = async (name: string): Promise<unknown> => {
    exporter.reset();
    await reader.forceFlush();
    const found = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
    return found.find(({ descriptor }) => descriptor.name === name)?.dataPoints.map(({ value }) => value);
  };
  const samplesOf = samples(await scraped.text());
  const expected = [
    ["parley.runs.active", 15],
    ["parley.queue.length", 2],
    ["parley.queue.age", 2],
    ["parley.store.unreadable", 1],
  ] as const;
  for (const [name, value] of expected) {
    const metric = all.find((each) => each.name === name);
    expect([name, metric && samplesOf.get(prometheusName(metric))]).toEqual([name, value]);
    expect([name, await exported(name)]).toEqual([name, [value]]);
  }
  for (const end of ends.slice(1)) end?.();
  expect(await exported("parley.runs.active")).toEqual([1]);
  ends[0]?.();
  const last = gauges?.({ process: process(3), store: store(0) });
  onTestFinished(() => last?.());
  expect(await exported("parley.runs.active")).toEqual([3]);
});
