import { testAgent } from "@parley/testing";
import { expect, it, onTestFinished } from "vitest";
import { createAgent } from "../agent.ts";

/* test/browser/example-chat.test.ts opens the pages. */

it("asks for a city, and plans three days there", async () => {
  const { client, close } = await testAgent(createAgent(1));
  onTestFinished(close);
  const conversation = client.conversation();
  const { task: asked } = await conversation.send("Plan a trip");
  expect(asked?.status).toMatchObject({
    state: "TASK_STATE_INPUT_REQUIRED",
    message: { parts: [{ text: "Which city?" }] },
  });
  const { task } = await conversation.send("Oslo");
  expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
  expect(task?.artifacts?.[0]?.parts.map(({ text }) => text).join("")).toMatch(/^Day 1 in Oslo: .* Day 3 in Oslo: /);
});
