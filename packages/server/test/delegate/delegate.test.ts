import { describe, expect, test } from "vitest";
import * as z from "zod";
import { data, text } from "@parley/a2a/internal/model/index";
import type { DelegateOptions, Delegated } from "@parley/a2a/internal/protocol/index";
import { agentOf, gists, serving, type OnMessage } from "./support.ts";

describe("turn.delegate()", () => {
  test("shows progress, passes on artifacts chunk by chunk, and returns the result", async () => {
    const writer = serving(
      agentOf(async function* (turn) {
        yield turn.working("Thinking");
        yield turn.artifact({ artifactId: "poem", name: "Poem", parts: [text("Roses ")], open: true });
        yield turn.append("poem", [text("are red")], { last: true });
        yield turn.completed("That is all");
      }),
    );
    const client = await writer.client();
    const results: unknown[] = [];
    const editor = serving(
      agentOf(async function* (turn) {
        yield turn.working("Asking");
        const result = yield* turn.delegate(client, turn.text);
        results.push([result.text, result.artifacts.length, result.task?.status.state, result.message]);
        yield turn.artifact({ parts: [text(result.text.toUpperCase())] });
      }),
    );
    expect(await gists((await editor.client()).sendStreamingMessage("A poem"))).toEqual([
      "task SUBMITTED",
      "WORKING: Asking",
      "WORKING: Thinking",
      "d1-poem Roses ",
      "+d1-poem are red.",
      "1-1 ROSES ARE RED.",
      "COMPLETED",
    ]);
    expect(results).toEqual([["Roses are red", 1, "TASK_STATE_COMPLETED", undefined]]);
  });

  test("passes a question up and the answer down, within one turn of the function", async () => {
    const hotel = serving(
      agentOf(async function* (turn) {
        if (turn.number === 1) return yield turn.inputRequired(`Which dates for ${turn.text}?`);
        yield turn.artifact({ artifactId: "room", parts: [text(`Booked ${turn.text}`)] });
      }),
    );
    const client = await hotel.client();
    const calls: unknown[] = [];
    let after = 0;
    const planner = serving(
      agentOf(async function* (turn) {
        calls.push([turn.text, turn.number, turn.attempt, turn.task?.id]);
        yield turn.artifact({ name: "plan", parts: [text("A plan")] });
        const { text: booked } = yield* turn.delegate(client, turn.text);
        after += 1;
        yield turn.completed(booked);
      }),
    );
    const user = await planner.client();
    const conversation = user.conversation();
    expect(await gists(conversation.stream("Basel"))).toEqual([
      "task WORKING",
      "1-1 A plan.",
      "INPUT_REQUIRED: Which dates for Basel?",
    ]);
    expect(after).toBe(0);
    const events = await gists(conversation.stream("1 to 3 May"));
    expect(events.slice(1)).toEqual(["d1-room Booked 1 to 3 May.", "COMPLETED: Booked 1 to 3 May"]);
    expect(calls).toEqual([
      ["Basel", 1, 1, undefined],
      ["Basel", 1, 2, undefined],
    ]);
    expect(after).toBe(1);
    const { tasks } = await client.listTasks();
    expect(tasks).toHaveLength(1);
  });
});

/** Delegates to an agent that has this function. Returns the result and the events of the delegating task. */
async function through(onMessage: OnMessage, options: DelegateOptions = {}) {
  const client = await serving(agentOf(onMessage)).client();
  const results: Delegated[] = [];
  const main = serving(
    agentOf(async function* (turn) {
      results.push(yield* turn.delegate(client, turn.text, options));
      yield turn.completed();
    }),
  );
  const events = await gists((await main.client()).sendStreamingMessage("Go"));
  return { events, result: results[0] as Delegated, client, main };
}

const Weather = z.object({ degrees: z.number() });

describe("the result", () => {
  test("of a direct reply has its text, its message and its data, and no task", async () => {
    const { result, events } = await through((turn) => turn.reply([text("Warm"), data({ degrees: 21 })]));
    expect([result.text, result.task, result.artifacts]).toEqual(["Warm", undefined, []]);
    expect(await result.data(Weather)).toEqual({ degrees: 21 });
    expect(events).toEqual(["task SUBMITTED", "COMPLETED"]);
  });

  test("of a task has the typed data of its artifacts, or a clear error", async () => {
    const { result } = await through(async function* (turn) {
      yield turn.artifact({ parts: [data({ degrees: 21 })] });
    });
    const { degrees } = await result.data(Weather);
    expect(degrees).toBe(21);
    await expect(result.data(z.object({ rain: z.string() }))).rejects.toMatchObject({ code: "InvalidResponse" });
  });

  test("holds at most resultBytes; larger artifacts only pass through", async () => {
    const { result, events } = await through(
      async function* (turn) {
        yield turn.artifact({ artifactId: "big", parts: [text("x".repeat(50))], open: true });
        for (let at = 0; at < 10; at += 1) yield turn.append("big", [text("y".repeat(50))]);
        yield turn.append("big", [text("z")], { last: true });
      },
      { resultBytes: 200 },
    );
    expect(() => result.artifacts).toThrow("exceed resultBytes");
    expect(() => result.text).toThrow("resultBytes");
    expect(result.task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(events.filter((each) => each.includes("d1-big"))).toHaveLength(12);
  });
});

describe("the other agent's progress and artifacts", () => {
  const chatty: OnMessage = async function* (turn) {
    yield turn.working("One");
    yield turn.artifact({ artifactId: "a", name: "A", parts: [text("a")] });
    yield turn.artifact({ artifactId: "b", parts: [text("b")] });
    yield turn.working("Two");
  };

  test("are hidden by progress: false and artifacts: false, and the result is complete", async () => {
    const { events, result } = await through(chatty, { progress: false, artifacts: false });
    expect(events).toEqual(["task SUBMITTED", "COMPLETED"]);
    expect(result.artifacts.map(({ artifactId }) => artifactId)).toEqual(["a", "b"]);
  });

  test("are shown as the functions return them", async () => {
    const { events } = await through(chatty, {
      progress: ({ parts }) => (parts[0]?.text === "One" ? undefined : `Clerk: ${parts[0]?.text}`),
      artifacts: ({ artifactId, ...rest }) => (artifactId === "a" ? undefined : { ...rest, parts: [text("B")] }),
    });
    expect(events).toEqual(["task SUBMITTED", "WORKING", "d1-b B.", "WORKING: Clerk: Two", "COMPLETED"]);
  });

  test("is returned, not passed on, with questions: false; a message with the task's id answers it", async () => {
    const client = await serving(
      agentOf(async function* (turn) {
        if (turn.number === 1) return yield turn.inputRequired("Which?");
        yield turn.completed(`Got ${turn.text}`);
      }),
    ).client();
    const main = serving(
      agentOf(async function* (turn) {
        const asked = yield* turn.delegate(client, "Go", { questions: false });
        const taskId = asked.task?.id ?? "";
        const { text: said } = yield* turn.delegate(client, { taskId, parts: [text(`${asked.text} This.`)] });
        yield turn.completed(said);
      }),
    );
    expect((await gists((await main.client()).sendStreamingMessage("Go"))).at(-1)).toBe("COMPLETED: Got Which? This.");
  });
});

describe("the conversation with the other agent", () => {
  test("is the same for each conversation of this agent, and always new with contextId: false", async () => {
    const contexts: string[] = [];
    const client = await serving(
      agentOf(async function* (turn) {
        contexts.push(turn.contextId);
        yield turn.completed();
      }),
    ).client();
    const main = serving(
      agentOf(async function* (turn) {
        yield* turn.delegate(client, turn.text, turn.text === "new" ? { contextId: false } : {});
        yield turn.completed();
      }),
    );
    const user = await main.client();
    const [one, other] = [user.conversation(), user.conversation()];
    for (const each of [one, one, other]) await each.send("Go");
    await one.send("new");
    expect(contexts[0]).toBe(contexts[1]);
    expect(new Set(contexts).size).toBe(3);
  });

  test("passes the trace on", async () => {
    const traces: unknown[] = [];
    const client = await serving(
      agentOf(async function* (turn) {
        traces.push(turn.call.trace);
        yield turn.completed();
      }),
    ).client();
    const main = serving(
      agentOf(async function* (turn) {
        yield* turn.delegate(client, "Go");
        yield turn.completed();
      }),
    );
    const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    await (await main.client()).sendMessage("Go", { trace });
    expect(traces).toEqual([trace]);
  });

  test("ends if agents call each other in a circle", async () => {
    let calls = 0;
    const self = serving(
      agentOf(
        async function* (turn) {
          calls += 1;
          yield* turn.delegate(await self.client(), "Again");
        },
        { name: "Ring" },
      ),
    );
    const task = await gists((await self.client()).sendStreamingMessage("Go"));
    expect(task.at(-1)).toContain("FAILED");
    expect(task.at(-1)).toContain("too many agents");
    expect(calls).toBe(17);
  });
});

test("a key names a delegation for the whole task: a later turn gets the same result and sends nothing", async () => {
  let asked = 0;
  const client = await serving(
    agentOf(async function* (turn) {
      yield turn.completed(`Plan ${(asked += 1)}`);
    }),
  ).client();
  const main = serving(
    agentOf(async function* (turn) {
      const { text: plan } = yield* turn.delegate(client, turn.text, { key: "plan" });
      const { text: other } = yield* turn.delegate(client, "Same");
      if (turn.number < 3) return yield turn.inputRequired(`${plan}, ${other}`);
      yield turn.completed(`${plan}, ${other}`);
    }),
  );
  const conversation = (await main.client()).conversation();
  const said: unknown[] = [];
  for (const words of ["One", "Two", "Three"]) {
    said.push((await conversation.send(words)).task?.status.message?.parts[0]?.text);
  }
  expect(said).toEqual(["Plan 1, Plan 2", "Plan 1, Plan 3", "Plan 1, Plan 4"]);
});
