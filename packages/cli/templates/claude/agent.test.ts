import assert from "node:assert/strict";
import { test } from "node:test";
import { testAgent } from "@parley/testing";
import { createAgent, roll } from "./agent.ts";
import { scriptedQuery } from "./model.ts";

void test("rolls the dice that it is asked for", async (t) => {
  const { client, close } = await testAgent(createAgent(scriptedQuery(roll)));
  t.after(close);
  const { task } = await client.sendMessage("roll 3d1");
  assert.equal(task?.status.state, "TASK_STATE_COMPLETED");
  assert.equal(task.artifacts?.[0]?.parts[0]?.text, "1 + 1 + 1 = 3");
});

void test("rolls many dice only after an approval, also if it crashed before", async (t) => {
  const { client, crash, restart, close } = await testAgent(createAgent(scriptedQuery(roll)));
  t.after(close);
  const conversation = client.conversation();
  const asked = await conversation.send("roll 20d1");
  assert.equal(asked.task?.status.state, "TASK_STATE_INPUT_REQUIRED");
  assert.equal(asked.task.status.message?.parts[0]?.text, 'Approve mcp__dice__roll {"count":20,"sides":1}?');
  await crash();
  await restart();
  const { task } = await conversation.send("yes");
  assert.equal(task?.status.state, "TASK_STATE_COMPLETED");
  assert.match(task.artifacts?.[0]?.parts[0]?.text ?? "", / = 20$/);
});
