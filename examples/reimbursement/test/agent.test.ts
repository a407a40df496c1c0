import { data, memoryStore, serve, type Task } from "@parley/node";
import { connect } from "@parley/a2a";
import { timestamp, timestampUri, withTimestamp } from "@parley/extensions/timestamp";
import { testAgent } from "@parley/testing";
import { expect, it, onTestFinished } from "vitest";
import agent from "../agent.ts";

async function given() {
  const tested = await testAgent(agent);
  onTestFinished(() => tested.close());
  const conversation = tested.client.conversation();
  return {
    ...tested,
    /** Fills in the form, or answers a question. */
    async say(answer: object | string): Promise<Task> {
      const parts = typeof answer === "string" ? [{ text: answer }] : [data(answer as { date: string })];
      const { task } = await conversation.send({ message: { parts } });
      return task!;
    },
  };
}

const taxi = { date: "2026-01-02", amount: 40, purpose: "Taxi" };

/** What an agent asks. */
function question({ status }: Task): string {
  expect(status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  return (status.message?.parts ?? []).map(({ text = "" }) => text).join("\n");
}

it("asks with a form, says what is wrong with it, and pays", async () => {
  const { say } = await given();
  const asked = await say("I had to take a taxi");
  expect(question(asked)).toContain("Please fill in the form.");
  expect(asked.status.message?.parts[1]?.data).toMatchObject({ form: { properties: { amount: { type: "number" } } } });
  expect(question(await say({ ...taxi, amount: -1 }))).toMatch(/message\.parts\[0\]\.data\.amount .+/);
  const paid = await say(taxi);
  expect(paid.id).toBe(asked.id);
  expect(paid.artifacts?.[0]?.parts).toEqual([{ data: { ...taxi, status: "paid" } }]);
});

it("takes the example of the guide: the form has its amount and its purpose (Extensions, packaging)", async () => {
  const server = await serve(withTimestamp(agent), { port: 0, store: memoryStore(), logger: false });
  onTestFinished(() => server.close());
  const client = await connect(server.url);
  const [skill] = client.card.skills;
  expect(skill).toMatchObject({ id: "process_reimbursement", name: "Process Reimbursement Tool" });
  const conversation = client.conversation();
  const { task } = await conversation.send(skill?.examples?.[0] ?? "");
  expect(skill?.examples).toEqual(["Can you reimburse me $20 for my lunch with the clients?"]);
  expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  const asked = task?.status.message?.parts[1]?.data as { form: { properties: Record<string, { default?: unknown }> } };
  const { amount, purpose, date } = asked.form.properties;
  expect([amount?.default, purpose?.default, date?.default]).toEqual([20, "lunch with the clients", undefined]);
  const filled = { date: "2026-01-02", amount: amount?.default as number, purpose: purpose?.default as string };
  const paid = await conversation.send({ message: { parts: [data(filled)] } });
  expect(paid.task?.artifacts?.[0]?.parts).toEqual([{ data: { ...filled, status: "paid" } }]);
});

it("asks who approved a large amount, and knows the form after a crash", async () => {
  const { say, crash, restart, problems } = await given();
  expect(question(await say({ ...taxi, amount: 4_000 }))).toBe("4000 is more than 100. Who has approved it?");
  await crash();
  await restart();
  const paid = await say("Grace");
  expect(paid.artifacts?.[0]?.parts).toEqual([
    { data: { ...taxi, amount: 4_000, approvedBy: "Grace", status: "paid" } },
  ]);
  expect(problems).toEqual([]);
});

it("keeps the forms of two tasks apart", async () => {
  const { client } = await given();
  const [one, other] = [client.conversation(), client.conversation()];
  const send = async (by: typeof one, amount: number) => by.send({ message: { parts: [data({ ...taxi, amount })] } });
  await send(one, 200);
  await send(other, 300);
  const { task } = await one.send("Grace");
  expect(task?.artifacts?.[0]?.parts[0]?.data).toMatchObject({ amount: 200 });
});

it("timestamps its answers for callers who ask for that, with one call around the agent (Timestamp v1)", async () => {
  expect(agent.extensions ?? []).toEqual([]);
  const server = await serve(withTimestamp(agent), { port: 0, store: memoryStore(), logger: false });
  onTestFinished(() => server.close());
  const began = Date.now();
  const stamped = await connect(server.url, { extensions: [timestamp] });
  expect(stamped.card.capabilities.extensions?.map(({ uri }) => uri)).toContain(timestampUri);
  const { task: asked } = await stamped.sendMessage("I had to take a taxi");
  const { task: paid } = await stamped.sendMessage({ message: { parts: [data(taxi)] } });
  for (const stamp of [
    stamped.ext(timestamp).read(asked!.status.message!).message.at,
    paid?.ext(timestamp)?.artifact.at,
  ]) {
    const at = Date.parse(stamp ?? "");
    // A timestamp has at least whole seconds.
    expect(at).toBeGreaterThanOrEqual(began - 1000);
    expect(at).toBeLessThanOrEqual(Date.now());
  }
  // Other callers get the same answer without a timestamp.
  const { task } = await (await connect(server.url)).sendMessage({ message: { parts: [data(taxi)] } });
  expect(JSON.stringify(task)).not.toContain("extensions/timestamp");
  expect(JSON.stringify(paid)).toContain("extensions/timestamp");
  expect(task?.artifacts?.[0]?.parts).toEqual(paid?.artifacts?.[0]?.parts);
});
