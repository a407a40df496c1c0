import { testAgent } from "@parley/testing";
import { expect, it, onTestFinished } from "vitest";
import { agent } from "../agent.ts";

async function asked() {
  const tested = await testAgent(agent);
  onTestFinished(() => tested.close());
  const conversation = tested.client.conversation();
  const { task } = await conversation.send("Pay invoice 7");
  expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  expect(task?.status.message?.parts[0]?.text).toBe('Approve mcp__bank__pay {"number":7,"amount":70}?');
  return conversation;
}

it("pays an invoice once it is approved", async () => {
  const conversation = await asked();
  const { task } = await conversation.send("yes");
  expect(task?.artifacts?.at(-1)?.parts[0]?.text).toBe('Invoice 7 is paid: {"receipt":1}');
});

it("pays nothing if it is denied", async () => {
  const conversation = await asked();
  const { task } = await conversation.send("no");
  expect(task?.artifacts?.at(-1)?.parts[0]?.text).toBe("I have paid nothing.");
});
