import assert from "node:assert/strict";
import { after, test } from "node:test";
import { testAgent } from "@parley/testing";
import { createAgent, pool } from "./agent.ts";
import { scriptedModel, type Model } from "./model.ts";

after(() => pool.close());

void test("rolls the dice that it is asked for, with the tool of the MCP server", async (t) => {
  const { client, close } = await testAgent(createAgent(scriptedModel));
  t.after(close);
  const { task } = await client.sendMessage("roll 3d1");
  assert.equal(task?.status.state, "TASK_STATE_COMPLETED");
  assert.equal(task.artifacts?.[0]?.parts[0]?.text, "1 + 1 + 1 = 3");
});

void test("asks for no answer again that was stored before a crash", async (t) => {
  let answers = 0;
  const dying: Model = async (...given) => {
    answers += 1;
    if (answers === 2) {
      await crash();
      await restart();
    }
    return scriptedModel(...given);
  };
  const { client, crash, restart, close } = await testAgent(createAgent(dying));
  t.after(close);
  const { task } = await client.sendMessage("roll 3d1");
  assert.equal(task?.artifacts?.[0]?.parts[0]?.text, "1 + 1 + 1 = 3");
  // The tool call, its result before the crash, and its result again.
  assert.equal(answers, 3);
});
