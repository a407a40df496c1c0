import { defineAgent, memoryStore, serve } from "@parley/node";
import { connect } from "@parley/a2a";
import { traceability, traceStep } from "@parley/extensions/traceability";
import { describe, expect, it, onTestFinished } from "vitest";
import { describePeer, runClient, startServer, type PeerProgram } from "./peer.ts";

/*
 * The Traceability extension with peers that behave like its public samples on the wire (a2aproject/a2a-samples, samples/python:
 * extensions/traceability, agents/adk_currency_agent and its evaluation, hosts/a2a_multiagent_host), on the same SDK.
 */

const python: PeerProgram = { name: "Python SDK 0.3.26", environment: "python03", program: "traceability_v03.py" };

/** Returns a rate that it gets from a tool. */
const agent = defineAgent({
  name: "Parley traces",
  description: "Knows a rate",
  version: "1.0.0",
  skills: [],
  extensions: [traceability],
  async *onMessage(turn) {
    const init = { name: "get_rate", parameters: { base: turn.text }, stepType: "tool_call" };
    const rate = await traceStep(turn.ext(traceability), init, () => "0.859");
    yield turn.completed(rate);
  },
});

describePeer(python, () => {
  it("reads the tools that our agent called from its task, as the evaluation of the currency agent does", async () => {
    const server = await serve(agent, { port: 0, store: memoryStore() });
    onTestFinished(() => server.close({ grace: 0 }));
    const { result, text } = (await runClient(python, ["call", server.url])).get("trajectory") ?? {};
    expect(result, text).toMatchObject({ tools: [["get_rate", { base: "USD" }]] });
    // Exactly the members of the sample.
    const { trace } = result as { trace: { steps: readonly object[] } };
    expect(Object.keys(trace.steps[0] ?? {}).sort()).toEqual([
      "additional_attributes",
      "call_type",
      "cost",
      "end_time",
      "error",
      "latency",
      "name",
      "parameters",
      "parent_step_id",
      "requests",
      "start_time",
      "step_id",
      "step_type",
      "total_tokens",
      "trace_id",
    ]);
  });

  describe.each([
    ["in metadata of its last status, like the currency agent", "METADATA"],
    ["as text of its artifact, like the multi-agent host", "ARTIFACT"],
  ])("returns its trace %s", (_, place) => {
    it("which our client reads from events and from the task", async () => {
      const server = await startServer(python, ["serve", place]);
      onTestFinished(() => server.stop());
      const client = await connect(server.url, { extensions: [traceability] });
      const streamed = [];
      for await (const event of client.sendStreamingMessage("USD")) {
        const trace = event.ext(traceability)?.trace;
        if (trace !== undefined) streamed.push(trace);
      }
      const { task } = await client.sendMessage("USD");
      for (const trace of [streamed.at(-1), task?.ext(traceability)?.trace]) {
        expect(trace?.steps).toMatchObject([
          { callType: "TOOL", name: "get_rate", stepType: "tool_call", parameters: { base: "USD", symbols: "EUR" } },
          { callType: "TOOL", name: "get_rate", stepType: "tool_response", parameters: { response: { EUR: 0.859 } } },
          { callType: "HOST", name: "host", stepType: "ending", totalTokens: 42 },
        ]);
      }
    });

    it("which becomes part of our agent's trace when it delegates", async () => {
      const other = await startServer(python, ["serve", place]);
      onTestFinished(() => other.stop());
      const rates = await connect(other.url);
      const planner = defineAgent({
        name: "Planner",
        description: "Asks another agent",
        version: "1.0.0",
        skills: [],
        extensions: [traceability],
        async *onMessage(turn) {
          yield turn.working();
          yield* turn.delegate(rates, turn.text);
        },
      });
      const server = await serve(planner, { port: 0, store: memoryStore() });
      onTestFinished(() => server.close({ grace: 0 }));
      const client = await connect(server.url, { extensions: [traceability] });
      const { task } = await client.sendMessage("USD");
      const [step] = task?.ext(traceability)?.trace?.steps ?? [];
      expect(step).toMatchObject({ callType: "AGENT", name: "Python traces", stepType: "agent_call" });
      expect(step?.responseTrace?.steps.map(({ name }) => name)).toEqual(["get_rate", "get_rate", "host"]);
    });
  });
});
