import { context, trace } from "@opentelemetry/api";
import { describe, expect, test } from "vitest";
import { observerContract, type Runner } from "@parley/testing";
import { observers, telemetry } from "../src/index.ts";
import { prometheus } from "../src/prometheus/index.ts";
import { registered, Spans } from "./support.ts";

registered();
const runner: Runner = { describe, it: test, expect };
const active = (): string | undefined => trace.getSpan(context.active())?.spanContext().spanId;

describe("telemetry() with an SDK", () => {
  observerContract(runner, { open: () => ({ observer: telemetry({ tracerProvider: new Spans().provider }), active }) });
});

describe("telemetry() without an SDK", () => {
  observerContract(runner, { open: () => ({ observer: telemetry() }) });
});

describe("prometheus()", () => {
  observerContract(runner, { open: () => ({ observer: prometheus() }) });
});

describe("observers() of both", () => {
  observerContract(runner, {
    open: () => ({ observer: observers(prometheus(), telemetry({ tracerProvider: new Spans().provider })), active }),
  });
});
