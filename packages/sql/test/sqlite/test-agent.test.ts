import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineAgent } from "@parley/server";
import { testAgent } from "@parley/testing";
import { expect, it, onTestFinished } from "vitest";
import { sqliteStore } from "../../src/sqlite/index.ts";

const agent = defineAgent<{ checkpoint: number }>({
  name: "Counter",
  description: "Counts to five, a number a minute.",
  version: "1.0.0",
  skills: [],
  resumable: true,
  async *onMessage(turn) {
    for (let n = (turn.checkpoint ?? 0) + 1; n <= 5; n += 1) {
      yield [turn.artifact({ artifactId: `n-${n}`, parts: [{ text: `${n}` }] }), turn.saveCheckpoint(n)];
      await new Promise<void>((resolve) => turn.clock.after(60_000, resolve));
    }
  },
});

it("keeps the tasks of testAgent() through crashes, and stays open when the agent is closed", async () => {
  const folder = await mkdtemp(join(tmpdir(), "parley-test-agent-"));
  const store = await sqliteStore({ path: join(folder, "tasks.db") });
  const tested = await testAgent(agent, { store });
  onTestFinished(async () => {
    await store.close();
    await rm(folder, { recursive: true });
  });
  const seen: string[] = [];
  let taskId = "";
  const follow = async (): Promise<void> => {
    for await (const { task, artifactUpdate } of tested.client.sendStreamingMessage("Go")) {
      taskId ||= task?.id ?? "";
      if (artifactUpdate === undefined) continue;
      seen.push(artifactUpdate.artifact.artifactId);
      await tested.crash();
      await tested.restart();
    }
  };
  await tested.clock.until(follow());
  expect(seen).toEqual(["n-1", "n-2", "n-3", "n-4", "n-5"]);
  expect(tested.problems).toEqual([]);
  await tested.close();
  const again = await testAgent(agent, { store });
  expect((await again.client.getTask(taskId)).status.state).toBe("TASK_STATE_COMPLETED");
  await again.close();
});
