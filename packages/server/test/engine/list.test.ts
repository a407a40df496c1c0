import { describe, expect, it } from "vitest";
import type { ListTasksRequest } from "@parley/a2a/internal/model/index";
import { callContext, fakeClock } from "@parley/testing";
import { harness } from "./support.ts";

function listing() {
  const clock = fakeClock();
  const made = harness(
    async function* (turn) {
      if (turn.text === "ask" && turn.number === 1) yield turn.inputRequired("?");
      else yield turn.artifact({ parts: [{ text: turn.text }] });
    },
    { clock },
  );
  const list = async (request: ListTasksRequest = {}) =>
    (await made.service.call("ListTasks", request, callContext())).payload.value;
  const sendLater = async (...args: Parameters<typeof made.send>) => {
    clock.advance(1_000);
    return made.send(...args);
  };
  return { ...made, clock, list, sendLater };
}

describe("ListTasks (A2A 1.0 §3.1.4)", () => {
  it("lists the newest status first, artifacts only if requested, and every member of an empty list", async () => {
    const { list, sendLater } = listing();
    expect(await list()).toEqual({ tasks: [], nextPageToken: "", pageSize: 50, totalSize: 0 });
    const first = await sendLater("one");
    const second = await sendLater("two");
    const page = await list();
    expect(page.tasks.map(({ id }) => id)).toEqual([second.id, first.id]);
    for (const task of page.tasks) expect(task).not.toHaveProperty("artifacts");
    const [whole] = (await list({ includeArtifacts: true })).tasks;
    expect(whole).toEqual(second);
    expect((await list({ historyLength: 0 })).tasks[0]).not.toHaveProperty("history");
  });

  it("filters by context, by state and by time, inclusively, and counts matches", async () => {
    const { list, sendLater } = listing();
    const asked = await sendLater("ask", { message: { contextId: "c1" } });
    const done = await sendLater("two", { message: { contextId: "c1" } });
    await sendLater("three", { message: { contextId: "c2" } });
    const ids = async (request: ListTasksRequest) => {
      const { tasks, totalSize } = await list(request);
      expect(totalSize).toBe(tasks.length);
      return tasks.map(({ id }) => id);
    };
    expect(await ids({ contextId: "c1" })).toEqual([done.id, asked.id]);
    expect(await ids({ contextId: "c1", status: "TASK_STATE_INPUT_REQUIRED" })).toEqual([asked.id]);
    expect(await ids({ contextId: "c1", statusTimestampAfter: done.status.timestamp ?? "" })).toEqual([done.id]);
    expect(await ids({ status: "TASK_STATE_CANCELED" })).toEqual([]);
  });

  it("lists each task once over all pages, even while a task at the cursor changes its state", async () => {
    const { list, sendLater, send } = listing();
    const made = [];
    for (let n = 0; n < 10; n += 1) made.push((await sendLater(n % 3 === 0 ? "ask" : "x")).id);
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await list({ pageSize: 3, ...(pageToken !== "" && { pageToken }) });
      expect(page).toMatchObject({ pageSize: 3, totalSize: 10 });
      seen.push(...page.tasks.map(({ id }) => id));
      pageToken = page.nextPageToken;
      // Moves the task at the cursor to the front of the list.
      const last = page.tasks.at(-1);
      if (last?.status.state === "TASK_STATE_INPUT_REQUIRED") await send("answer", { message: { taskId: last.id } });
    } while (pageToken !== "");
    expect(seen).toEqual([...made].reverse());
  });

  it("rejects invalid page tokens, tokens of other filters and invalid page sizes, with the name of the field", async () => {
    const { list, sendLater } = listing();
    for (let n = 0; n < 3; n += 1) await sendLater("x");
    const { nextPageToken } = await list({ pageSize: 1 });
    const tampered = nextPageToken.replace(/\d/, (digit) => String((Number(digit) + 1) % 10));
    for (const pageToken of ["made-up", "1.2.3", tampered, `${nextPageToken}x`]) {
      await expect(list({ pageToken })).rejects.toMatchObject({
        code: "InvalidParams",
        fields: [{ field: "pageToken" }],
      });
    }
    await expect(list({ pageToken: nextPageToken, contextId: "c" })).rejects.toMatchObject({
      fields: [{ field: "pageToken" }],
    });
    for (const pageSize of [0, -1, 101, 1.5]) {
      await expect(list({ pageSize })).rejects.toMatchObject({ fields: [{ field: "pageSize" }] });
    }
  });
});

describe("GetTask (§3.1.3, §3.2.4)", () => {
  it("returns the whole history, the newest n messages in order, or none", async () => {
    const { send, get } = listing();
    const { id } = await send("ask");
    await send("answer", { message: { taskId: id } });
    const texts = async (historyLength?: number) =>
      (await get(id, historyLength === undefined ? {} : { historyLength })).history?.map(({ parts }) => parts[0]?.text);
    expect(await texts()).toEqual(["ask", "?", "answer"]);
    expect(await texts(2)).toEqual(["?", "answer"]);
    expect(await texts(99)).toEqual(["ask", "?", "answer"]);
    expect(await texts(0)).toBeUndefined();
  });
});

describe("a conversation", () => {
  it("keeps the messages of tasks, direct replies and a small state, across turns and processes", async () => {
    const { ask, store, engine } = harness(
      async (turn) => {
        const count = (turn.context.state<number>() ?? 0) + 1;
        turn.context.setState(count);
        const heard = (await turn.context.history()).map(({ text }) => text);
        return turn.text === "task" ? turn.completed("from a task") : turn.reply(`${count}: ${heard.join(" ")}`);
      },
      { conversations: "store" },
    );
    const { message } = await ask("one");
    const contextId = message?.contextId ?? "";
    const say = async (text: string) => (await ask(text, { message: { contextId } })).message?.parts[0]?.text;
    await say("task");
    expect(await say("two")).toBe("3: one 1: one task from a task two");
    await engine.close();
    const later = harness(
      async (turn) => turn.reply(`${turn.context.state<number>()} ${(await turn.context.history()).length}`),
      { conversations: "store", store },
    );
    const answer = await later.ask("three", { message: { contextId } });
    expect(answer.message?.parts[0]?.text).toBe("3 7");
  });
});
