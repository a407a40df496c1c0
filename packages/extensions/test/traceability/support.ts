import { onTestFinished } from "vitest";
import type { Client } from "@parley/a2a/internal/client/index";
import { traceability, traceStep, type ResponseTrace } from "../../src/traceability/index.ts";
import { defineAgent, type AgentDefinition } from "@parley/server/internal/agent/index";
import type { Agent, Turn } from "@parley/a2a/internal/protocol/index";
import { testAgent, type TestAgent, type TestAgentOptions } from "@parley/testing";

const extensions = [traceability] as const;
type OwnTurn = Turn<{ extensions: typeof extensions }>;

export function agentOf(
  onMessage: (turn: OwnTurn) => ReturnType<AgentDefinition["onMessage"]>,
  more: object = {},
): Agent {
  const card = { name: "Rates", description: "Knows rates", version: "1.0.0", skills: [] };
  return defineAgent({ ...card, ...more, extensions, onMessage });
}

export async function serving(agent: Agent, options: TestAgentOptions = {}): Promise<TestAgent> {
  const under = await testAgent(agent, options);
  onTestFinished(() => under.close());
  return under;
}

export const asking = async (under: TestAgent): Promise<Client<typeof traceability>> =>
  (await under.connect({ extensions: [traceability] } as never)) as never;

export const names = (trace: ResponseTrace | undefined): readonly (string | undefined)[] | undefined =>
  trace?.steps.map(({ name }) => name);

/** Uses a tool, then reports its result. */
export const rates = agentOf(async function* (turn) {
  yield turn.working("looking");
  const rate = await traceStep(
    turn.ext(traceability),
    { name: "get_rate", parameters: { base: turn.text } },
    () => "0.859",
  );
  yield turn.completed(rate);
});
