import { describe, expect, onTestFinished, test, vi } from "vitest";
import { connect } from "@parley/a2a";
import { observeRequests, type ClientBinding } from "@parley/a2a/protocol";
import { grpcBinding } from "@parley/grpc/client";
import { serve } from "@parley/node";
import { memoryStore } from "@parley/server";
import type { AgentDefinition } from "@parley/server/internal/agent/index";
import { telemetry, type TelemetryOptions } from "../src/index.ts";
import { agentOf, registered, Spans } from "./support.ts";

/** The trace of a message that three agents answer: A asks B, and B asks C. Each of them is a server with a port of its own. */

registered();

const call = "a2a.message.id a2a.method.name a2a.protocol.version a2a.task.id a2a.task.state";
const agent = "gen_ai.agent.description gen_ai.agent.name gen_ai.agent.version gen_ai.conversation.id";
const client = `CLIENT ${call} ${agent} server.address server.port`;
const server = `SERVER ${call} client.address ${agent}`;
const turn = `INTERNAL a2a.task.id ${agent} gen_ai.operation.name openinference.span.kind parley.attempt parley.turn session.id`;
const delegation =
  "CLIENT gen_ai.agent.name gen_ai.conversation.id gen_ai.operation.name openinference.span.kind server.address server.port session.id";
const step =
  "INTERNAL gen_ai.conversation.id gen_ai.operation.name gen_ai.tool.name gen_ai.tool.type openinference.span.kind session.id";

/** Each line is a child of the line before. */
const golden = [
  `SendMessage ${client}`,
  `SendMessage ${server}`,
  `invoke_agent A ${turn}`,
  `invoke_agent B ${delegation}`,
  `SendStreamingMessage ${client}`,
  `SendStreamingMessage ${server}`,
  `invoke_agent B ${turn}`,
  `invoke_agent C ${delegation}`,
  `SendStreamingMessage ${client}`,
  `SendStreamingMessage ${server}`,
  `invoke_agent C ${turn}`,
  `execute_tool look up ${step}`,
].map((line, depth) => "  ".repeat(depth) + line);

async function served(
  name: string,
  onMessage: AgentDefinition["onMessage"],
  spans: Spans,
  options: TelemetryOptions = {},
): Promise<string> {
  const server = await serve(agentOf(name, onMessage), {
    port: 0,
    grpc: true,
    signals: false,
    logger: false,
    store: memoryStore(),
    observer: telemetry({ tracerProvider: spans.provider, ...options }),
  });
  onTestFinished(() => server.close());
  return server.url;
}

async function clientOf(url: string, binding: string, spans: Spans, options: TelemetryOptions = {}) {
  const observer = telemetry({ tracerProvider: spans.provider, ...options });
  const bindings: readonly ClientBinding[] = [grpcBinding()];
  return connect(url, { binding, bindings, observer, interceptors: [observeRequests(observer)] });
}

/** A, B and C behind one another. Returns a client of A. */
async function chain(binding: string, spans: Spans) {
  const inC: AgentDefinition["onMessage"] = async function* (turn_) {
    const answer = await turn_.step("look up", async () => "42");
    yield turn_.artifact({ parts: [{ text: answer }] });
  };
  const c = await clientOf(await served("C", inC, spans), binding, spans);
  const inB: AgentDefinition["onMessage"] = async function* (turn_) {
    yield* turn_.delegate(c, "What is it?");
  };
  const b = await clientOf(await served("B", inB, spans), binding, spans);
  const inA: AgentDefinition["onMessage"] = async function* (turn_) {
    yield* turn_.delegate(b, "Ask C");
  };
  return clientOf(await served("A", inA, spans), binding, spans);
}

describe.each(["JSONRPC", "HTTP+JSON", "GRPC"])("a trace over three agents and %s", (binding) => {
  test("has one call, one turn and one delegation for each agent, in one trace", async () => {
    const spans = new Spans();
    const a = await chain(binding, spans);
    const { task } = await a.sendMessage("Go");
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    await vi.waitFor(() => expect(spans.finished).toHaveLength(12));
    expect(new Set(spans.finished.map((span) => span.spanContext().traceId)).size).toBe(1);
    expect(spans.tree()).toEqual(golden);
  });
});
