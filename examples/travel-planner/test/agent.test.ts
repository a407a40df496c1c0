import { memoryStore, serve, type Task } from "@parley/node";
import { connect, type Conversation } from "@parley/a2a";
import { testAgent, type TestAgent } from "@parley/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { orchestrator } from "../agent.ts";
import { makeExperts } from "../experts.ts";
import { planner, scripted } from "../planner.ts";

/** The orchestrator and the four agents that it calls, with one clock. */
async function given() {
  const { flights, hotels, cars } = makeExperts(10_000);
  const plan = await testAgent(planner(scripted));
  const { clock } = plan;
  const others = { flights: await testAgent(flights, { clock }), hotels: await testAgent(hotels, { clock }) };
  const all = { planner: plan, ...others, cars: await testAgent(cars, { clock }) };
  const agent = orchestrator(async () => ({
    planner: all.planner.client,
    flights: all.flights.client,
    hotels: all.hotels.client,
    cars: all.cars.client,
  }));
  const tested = await testAgent(agent, { clock });
  onTestFinished(async () => {
    for (const each of [tested, ...Object.values(all)]) await each.close();
  });
  return { ...tested, all, conversation: tested.client.conversation() };
}

/** A conversation with the orchestrator over HTTP, which calls the four others over HTTP. */
async function overHttp(): Promise<Conversation> {
  const paths = { planner: planner(scripted), ...makeExperts(1) };
  const behind = await serve(
    Object.entries(paths).map(([name, agent]) => ({ agent, path: `/${name}` as const })),
    { port: 0, store: memoryStore(), logger: false },
  );
  onTestFinished(() => behind.close());
  const at = (name: string) => connect(`${behind.url}/${name}`);
  const agent = orchestrator(async () => ({
    planner: await at("planner"),
    flights: await at("flights"),
    hotels: await at("hotels"),
    cars: await at("cars"),
  }));
  const server = await serve(agent, { port: 0, store: memoryStore(), logger: false });
  onTestFinished(() => server.close());
  return (await connect(server.url)).conversation();
}

const wish = "I want to go to London for 5 days in July, with a budget of less than 4000 dollars.";

/** What a traveller answers, by a word of the question. */
const answers = { airport: "Oslo", Tube: "Holborn", car: "No" };

/** Answers each question until there are none. Returns the task and the questions. */
async function talk(
  conversation: Conversation,
  said: string,
  answered: Readonly<Record<string, string>> = answers,
  wait: <T>(answer: Promise<T>) => Promise<T> = (answer) => answer,
): Promise<{ task: Task | undefined; asked: readonly string[] }> {
  const asked: string[] = [];
  let { task } = await wait(conversation.send(said));
  while (task?.status.state === "TASK_STATE_INPUT_REQUIRED") {
    const question = task.status.message?.parts[0]?.text ?? "";
    asked.push(question);
    const [, answer = ""] = Object.entries(answered).find(([word]) => question.includes(word)) ?? [];
    ({ task } = await wait(conversation.send(answer)));
  }
  return { task, asked };
}

const textOf = (task: Task | undefined) => task?.artifacts?.find(({ name }) => name === "trip")?.parts[0]?.text;
const london =
  "Flight PY 435 from Oslo to London in July. Hotel Holborn, room 435, for 5 days. No car. 1960 dollars in all.";

/** How many tasks each agent had. */
const tasksOf = async (all: Readonly<Record<string, TestAgent>>) =>
  Promise.all(Object.values(all).map(async ({ client }) => (await client.listTasks()).tasks.length));

describe("the travel planner", () => {
  it("passes on the questions of each agent behind it, and plans with all of them, over HTTP", async () => {
    const conversation = await overHttp();
    const { task, asked } = await talk(conversation, "I want to go to London", {
      ...answers,
      month: "July",
      days: "5",
      dollars: "4000",
      car: "No, trains will do",
    });
    expect(asked.slice(0, 3)).toEqual(["In which month?", "For how many days?", "How many dollars may the trip cost?"]);
    expect(asked.slice(3).toSorted()).toEqual([
      "Most people do not rent a car in London. Do you really want one?",
      "Which Tube station do you want to be near?",
      "Which airport do you want to leave from?",
    ]);
    expect(textOf(task)).toBe(london);
  });

  it("plans with the wish and the questions of the guide in Chinese, over HTTP (What is A2A?)", async () => {
    const conversation = await overHttp();
    const chinese = { 航空公司: "挪威航空,从奥斯陆出发", 地铁站: "霍本", 租车: "不用了" };
    const { task, asked } = await talk(conversation, "我想在 7 月去伦敦待 5 天,预算在 4000 美元以下。", chinese);
    expect(asked.toSorted()).toEqual(
      ["大多数人在伦敦不租车,你确定要租车吗?", "你想靠近伦敦的哪个地铁站?", "你要从哪家航空公司出发?"].toSorted(),
    );
    expect(textOf(task)).toBe(
      "航班 PY 435(挪威航空,从奥斯陆出发),7 月前往伦敦。霍本酒店,435 号房,5 天。不租车。共 1960 美元。",
    );
    // Questions are in the traveller's language.
    const other = await talk(await overHttp(), "我想去伦敦", {
      ...chinese,
      几月: "7 月",
      几天: "5 天",
      预算: "4000",
      租车: "确定",
    });
    expect(other.asked.slice(0, 3)).toEqual(["几月出发?", "待几天?", "预算是多少美元?"]);
    expect(textOf(other.task)).toContain("租车 5 天");
  });

  it("passes the answer about the car down to the car agent", async () => {
    const { clock, conversation, all } = await given();
    const yes = { ...answers, car: "Yes, I love traffic" };
    const { task } = await talk(conversation, wish, yes, (answer) => clock.until(answer));
    expect(textOf(task)).toContain("A car for 5 days.");
    const [car] = (await all.cars.client.listTasks({ includeArtifacts: true })).tasks;
    expect((await all.cars.client.getTask(car!)).history?.at(-1)?.parts).toEqual([{ text: "Yes, I love traffic" }]);
  });

  it("asks only necessary questions: a car in Lisbon needs no confirmation", async () => {
    const { clock, conversation } = await given();
    const said = "I want to go to Lisbon for 3 days in May, for 4000 dollars.";
    const { task, asked } = await talk(conversation, said, answers, (answer) => clock.until(answer));
    expect(asked).toEqual(["Which airport do you want to leave from?"]);
    expect(task?.artifacts?.map(({ name }) => name).toSorted()).toEqual(["car", "flight", "hotel", "trip"]);
  });

  it("says which agent found nothing within its budget", async () => {
    const { clock, conversation } = await given();
    const { task } = await talk(conversation, wish.replace("4000", "900"), answers, (answer) => clock.until(answer));
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
    expect(task?.status.message?.parts[0]?.text).toMatch(/No (flight|hotel) for \d+ dollars/);
  });

  it("continues after a crash at each question or while it waits for the other agents, and sends nothing twice", async () => {
    const { clock, conversation, crash, restart, all, problems } = await given();
    const { task } = await talk(conversation, wish, answers, async (answer) => {
      const response = await clock.until(answer);
      await crash();
      await restart();
      return response;
    });
    expect(textOf(task)).toBe(london);
    expect(await tasksOf(all)).toEqual([1, 1, 1, 1]);
    expect(problems).toEqual([]);
  });

  it("passes a cancel on", async () => {
    const { clock, conversation, client, all } = await given();
    const { task } = await clock.until(conversation.send(wish));
    await client.cancelTask(task!);
    const states = async () => {
      const found = await Promise.all([all.flights, all.hotels, all.cars].map((each) => each.client.listTasks()));
      return found.flatMap(({ tasks }) => tasks.map(({ status }) => status.state));
    };
    await expect.poll(states).toContain("TASK_STATE_CANCELED");
  });
});
