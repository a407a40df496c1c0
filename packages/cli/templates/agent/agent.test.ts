import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryStore } from "@parley/a2a";
import { connect } from "@parley/a2a/client";
import { serve } from "@parley/node";
import agent from "./agent.ts";

await test("rolls the dice that it is asked for", async () => {
  const server = await serve(agent, { port: 0, store: memoryStore() });
  try {
    const client = await connect(server.url);
    const { task } = await client.sendMessage({
      message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: "roll 3d1" }] },
    });
    assert.equal(task?.status.state, "TASK_STATE_COMPLETED");
    assert.deepEqual(task.artifacts?.[0]?.parts[1]?.data, { rolls: [1, 1, 1], total: 3 });
  } finally {
    await server.close({ grace: 0 });
  }
});
