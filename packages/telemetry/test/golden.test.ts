import { describe, expect, test, vi } from "vitest";
import { chain } from "./chain.ts";
import { registered, Spans } from "./support.ts";

/** The trace of a message that three agents answer: A asks B, and B asks C. Each is a server with its own port. */

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
