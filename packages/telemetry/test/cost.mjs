// node packages/telemetry/test/cost.mjs: what telemetry costs a server, in CPU for each message, measured in turns with and without it.

import { fork } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { fileURLToPath } from "node:url";

/** What is compared. A thousandth is sampled by `sampled`. */
const modes = ["off", "metrics", "prometheus", "sampled", "traces"];
const rounds = Number(process.env["ROUNDS"] ?? 15);
const messages = Number(process.env["MESSAGES"] ?? 3000);
const connections = 16;

/** @param {string | undefined} mode */
async function observerOf(mode) {
  const { context, propagation } = await import("@opentelemetry/api");
  const { AsyncLocalStorageContextManager } = await import("@opentelemetry/context-async-hooks");
  const { W3CTraceContextPropagator } = await import("@opentelemetry/core");
  const sdk = await import("@opentelemetry/sdk-trace-base");
  const { telemetry } = await import("@parley/telemetry");
  const { prometheus } = await import("@parley/telemetry/prometheus");
  if (mode === "prometheus") return prometheus();
  const { MeterProvider } = await import("@opentelemetry/sdk-metrics");
  if (mode === "metrics") return telemetry({ tracerProvider: false, meterProvider: new MeterProvider() });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  /** @type {import("@opentelemetry/sdk-trace-base").SpanExporter} */
  const exporter = { export: (_spans, done) => done({ code: 0 }), shutdown: async () => {} };
  const ratio = new sdk.TraceIdRatioBasedSampler(mode === "sampled" ? 0.001 : 1);
  const tracerProvider = new sdk.BasicTracerProvider({
    sampler: new sdk.ParentBasedSampler({ root: ratio }),
    spanProcessors: [new sdk.BatchSpanProcessor(exporter)],
  });
  return telemetry({ tracerProvider, meterProvider: false });
}

/** @param {string | undefined} mode */
async function serving(mode) {
  const { serve } = await import("@parley/node");
  const { defineAgent, memoryStore } = await import("@parley/server");
  const agent = defineAgent({
    name: "Toy",
    description: "A toy",
    version: "1",
    skills: [],
    async *onMessage(turn) {
      if (turn.text === "reply") return turn.reply("forty-two");
      yield turn.artifact({ parts: [{ text: "forty-two" }] });
      return undefined;
    },
  });
  const observer = mode === "off" ? {} : { observer: await observerOf(mode) };
  const server = await serve(agent, { port: 0, signals: false, logger: false, store: memoryStore(), ...observer });
  process.on("message", () => process.send?.(process.cpuUsage()));
  process.on("disconnect", () => process.exit());
  process.send?.(server.url);
}

class Subject {
  /** @param {string} mode */
  constructor(mode) {
    this.child = fork(fileURLToPath(import.meta.url), [mode]);
    this.agent = new Agent({ keepAlive: true, maxSockets: connections });
    this.url = "";
  }

  async start() {
    const [url] = await once(this.child, "message");
    this.url = String(url);
    return this;
  }

  /** CPU of the server so far, in microseconds. */
  async cpu() {
    this.child.send("cpu");
    const [{ user, system }] = await once(this.child, "message");
    return user + system;
  }

  /** Sends messages. Resolves to the CPU of each, in microseconds. @param {string} text */
  async measure(text) {
    const before = await this.cpu();
    let left = messages;
    const worker = async () => {
      while (left-- > 0) await this.send(text);
    };
    await Promise.all(Array.from({ length: connections }, worker));
    return ((await this.cpu()) - before) / messages;
  }

  /** @param {string} text @returns {Promise<void>} */
  send(text) {
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }] };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } });
    const headers = {
      "content-type": "application/json",
      "a2a-version": "1.0",
      "content-length": Buffer.byteLength(body),
    };
    return new Promise((resolve, reject) => {
      const sent = request(this.url, { method: "POST", agent: this.agent, headers }, (response) => {
        let answer = "";
        response.setEncoding("utf8").on("data", (piece) => (answer += piece));
        response.on("end", () => (answer.includes("forty-two") ? resolve() : reject(new Error(answer))));
      });
      sent.on("error", reject).end(body);
    });
  }
}

/** @param {readonly number[]} values */
const median = (values) => [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;

async function main() {
  const subjects = await Promise.all(modes.map((mode) => new Subject(mode).start()));
  for (const text of ["reply", "task"]) {
    /** @type {number[][]} */
    const figures = modes.map(() => []);
    for (let round = -2; round < rounds; round += 1) {
      for (const [at, subject] of subjects.entries()) {
        const figure = await subject.measure(text);
        // The first rounds compile.
        if (round >= 0) figures[at]?.push(figure);
      }
    }
    const [off = 0, ...others] = figures.map(median);
    const rest = others.map(
      (each, at) => `${modes[at + 1]} +${(each - off).toFixed(1)} µs (${((each / off - 1) * 100).toFixed(0)} %)`,
    );
    process.stdout.write(`${text}: off ${off.toFixed(1)} µs, ${rest.join(", ")}\n`);
  }
  for (const { child, agent } of subjects) {
    agent.destroy();
    child.disconnect();
  }
}

const [, , mode] = process.argv;
await (mode === undefined ? main() : serving(mode));
