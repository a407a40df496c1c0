import { describe, expect, test, vi } from "vitest";
import type { Client } from "@parley/a2a/internal/client/index";
import { A2AError, text } from "@parley/a2a/internal/model/index";
import { memoryStore } from "../../src/store/index.ts";
import type { DelegateClient } from "@parley/a2a/internal/protocol/index";
import { fakeClock } from "@parley/testing";
import { agentOf, gate, gists, serving, type Served } from "./support.ts";

/* Tests delegations to agents that do not stream (A2A 1.0 §3.3.3). The delegating agent polls the task. */

/** Options that make a condition wait as long as a busy machine needs. */
const patient = { interval: 10 };

const capabilities = { streaming: false };

/** Creates a poet without streams, which yields half of the poem immediately, and the rest once `wait` is open. */
function poet() {
  const wait = gate();
  const served = serving(
    agentOf(
      async function* (turn) {
        yield turn.working("Thinking");
        yield turn.artifact({ artifactId: "poem", parts: [text("Roses ")], open: true });
        await wait.opened;
        yield turn.append("poem", [text("are red")], { last: true });
        yield turn.completed("That is all");
      },
      { capabilities },
    ),
  );
  return { served, wait };
}

const editing = (client: DelegateClient) =>
  agentOf(async function* (turn) {
    const { text: poem } = yield* turn.delegate(client, turn.text);
    yield turn.completed(poem);
  });

/** Starts a task of the agent and reads its events, while the clock advances. */
async function reading(main: Served, tick: () => void) {
  const events = (await main.client()).sendStreamingMessage("A poem");
  const all = gists(events);
  const timer = setInterval(tick, 5);
  return all.finally(() => clearInterval(timer));
}

const nothingListens = () => Promise.reject(new A2AError("ConnectionFailed", "Nothing listens"));

/** Returns a client with a different `getTask`. */
const reachedBy = (client: Client, getTask: DelegateClient["getTask"]): DelegateClient => ({
  card: client.card,
  sendMessage: (...args) => client.sendMessage(...args),
  sendStreamingMessage: (...args) => client.sendStreamingMessage(...args),
  subscribeToTask: (...args) => client.subscribeToTask(...args),
  listTasks: (...args) => client.listTasks(...args),
  cancelTask: (...args) => client.cancelTask(...args),
  getTask,
});

describe("an agent without streams", () => {
  test("gets one send, and is polled until its task ends: progress, and artifacts once and complete", async () => {
    const { served, wait } = poet();
    const clock = fakeClock();
    const main = serving(editing(await served.client()), { clock });
    const events = reading(main, () => {
      clock.advance(500);
      if (served.requests.filter((each) => each === "GetTask").length > 2) wait.open();
    });
    const all = await events;
    expect(all).toContain("WORKING: Thinking");
    expect(all.filter((each) => each.includes("d1-"))).toEqual(["d1-poem Roses ", "+d1-poem are red."]);
    expect(all.at(-1)).toBe("COMPLETED: Roses are red");
    expect(served.requests.filter((each) => each.startsWith("Send"))).toEqual(["SendMessage"]);
    expect(served.requests).not.toContain("SubscribeToTask");
  });

  test("asks a question, and gets the answer in the same task", async () => {
    const hotel = serving(
      agentOf(
        async function* (turn) {
          if (turn.number === 1) return yield turn.inputRequired("Which dates?");
          yield turn.completed(`Booked ${turn.text}`);
        },
        { capabilities },
      ),
    );
    const conversation = (await serving(editing(await hotel.client())).client()).conversation();
    const asked = await conversation.send("Basel");
    expect(asked.task?.status).toMatchObject({
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { parts: [{ text: "Which dates?" }] },
    });
    const { task } = await conversation.send("In May");
    expect(task?.status).toMatchObject({
      state: "TASK_STATE_COMPLETED",
      message: { parts: [{ text: "Booked In May" }] },
    });
    expect((await (await hotel.client()).listTasks()).tasks).toHaveLength(1);
  });

  test("is canceled with this task", async () => {
    const { served } = poet();
    const main = serving(editing(await served.client()));
    const user = await main.client();
    const sent = await user.sendMessage({ message: "A poem", configuration: { returnImmediately: true } });
    const id = sent.task?.id ?? "";
    await vi.waitFor(async () => expect((await user.getTask(id)).artifacts).toHaveLength(1), patient);
    await user.cancelTask(id);
    const other = await served.client();
    await vi.waitFor(async () => {
      const { tasks } = await other.listTasks();
      expect(tasks.map(({ status }) => status.state)).toEqual(["TASK_STATE_CANCELED"]);
    }, patient);
  });

  test("is polled again after a restart, and nothing is taken twice", async () => {
    const { served, wait } = poet();
    const agent = editing(await served.client());
    const store = memoryStore();
    const first = serving(agent, { store });
    const user = await first.client();
    const sent = await user.sendMessage({ message: "A poem", configuration: { returnImmediately: true } });
    const id = sent.task?.id ?? "";
    await vi.waitFor(async () => expect((await user.getTask(id)).artifacts).toHaveLength(1), patient);
    await first.handler.close({ grace: 60_000 });
    wait.open();
    const again = await serving(agent, { store }).client();
    await vi.waitFor(
      async () => expect((await again.getTask(id)).status.message?.parts[0]?.text).toBe("Roses are red"),
      patient,
    );
    const { artifacts } = await again.getTask(id);
    expect(artifacts?.map(({ parts }) => parts.map((part) => part.text))).toEqual([["Roses are red"]]);
    expect(served.requests.filter((each) => each.startsWith("Send"))).toHaveLength(1);
  });

  test("may be unavailable for some time, for example during its restart", async () => {
    const { served, wait } = poet();
    const client = await served.client({ retry: false });
    let failures = 0;
    const flaky = reachedBy(client, (id, options) => {
      if (failures === 8) wait.open();
      else failures += 1;
      return failures < 8 ? nothingListens() : client.getTask(id, options);
    });
    const clock = fakeClock();
    const events = await reading(serving(editing(flaky), { clock }), () => clock.advance(10_000));
    expect(events.at(-1)).toBe("COMPLETED: Roses are red");
    expect(failures).toBe(8);
  });

  test("that stays unavailable fails this task, and is canceled once it can be reached", async () => {
    const { served } = poet();
    const client = await served.client({ retry: false });
    const away = reachedBy(client, nothingListens);
    const clock = fakeClock();
    const events = await reading(serving(editing(away), { clock }), () => clock.advance(10_000));
    expect(events.at(-1)).toBe("FAILED: Agent could not do its part (ConnectionFailed).");
    await vi.waitFor(() => expect(served.requests).toContain("CancelTask"), patient);
  });
});
