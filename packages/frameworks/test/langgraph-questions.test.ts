import type { BaseMessage } from "@langchain/core/messages";
import { Annotation, END, interrupt, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import type { Part, Task } from "@parley/a2a";
import type { JsonValue } from "@parley/a2a/model";
import type { Turn } from "@parley/server";
import { expect, test } from "vitest";
import * as z from "zod";
import { durable, type LangGraph } from "../src/langgraph/index.ts";
import { ask, resume } from "../src/langgraph/questions.ts";
import { calls, ScriptedChat } from "./graphs.ts";
import { asked, byText, nodeOf, paying, read, served, state, texts } from "./served.ts";

/** A graph whose node asks, and outputs the answer. */
const asking = (asks: () => unknown): LangGraph =>
  nodeOf(() => ({ messages: [{ role: "ai", content: `Got ${JSON.stringify(asks())}` }] }));

const data = (value: JsonValue): { readonly parts: readonly Part[] } => ({ parts: [{ data: value }] });
const formOf = (parts: readonly Part[]): unknown =>
  parts.find(({ mediaType }) => mediaType === "application/schema+json")?.data;

/** Asks, sends the answers in order, and returns the tasks. */
async function answered(graph: LangGraph, ...answers: readonly (string | { parts: readonly Part[] })[]) {
  const client = await served(graph);
  const conversation = client.conversation();
  let { task } = await conversation.send("Go");
  const parts = asked(task);
  const tasks: (Task | undefined)[] = [];
  for (const answer of answers) {
    ({ task } = await conversation.send(answer));
    tasks.push(task);
  }
  return { parts, tasks, task, conversation };
}

test("an interrupt becomes a question, and its answer is text or data", async () => {
  const graph = asking(() => interrupt({ question: "Which city?", near: "Basel" }));
  const { parts, task } = await answered(graph, "Bern");
  expect(parts).toEqual([
    { text: "Which city?" },
    { data: { interrupts: [{ id: expect.any(String), value: { question: "Which city?", near: "Basel" } }] } },
  ]);
  expect(texts(task)).toEqual(['Got "Bern"']);
  const object = { lc: 1, type: "constructor", id: ["langchain_core", "messages", "SystemMessage"], kwargs: {} };
  const { tasks } = await answered(graph, data({ city: [object] }), data({ city: "Bern" }));
  expect(tasks.map(state)).toEqual(["INPUT_REQUIRED", "COMPLETED"]);
  expect(texts(tasks[1])).toEqual(['Got {"city":"Bern"}']);
});

test("a schema becomes a form, and an answer that does not fit is asked for again", async () => {
  const responseSchema = z.object({ city: z.string(), days: z.number().max(9) });
  const graph = asking(() => interrupt("Where, and how long?", { responseSchema }));
  const { parts, tasks } = await answered(graph, "Bern", data({ city: "Bern" }), data({ city: "Bern", days: 3 }));
  expect(formOf(parts)).toMatchObject({ type: "object", properties: { city: { type: "string" } } });
  expect(tasks.map(state)).toEqual(["INPUT_REQUIRED", "INPUT_REQUIRED", "COMPLETED"]);
  expect(texts(tasks[2])).toEqual(['Got {"city":"Bern","days":3}']);
});

test("a value that is a schema becomes a form, and a text answer may be JSON", async () => {
  const schema = { type: "object", title: "Trip", properties: { city: { type: "string" } }, required: ["city"] };
  const { parts, task } = await answered(
    asking(() => interrupt(schema)),
    '{"city":"Bern"}',
  );
  expect(parts[0]?.text).toBe("Trip");
  expect(formOf(parts)).toEqual(schema);
  expect(texts(task)).toEqual(['Got {"city":"Bern"}']);
});

test("an answer that only the graph can reject is asked for again, without repeating completed work", async () => {
  let others = 0;
  const responseSchema = z.string().refine((city) => city !== "Atlantis");
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("asks", () => ({
      messages: [{ role: "ai", content: `Got ${String(interrupt("City?", { responseSchema }))}` }],
    }))
    .addNode("other", () => {
      others += 1;
      return {};
    })
    .addEdge(START, "asks")
    .addEdge(START, "other")
    .compile();
  const { tasks } = await answered(graph, "Atlantis", "Bern");
  expect(tasks.map(state)).toEqual(["INPUT_REQUIRED", "COMPLETED"]);
  expect(texts(tasks[1])).toEqual(["Got Bern"]);
  expect(others).toBe(1);
});

test("several interrupts become one question, and are answered together", async () => {
  const one = (question: string, options?: { responseSchema: z.ZodBoolean }) => () => ({
    messages: [{ role: "ai", content: `${question} ${String(interrupt(question, options))}` }],
  });
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("one", one("City?"))
    .addNode("two", one("Dogs?", { responseSchema: z.boolean() }))
    .addEdge(START, "one")
    .addEdge(START, "two")
    .compile();
  const { parts, tasks, conversation } = await answered(graph, "Bern", data({ answer1: "Bern" }));
  expect(tasks.map(state)).toEqual(["INPUT_REQUIRED", "INPUT_REQUIRED"]);
  expect(parts[0]?.text).toBe("City?\nDogs?");
  expect(formOf(parts)).toMatchObject({
    properties: { answer1: { title: "City?", type: "string" }, answer2: { title: "Dogs?", type: "boolean" } },
    required: ["answer1", "answer2"],
  });
  const { interrupts } = Object(parts[1]?.data) as { interrupts: { id: string }[] };
  const [first, second] = interrupts.map(({ id }) => id);
  const byId = {
    interrupts: [
      { id: second ?? "", value: true },
      { id: first ?? "", value: "Bern" },
    ],
  };
  const { task } = await conversation.send(data(byId));
  expect(texts(task).toSorted(byText)).toEqual(["City? Bern", "Dogs? true"]);
  const again = await answered(graph, data({ answer1: "Bern", answer2: false }));
  expect(texts(again.task).toSorted(byText)).toEqual(["City? Bern", "Dogs? false"]);
});

test("a node that asks twice does not call its model again", async () => {
  const llm = new ScriptedChat(["Hm"]);
  const model = durable.model(llm);
  const graph = nodeOf(async ({ messages }) => {
    const answer = await model.invoke(messages);
    return { messages: [answer, { role: "ai", content: `${String(interrupt("One?"))} ${String(interrupt("Two?"))}` }] };
  });
  const { tasks } = await answered(graph, "1", "2");
  expect(tasks[0]?.status.message?.parts[0]?.text).toBe("Two?");
  expect(texts(tasks[1])).toEqual(["Hm", "1 2"]);
  expect(llm.calls).toHaveLength(1);
});

test("a tool and a subgraph ask, and the conversation continues afterwards", async () => {
  const paid: unknown[] = [];
  const pay = paying(({ amount }) => {
    const answer: unknown = interrupt({ message: `Pay ${amount}?` });
    paid.push(amount);
    return `${String(answer)}: paid`;
  });
  const llm = new ScriptedChat([calls(["c1", "pay", { amount: 5 }])], ["Thanks"], ["Bye"]);
  const agent = createReactAgent({ llm: durable.model(llm), tools: durable.tools([pay]) });
  const graph = new StateGraph(MessagesAnnotation).addNode("agent", agent).addEdge(START, "agent").compile();
  const { parts, task, conversation } = await answered(graph, "yes");
  expect(parts[0]?.text).toBe("Pay 5?");
  expect(texts(task)).toEqual(["Thanks"]);
  expect(paid).toEqual([5]);
  expect(texts((await conversation.send("Bye")).task)).toEqual(["Bye"]);
  expect(read(llm.calls[2])).toEqual(["Go", "", "yes: paid", "Thanks", "Bye"]);
});

test("requests of langchain's middleware become approvals with digests", async () => {
  const actionRequests = [
    { name: "pay", args: { amount: 5 } },
    { name: "pay", args: { amount: 6 }, description: "Dear" },
  ];
  const graph = asking(() => interrupt({ actionRequests, reviewConfigs: [] }));
  const { parts, tasks, conversation } = await answered(graph, "yes");
  expect(tasks.map(state)).toEqual(["INPUT_REQUIRED"]);
  expect(parts[0]?.text).toBe('Approve each of these?\npay {"amount":5}\npay {"amount":6}');
  const { approvals } = Object(parts[1]?.data) as { approvals: { digest: string }[] };
  const [one, two] = approvals.map(({ digest }) => digest);
  const answer = { approved1: true, digest1: one ?? "", approved2: false, reason2: "Too dear", digest2: two ?? "" };
  const { task } = await conversation.send(data(answer));
  expect(texts(task)).toEqual(['Got {"decisions":[{"type":"approve"},{"type":"reject","message":"Too dear"}]}']);
});

test.each([
  ["yes", 'Got [{"type":"accept","args":null}]'],
  ["no", 'Got [{"type":"ignore","args":null}]'],
])("a HumanInterrupt becomes an approval: %s", async (answer, got) => {
  const config = { allow_accept: true, allow_ignore: true, allow_edit: false, allow_respond: false };
  const request = { action_request: { action: "pay", args: { amount: 5 } }, config };
  const { parts, task } = await answered(
    asking(() => interrupt([request])),
    answer,
  );
  expect(parts[0]?.text).toBe('Approve pay {"amount":5}?');
  expect(texts(task)).toEqual([got]);
});

test("a breakpoint asks whether to continue", async () => {
  const State = Annotation.Root({ ...MessagesAnnotation.spec });
  const graph = new StateGraph(State)
    .addNode("pay", (): { messages: BaseMessage[] } => ({ messages: [{ role: "ai", content: "Paid" } as never] }))
    .addEdge(START, "pay")
    .addEdge("pay", END)
    .compile({ interruptBefore: ["pay"] });
  const { parts, tasks } = await answered(graph, "hm", "yes");
  expect(parts[0]?.text).toBe("Continue with pay?");
  expect(tasks.map(state)).toEqual(["INPUT_REQUIRED", "COMPLETED"]);
  expect(texts(tasks[1])).toEqual(["Paid"]);
  expect(state((await answered(graph, "no")).task)).toBe("REJECTED");
});

test("two tasks of a context have separate threads while one waits", async () => {
  const llm = new ScriptedChat(["First"], ["Second"]);
  const graph = nodeOf(async ({ messages }) => {
    if (messages.at(-1)?.text === "Ask") interrupt("Sure?");
    return { messages: [await llm.invoke(messages)] };
  });
  const client = await served(graph);
  const { task } = await client.sendMessage("Ask");
  asked(task);
  const { contextId = "", id = "" } = task ?? {};
  const other = await client.sendMessage({ message: { contextId, parts: [{ text: "Meanwhile" }] } });
  expect(texts(other.task)).toEqual(["First"]);
  const { task: ended } = await client.sendMessage({ message: { contextId, taskId: id, parts: [{ text: "yes" }] } });
  expect(texts(ended)).toEqual(["Second"]);
  expect(read(llm.calls[1])).toEqual(["Ask"]);
});

test("an answer counts if it was sent after the question, though a crashed turn asked twice", async () => {
  let stored: unknown;
  const fake = {
    number: 1,
    message: { messageId: "m", parts: [{ text: "yes" }] },
    text: "yes",
    state: () => stored,
    setState: (value: unknown) => void (stored = value),
    inputRequired: (parts: readonly Part[]) => ({ parts }),
  };
  const question = await ask(fake as unknown as Turn, { checkpoints: {}, calls: {} }, [{ id: "1", value: "Sure?" }]);
  const agent = { role: "ROLE_AGENT", messageId: "q", ...question };
  const user = { role: "ROLE_USER", messageId: "m", parts: [] };
  const answer = (more: object) => resume({ ...fake, number: 2, ...more } as unknown as Turn);
  expect(answer({ number: 1 })).toHaveProperty("event");
  expect(answer({ task: { history: [user, agent] } })).toHaveProperty("event");
  expect(answer({ task: { history: [agent, user, agent] } })).toHaveProperty("answers", { 1: "yes" });
});
