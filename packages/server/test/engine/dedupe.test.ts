import { describe, expect, it } from "vitest";
import type { DedupeOptions } from "../../src/engine/index.ts";
import { fakeClock, callContext } from "@parley/testing";
import { gate, gist, harness, messageOf } from "./support.ts";

describe("a repeated message (A2A 1.0 §3.3.1)", () => {
  function counting(dedupe: DedupeOptions = {}) {
    let turns = 0;
    const made = harness(
      async function* (turn) {
        turns += 1;
        if (turn.text === "direct") return turn.reply(`reply ${turns}`);
        if (turn.text === "ask") return yield turn.inputRequired("Which?");
        yield turn.artifact({ parts: [{ text: `run ${turns}` }] });
        return undefined;
      },
      { dedupe },
    );
    return { ...made, turns: () => turns };
  }

  it("joins the task of the first one, by either operation", async () => {
    const { send, stream, turns } = counting();
    const message = { messageId: "m1" };
    const task = await send("Go", { message });
    expect(await send("Go", { message })).toEqual(task);
    const items = await (await stream("Go", { message })).all();
    expect(items.map(({ payload }) => gist(payload.value))).toEqual(["task completed"]);
    expect(items[0]?.payload.value.task).toEqual(task);
    expect(turns()).toBe(1);
  });

  it("continues its stream after the last event that the reader saw", async () => {
    const { stream, turns } = counting();
    const message = { messageId: "m1" };
    const all = await (await stream("Go", { message })).all();
    for (let after = 1; after <= all.length; after += 1) {
      const rest = await (await stream("Go", { message, after })).all();
      expect(rest.map(({ payload }) => payload.json)).toEqual(all.slice(after).map(({ payload }) => payload.json));
    }
    const anew = await (await stream("Go", { message, after: 999 })).all();
    expect(anew.map(({ payload }) => gist(payload.value))).toEqual(["task completed"]);
    expect(turns()).toBe(1);
  });

  it("is answered while a later turn of its task runs: its own turn is over (§3.2.2)", async () => {
    const hold = gate();
    const { send } = harness(async function* (turn) {
      yield turn.working("Thinking");
      if (turn.number < 3) return yield turn.inputRequired("Which?");
      await hold.opened;
      return undefined;
    });
    const sent = async (messageId: string, taskId?: string, returnImmediately = false) =>
      send("Go", { message: { messageId, ...(taskId && { taskId }) }, configuration: { returnImmediately } });
    const { id } = await sent("m1");
    await sent("m2", id);
    await sent("m3", id, true);
    expect([(await sent("m1")).status.state, (await sent("m2", id)).status.state]).toEqual([
      "TASK_STATE_WORKING",
      "TASK_STATE_WORKING",
    ]);
    hold.open();
    expect((await sent("m3", id)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("ends its stream at the question that the first one got (§11.7)", async () => {
    const { send, stream } = counting();
    const first = { messageId: "m1" };
    const asked = await (await stream("ask", { message: first })).all();
    expect(asked.map(({ payload }) => gist(payload.value)).at(-1)).toBe("input_required");
    const again = await (await stream("ask", { message: first })).all();
    expect(again.map(({ payload }) => gist(payload.value))).toEqual(["task input_required"]);

    const second = { messageId: "m2", taskId: again[0]?.payload.value.task?.id ?? "" };
    const task = await send("ask", { message: second });
    const third = await (await stream("ask", { message: second })).all();
    expect(third.map(({ payload }) => gist(payload.value))).toEqual(["task input_required"]);
    expect(third[0]?.payload.value.task).toEqual(task);
  });

  it("gets the same answer while the first one is in progress", async () => {
    const { opened, open } = gate();
    let turns = 0;
    const { ask, stream } = harness(async (turn) => {
      turns += 1;
      await opened;
      return turn.reply("one answer");
    });
    const message = { messageId: "m1" };
    const answers = [ask("Go", { message }), ask("Go", { message })];
    const reading = await stream("Go", { message });
    open();
    const [first, second] = await Promise.all(answers);
    expect(second).toEqual(first);
    expect((await reading.all())[0]?.payload.value).toEqual(first);
    expect(turns).toBe(1);
  });

  it("gets a direct reply again while it is remembered, within the limits of memory", async () => {
    const clock = fakeClock();
    let turns = 0;
    const { ask } = harness((turn) => turn.reply(`reply ${(turns += 1)}`), {
      clock,
      dedupe: { window: 1_000, replies: 2 },
    });
    const message = { messageId: "m1" };
    const first = await ask("Go", { message });
    expect(await ask("Go", { message })).toEqual(first);
    clock.advance(1_001);
    expect(await ask("Go", { message })).not.toEqual(first);
    const kept = await ask("Go", { message: { messageId: "m2" } });
    for (const messageId of ["m3", "m4"]) await ask("Go", { message: { messageId } });
    expect(await ask("Go", { message: { messageId: "m2" } })).not.toEqual(kept);
  });

  it("gets a direct reply again from another process, if the store keeps replies", async () => {
    const agent = (turn: Parameters<Parameters<typeof harness>[0]>[0]) => turn.reply(crypto.randomUUID());
    const first = harness(agent, { conversations: "store" });
    const message = { messageId: "m1", contextId: "c" };
    const answer = await first.ask("Go", { message });
    await first.engine.close();
    const second = harness(agent, { conversations: "store", store: first.store });
    expect(await second.ask("Go", { message })).toEqual(answer);
  });

  it("is a new message if its content differs, and each content has its own task", async () => {
    const { ask, turns } = counting();
    const message = { messageId: "m1" };
    const contents = ["one", "two", "direct", "one more"];
    const first = await Promise.all(contents.map((text) => ask(text, { message })));
    expect(new Set(first.map(({ task, message: reply }) => task?.id ?? reply?.messageId)).size).toBe(4);
    for (const [at, text] of contents.entries()) expect(await ask(text, { message })).toEqual(first[at]);
    expect(turns()).toBe(4);
  });

  it("is recognized as a follow-up too, and by another process", async () => {
    const { send, store, turns } = counting();
    const { id } = await send("ask");
    const follow = (text: string) => [text, { message: { messageId: "f1", taskId: id } }] as const;
    const asked = await send(...follow("ask"));
    const done = await send(...follow("Go"));
    expect([asked, done].map(({ status }) => status.state)).toEqual([
      "TASK_STATE_INPUT_REQUIRED",
      "TASK_STATE_COMPLETED",
    ]);
    const other = harness(() => undefined, { store });
    expect(await other.send(...follow("ask"))).toMatchObject({ id });
    expect(await other.send(...follow("Go"))).toEqual(done);
    expect(turns()).toBe(3);
  });

  it("is rejected with the name of the field if its content differs and onConflict is refuse", async () => {
    const { send, turns } = counting({ onConflict: "refuse" });
    await send("Go", { message: { messageId: "m1" } });
    await expect(send("Something else", { message: { messageId: "m1" } })).rejects.toMatchObject({
      code: "InvalidParams",
      fields: [{ field: "message.messageId" }],
    });
    expect(turns()).toBe(1);
  });

  it("is a new message if deduplication is off", async () => {
    const { send } = harness(
      async function* (turn) {
        yield turn.artifact({ parts: [{ text: turn.text }] });
      },
      { dedupe: false },
    );
    const one = await send("one", { message: { messageId: "m1" } });
    const two = await send("one", { message: { messageId: "m1" } });
    expect(two.id).not.toBe(one.id);
  });

  it("does not run a follow-up twice", async () => {
    const { send, turns } = counting();
    const { id } = await send("ask");
    const follow = { message: { messageId: "f1", taskId: id } };
    const done = await send("Go", follow);
    expect(done.status.state).toBe("TASK_STATE_COMPLETED");
    expect(await send("Go", follow)).toEqual(done);
    expect(turns()).toBe(2);
  });

  it("creates one task, even if two processes on one store receive it at once", async () => {
    const first = counting();
    const second = harness(
      async function* (turn) {
        yield turn.artifact({ parts: [{ text: "other process" }] });
      },
      { store: first.store },
    );
    const request = { message: messageOf("Go", { messageId: "m1" }) };
    const answers = await Promise.all(
      [first, second].map(
        async ({ service }) => (await service.call("SendMessage", request, callContext())).payload.value.task,
      ),
    );
    expect(answers[1]).toEqual(answers[0]);
    const {
      payload: { value },
    } = await first.service.call("ListTasks", {}, callContext());
    expect(value.totalSize).toBe(1);
  });
});
