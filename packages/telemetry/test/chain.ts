import { onTestFinished } from "vitest";
import { connect } from "@parley/a2a";
import { observeRequests, type ClientBinding } from "@parley/a2a/protocol";
import { grpcBinding } from "@parley/grpc/client";
import { serve } from "@parley/node";
import { memoryStore } from "@parley/server";
import type { AgentDefinition } from "@parley/server/internal/agent/index";
import { telemetry, type TelemetryOptions } from "../src/index.ts";
import { agentOf, type Spans } from "./support.ts";

/* Three agents that call one another, each a server with its own port. */

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

/** Serves A, which calls B, which calls C. Returns a client of A. */
export async function chain(binding: string, spans: Spans, options: TelemetryOptions = {}) {
  const inC: AgentDefinition["onMessage"] = async function* (turn_) {
    const answer = await turn_.step("look up", async () => "42");
    yield turn_.artifact({ parts: [{ text: answer }] });
  };
  const c = await clientOf(await served("C", inC, spans, options), binding, spans, options);
  const inB: AgentDefinition["onMessage"] = async function* (turn_) {
    yield* turn_.delegate(c, "What is it?");
  };
  const b = await clientOf(await served("B", inB, spans, options), binding, spans, options);
  const inA: AgentDefinition["onMessage"] = async function* (turn_) {
    yield* turn_.delegate(b, "Ask C");
  };
  return clientOf(await served("A", inA, spans, options), binding, spans, options);
}
