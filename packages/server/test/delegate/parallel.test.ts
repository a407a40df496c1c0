import { describe, expect, test, vi } from "vitest";
import { DelegationFailed, type Turn } from "@parley/a2a/internal/protocol/index";
import { text } from "@parley/a2a/internal/model/index";
import { agentOf, gate, gists, serving } from "./support.ts";

/** Creates an agent whose function yields `count` chunks. `made`: how many chunks the function has yielded so far. */
function counter(count: number) {
  const made = { chunks: 0 };
  const served = serving(
    agentOf(async function* (turn: Turn) {
      yield turn.artifact({ artifactId: "n", parts: [text("0")], open: true });
      for (let at = 1; at < count; at += 1) {
        made.chunks = at;
        yield turn.append("n", [text(`,${at}`)], { last: at === count - 1 });
      }
    }),
  );
  return { served, made };
}

const failing = (words: string) =>
  serving(
    agentOf(async function* (turn) {
      yield turn.failed(words);
    }),
  );

describe("turn.all()", () => {
  test("merges events in the order of arrival, and returns results in the order given", async () => {
    const [fast, slow] = [counter(5), counter(5)];
    const [a, b] = [await slow.served.client(), await fast.served.client()];
    const results: string[] = [];
    const main = serving(
      agentOf(async function* (turn) {
        const both = yield* turn.all([turn.delegate(a, "A"), turn.delegate(b, "B")]);
        results.push(...both.map((each) => each.text));
        yield turn.completed();
      }),
    );
    const events = await gists((await main.client()).sendStreamingMessage("Go"));
    for (const id of ["d1-n", "d2-n"]) {
      const own = events.filter((each) => each.replace("+", "").startsWith(id));
      expect(own).toEqual([`${id} 0`, ...[1, 2, 3].map((at) => `+${id} ,${at}`), `+${id} ,4.`]);
    }
    expect(results).toEqual(["0,1,2,3,4", "0,1,2,3,4"]);
  });

  test("asks two questions one after the other, and each answer goes to the one that asked", async () => {
    const asking = (what: string) =>
      serving(
        agentOf(async function* (turn) {
          if (turn.number === 1) return yield turn.inputRequired(`Which ${what}?`);
          yield turn.completed(`${what} ${turn.text}`);
        }),
      );
    const [city, date] = [await asking("city").client(), await asking("date").client()];
    const main = serving(
      agentOf(async function* (turn) {
        const both = yield* turn.all([turn.delegate(city, "Go"), turn.delegate(date, "Go")]);
        yield turn.completed(both.map((each) => each.text).join(" and "));
      }),
    );
    const conversation = (await main.client()).conversation();
    const answers: Record<string, string> = { "Which city?": "Basel", "Which date?": "May" };
    const asked: string[] = [];
    let { task } = await conversation.send("Go");
    while (task?.status.state === "TASK_STATE_INPUT_REQUIRED") {
      const question = task.status.message?.parts[0]?.text ?? "";
      asked.push(question);
      ({ task } = await conversation.send(answers[question] ?? ""));
    }
    expect(asked.toSorted()).toEqual(["Which city?", "Which date?"]);
    expect(task?.status.message?.parts[0]?.text).toBe("city Basel and date May");
  });

  test("keeps an answer for the agent that asked, even if another one asks before the answer is sent", async () => {
    const asking = (what: string) =>
      serving(
        agentOf(
          async function* (turn) {
            if (turn.task === undefined) yield turn.inputRequired(`Which ${what}?`);
            else yield turn.completed(`${what} ${turn.text}`);
          },
          { name: what },
        ),
      );
    const [colours, sizes] = [asking("colour"), asking("size")];
    const clients = [await colours.client(), await sizes.client()] as const;
    const attempts: number[] = [];
    const main = serving(
      agentOf(async function* (turn) {
        attempts.push(turn.attempt);
        // The second attempt reaches the questions in the opposite order.
        const order = turn.attempt === 1 ? clients : clients.toReversed();
        const said: string[] = [];
        for (const client of order) said.push((yield* turn.delegate(client, "A coat")).text);
        yield turn.completed(said.join());
      }),
    );
    const conversation = (await main.client()).conversation();
    const first = await conversation.send("A coat");
    const second = await conversation.send("red");
    const third = await conversation.send("large");
    const said = [first, second, third].map(({ task }) => task?.status.message?.parts[0]?.text);
    expect(said).toEqual(["Which colour?", "Which size?", "size large,colour red"]);
    expect(attempts).toEqual([1, 2, 3]);
  });

  test("takes an answer that arrives before the question's turn has ended", async () => {
    const asking = serving(
      agentOf(async function* (turn) {
        if (turn.number < 6) return yield turn.inputRequired(`Question ${turn.number}`);
        yield turn.completed(turn.text);
      }),
    );
    const client = await asking.client();
    const main = serving(
      agentOf(async function* (turn) {
        const { text: said } = yield* turn.delegate(client, "Go");
        yield turn.completed(said);
      }),
    );
    const user = await main.client();
    const events = user.sendStreamingMessage("Go")[Symbol.asyncIterator]();
    let taskId = "";
    for (let state = ""; state !== "TASK_STATE_INPUT_REQUIRED";) {
      const { value } = await events.next();
      taskId = value?.task?.id ?? taskId;
      state = (value?.task ?? value?.statusUpdate)?.status.state ?? "";
    }
    // Sends all answers in parallel. Each of them answers the next question.
    const sent = [1, 2, 3, 4, 5].map((at) => user.sendMessage({ taskId, parts: [text(`Answer ${at}`)] }));
    await Promise.all(sent);
    await vi.waitFor(async () =>
      expect((await user.getTask(taskId)).status.message?.parts[0]?.text).toMatch(/^Answer/),
    );
    const { tasks } = await client.listTasks({ historyLength: 100 });
    expect(tasks).toHaveLength(1);
    const said = tasks[0]?.history?.filter(({ role }) => role === "ROLE_USER").map(({ parts }) => parts[0]?.text);
    expect(said?.toSorted()).toEqual(["Answer 1", "Answer 2", "Answer 3", "Answer 4", "Answer 5", "Go"]);
  });

  test("ends the other delegations if one fails", async () => {
    const stopped = gate();
    const other = serving(
      agentOf(async function* (turn) {
        yield turn.working();
        await new Promise<void>((resolve) => turn.signal.addEventListener("abort", () => resolve()));
        stopped.open();
      }),
    );
    const [a, b] = [await other.client(), await failing("No").client()];
    const caught: unknown[] = [];
    const main = serving(
      agentOf(async function* (turn) {
        try {
          yield* turn.all([turn.delegate(a, "A"), turn.delegate(b, "B")]);
        } catch (error) {
          caught.push(error);
        }
        yield turn.completed("Without them");
      }),
    );
    const { task } = await (await main.client()).sendMessage({ message: "Go" });
    expect(caught).toEqual([expect.any(DelegationFailed)]);
    await stopped.opened;
    await vi.waitFor(async () =>
      expect((await (await main.client()).getTask(task?.id ?? "")).status.state).toBe("TASK_STATE_COMPLETED"),
    );
  });

  test("waits for all of them with settled", async () => {
    const [a, b] = [await failing("No").client(), await counter(3).served.client()];
    const seen: unknown[] = [];
    const main = serving(
      agentOf(async function* (turn) {
        const both = yield* turn.all([turn.delegate(a, "A"), turn.delegate(b, "B")], { settled: true });
        seen.push(...both.map((each) => (each.status === "fulfilled" ? each.value.text : String(each.reason))));
        yield turn.completed();
      }),
    );
    await gists((await main.client()).sendStreamingMessage("Go"));
    expect(seen).toEqual([expect.stringContaining("could not do its part: No"), "0,1,2"]);
  });

  test("runs many at the same time, even with the same message, as separate delegations", async () => {
    const { served } = counter(2);
    const client = await served.client();
    const main = serving(
      agentOf(async function* (turn) {
        const all = yield* turn.all(Array.from({ length: 20 }, () => turn.delegate(client, "Same")));
        yield turn.completed(String(all.length));
      }),
    );
    const { task } = await (await main.client()).sendMessage({ message: "Go" });
    expect(task?.status.message?.parts[0]?.text ?? task?.status.state).toBe("20");
    expect(new Set(task?.artifacts?.map(({ artifactId }) => artifactId)).size).toBe(20);
    expect((await client.listTasks()).tasks).toHaveLength(20);
  });
});
