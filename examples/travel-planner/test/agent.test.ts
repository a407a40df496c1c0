import { testAgent } from "@parley/a2a/testing";
import { expect, it, onTestFinished } from "vitest";
import { planner } from "../agent.ts";
import { flights, hotels } from "../experts.ts";

/** The planner and the agents that it calls, with one clock. */
async function given() {
  const flight = await testAgent(flights);
  const { clock } = flight;
  const hotel = await testAgent(hotels, { clock });
  const agent = planner(async () => ({ flights: flight.client, hotels: hotel.client }));
  const tested = await testAgent(agent, { clock });
  onTestFinished(async () => {
    for (const each of [tested, flight, hotel]) await each.close();
  });
  return { ...tested, flight, hotel, conversation: tested.client.conversation() };
}

const plan = "Flight PY 542 to Lisbon on 3 May. Hotel Lisbon, room 542.";

it("asks what an agent behind it asks, and plans with both", async () => {
  const { clock, conversation } = await given();
  const asked = await clock.until(conversation.send("Lisbon"));
  expect(asked.task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  expect(asked.task?.status.message?.parts).toEqual([{ text: "When do you want to fly to Lisbon?" }]);
  const { task } = await clock.until(conversation.send("3 May"));
  expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
  expect(task?.artifacts?.map(({ name }) => name).toSorted()).toEqual(["flight", "hotel", "plan"]);
  expect(task?.artifacts?.find(({ name }) => name === "plan")?.parts).toEqual([{ text: plan }]);
});

it("goes on after a crash at the question and while it waits for the others, and sends them nothing twice", async () => {
  const { clock, conversation, client, crash, restart, flight, hotel, problems } = await given();
  await clock.until(conversation.send("Lisbon"));
  await crash();
  await restart();
  const immediately = { configuration: { returnImmediately: true } };
  const { task: asked } = await conversation.send({ message: "3 May", ...immediately });
  await crash();
  await restart();
  const task = await clock.until(client.waitFor(asked!));
  expect(task.artifacts?.find(({ name }) => name === "plan")?.parts).toEqual([{ text: plan }]);
  for (const each of [flight, hotel]) expect((await each.client.listTasks()).tasks).toHaveLength(1);
  expect(problems).toEqual([]);
});

it("passes a cancel on", async () => {
  const { clock, conversation, client, flight, hotel } = await given();
  await clock.until(conversation.send("Lisbon"));
  const { task } = await conversation.send({ message: "3 May", configuration: { returnImmediately: true } });
  await clock.settle();
  await client.cancelTask(task!);
  await expect
    .poll(async () => {
      const all = await Promise.all([flight, hotel].map((each) => each.client.listTasks()));
      return all.flatMap(({ tasks }) => tasks.map(({ status }) => status.state));
    })
    .toContain("TASK_STATE_CANCELED");
});
