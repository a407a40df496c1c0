import { expect, onTestFinished, test } from "vitest";
import { defineAgent, type AgentDefinition } from "../../src/agent/index.ts";
import { testAgent } from "@parley/testing";

/* A status update's metadata and its message's metadata are two separate maps (A2A 1.0 §4.1.4, §4.2.1). */

async function events(onMessage: AgentDefinition["onMessage"]) {
  const agent = defineAgent({ name: "A", description: "B", version: "1", skills: [], onMessage });
  const under = await testAgent(agent);
  onTestFinished(() => under.close());
  const updates = [];
  for await (const { statusUpdate } of under.client.sendStreamingMessage("Hi")) {
    if (statusUpdate !== undefined) updates.push(statusUpdate);
    // The stream would stay open while an authorization is missing.
    if (statusUpdate?.status.state === "TASK_STATE_AUTH_REQUIRED") break;
  }
  return { updates, problems: under.problems };
}

test.each(["working", "inputRequired", "authRequired"] as const)(
  "turn.%s() puts messageMetadata into the message, and metadata beside it",
  async (name) => {
    const { updates } = await events(async function* (turn) {
      yield turn[name]("One moment", { metadata: { update: 1 }, messageMetadata: { drawing: true } });
    });
    const said = updates.find(({ metadata }) => metadata?.["update"] === 1);
    expect(said?.metadata).toEqual({ update: 1 });
    expect(said?.status.message).toMatchObject({ parts: [{ text: "One moment" }], metadata: { drawing: true } });
  },
);

test("messageMetadata without content throws an error that says what is missing", async () => {
  const { updates, problems } = await events(async function* (turn) {
    yield turn.working(undefined, { messageMetadata: { drawing: true } });
  });
  expect(updates.at(-1)?.status.state).toBe("TASK_STATE_FAILED");
  expect(problems.join()).toMatch(/message\.parts/);
});
