import assert from "node:assert/strict";
import { test } from "node:test";
import { testAgent } from "@parley/testing";
import agent from "./agent.ts";

void test("rolls the dice that it is asked for", async (t) => {
  const { client, close } = await testAgent(agent);
  t.after(close);
  const { task } = await client.sendMessage("roll 3d1");
  assert.equal(task?.status.state, "TASK_STATE_COMPLETED");
  assert.deepEqual(task.artifacts?.[0]?.parts[1]?.data, { rolls: [1, 1, 1], total: 3 });
});

void test("takes the answer to its question after a crash", async (t) => {
  const { client, crash, restart, close } = await testAgent(agent);
  t.after(close);
  const conversation = client.conversation();
  await conversation.send("roll");
  await crash();
  await restart();
  const { task } = await conversation.send("3d1");
  assert.equal(task?.status.state, "TASK_STATE_COMPLETED");
});
