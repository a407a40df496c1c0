// node packages/telemetry/test/cost.mjs: what telemetry costs a server, in CPU for each message, measured in short turns with and without it.
// MODES, TEXTS, ROUNDS and MESSAGES say what is measured, and for how long.

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/**
 * What is compared, each in a process of its own: what one activates, such as `AsyncLocalStorage` of Node 20, would cost the others too. `control` is
 * another server without telemetry, and says how far a figure can be trusted. Of `sampled` and `sdk-sampled` a thousandth of the messages is recorded.
 * `sdk` and `sdk-sampled` are the floor: two spans for each message by the SDK alone, with the same attributes, active around the same work.
 */
const all = ["off", "control", "metrics", "prometheus", "sampled", "sdk-sampled", "traces", "sdk", "default"];
const modes = ["off", "control", ...(process.env["MODES"]?.split(",") ?? all.slice(2))];
const texts = process.env["TEXTS"]?.split(",") ?? ["reply", "task"];
const rounds = Number(process.env["ROUNDS"] ?? 60);
const messages = Number(process.env["MESSAGES"] ?? 100);
/** Rounds in which the compiler is at work. */
const warmUp = 15;
/** Messages in progress at a time. */
const width = 8;

const agentName = "Toy";

/**
 * Two spans as someone would make them by hand.
 * @param {import("@opentelemetry/api").Tracer} tracer
 * @param {typeof import("@opentelemetry/api")} api
 * @returns {import("@parley/server").Observer}
 */
function handMade(tracer, { context, trace }) {
  const agent = {
    "gen_ai.agent.name": agentName,
    "gen_ai.agent.description": "A toy",
    "gen_ai.agent.version": "1",
    "gen_ai.conversation.id": "c",
    "a2a.task.id": "t",
  };
  const call = {
    ...agent,
    "a2a.method.name": "SendMessage",
    "a2a.protocol.version": "1.0",
    "a2a.message.id": "m",
    "a2a.task.state": "TASK_STATE_COMPLETED",
  };
  const turn = {
    ...agent,
    "gen_ai.operation.name": "invoke_agent",
    "session.id": "c",
    "openinference.span.kind": "AGENT",
    "parley.turn": 1,
    "parley.attempt": 1,
  };
  /** @param {string} name @param {import("@opentelemetry/api").SpanOptions} options */
  const active = (name, options) => () => {
    const parent = context.active();
    const span = tracer.startSpan(name, options, parent);
    const inner = trace.setSpan(parent, span);
    return {
      /** @template T @param {() => T} work */
      run: (work) => context.with(inner, work),
      end: () => span.end(),
    };
  };
  return {
    call: active("SendMessage", { kind: 1, attributes: call }),
    turn: active(`invoke_agent ${agentName}`, { attributes: turn }),
  };
}

/** @param {string} mode @returns {Promise<import("@parley/server").Observer>} */
async function observerOf(mode) {
  const api = await import("@opentelemetry/api");
  const { AsyncLocalStorageContextManager } = await import("@opentelemetry/context-async-hooks");
  const { W3CTraceContextPropagator } = await import("@opentelemetry/core");
  const metrics = await import("@opentelemetry/sdk-metrics");
  const sdk = await import("@opentelemetry/sdk-trace-base");
  const { telemetry } = await import("@parley/telemetry");
  const { prometheus } = await import("@parley/telemetry/prometheus");
  if (mode === "prometheus") return prometheus();
  const nothing = async () => {};
  /** @type {import("@opentelemetry/sdk-metrics").PushMetricExporter} */
  const metricExporter = { export: (_metrics, done) => done({ code: 0 }), shutdown: nothing, forceFlush: nothing };
  const reader = new metrics.PeriodicExportingMetricReader({ exporter: metricExporter });
  const meterProvider = new metrics.MeterProvider({ readers: [reader] });
  if (mode === "metrics") return telemetry({ tracerProvider: false, meterProvider });
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  api.propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  /** @type {import("@opentelemetry/sdk-trace-base").SpanExporter} */
  const exporter = { export: (_spans, done) => done({ code: 0 }), shutdown: nothing };
  const ratio = new sdk.TraceIdRatioBasedSampler(mode === "sdk" || mode === "traces" ? 1 : 0.001);
  const tracerProvider = new sdk.BasicTracerProvider({
    sampler: new sdk.ParentBasedSampler({ root: ratio }),
    spanProcessors: [new sdk.BatchSpanProcessor(exporter)],
  });
  if (mode.startsWith("sdk")) return handMade(tracerProvider.getTracer("by hand"), api);
  return telemetry({ tracerProvider, meterProvider: mode === "default" && meterProvider });
}

/** Serves an agent in this process, and sends itself messages when it is told to. @param {string} mode */
async function serving(mode) {
  const { createHandler, defineAgent, memoryStore } = await import("@parley/server");
  const agent = defineAgent({
    name: agentName,
    description: "A toy",
    version: "1",
    skills: [],
    async *onMessage(turn) {
      if (turn.text === "reply") return turn.reply("forty-two");
      yield turn.artifact({ parts: [{ text: "forty-two" }] });
      return undefined;
    },
  });
  const publicUrl = "http://localhost:4000/";
  const observer = mode === "off" || mode === "control" ? {} : { observer: await observerOf(mode) };
  const handler = createHandler(agent, { publicUrl, store: memoryStore(), ...observer });
  const headers = { "content-type": "application/json", "a2a-version": "1.0" };
  /** @param {string} text */
  const send = async (text) => {
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } });
    const response = await handler.fetch(new Request(publicUrl, { method: "POST", headers, body }));
    const answer = await response.text();
    if (!answer.includes("forty-two")) throw new Error(answer);
  };
  /** @param {string} text */
  const measure = async (text) => {
    const before = process.cpuUsage();
    let left = messages;
    const worker = async () => {
      while (left-- > 0) await send(text);
    };
    await Promise.all(Array.from({ length: width }, worker));
    const { user, system } = process.cpuUsage(before);
    process.send?.((user + system) / messages);
  };
  process.on("message", (text) => void measure(String(text)));
  process.on("disconnect", () => process.exit());
  process.send?.("ready");
}

/** @param {readonly number[]} values */
const median = (values) => [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;

async function main() {
  const subjects = await Promise.all(
    modes.map(async (mode) => {
      const child = fork(fileURLToPath(import.meta.url), [mode]);
      await once(child, "message");
      return { mode, child };
    }),
  );
  process.stdout.write(`Node ${process.version}, ${rounds} rounds of ${messages} messages\n`);
  for (const text of texts) {
    /** @type {Map<string, number[]>} */
    const figures = new Map(modes.map((mode) => [mode, []]));
    for (let round = -warmUp; round < rounds; round += 1) {
      // Each other round backwards: what the machine does at that moment meets both ends of the list.
      for (const { mode, child } of round % 2 === 0 ? subjects : [...subjects].reverse()) {
        child.send(text);
        const [figure] = await once(child, "message");
        if (round >= 0) figures.get(mode)?.push(Number(figure));
      }
    }
    const off = figures.get("off") ?? [];
    const bases = off.map((each, round) => (each + (figures.get("control")?.[round] ?? each)) / 2);
    for (const [mode, each] of figures) {
      const ratio = median(each.map((figure, round) => figure / (bases[round] ?? figure)));
      process.stdout.write(`${text} ${mode}: ${median(each).toFixed(1)} µs, ${ratio.toFixed(3)} of a server without\n`);
    }
  }
  for (const { child } of subjects) child.disconnect();
}

const [, , mode] = process.argv;
await (mode === undefined ? main() : serving(mode));
