import { defineAgent, type AgentEvent, type Store, type Task, type Turn } from "@parley/server";
import type { Logger } from "@parley/a2a/protocol";
import { callContext, inProcess, type InProcess } from "@parley/testing";
import { afterEach, describe, expect, it } from "vitest";
import { placeOf, stores } from "./stores.ts";

/** Tests the events that an agent may yield after it has asked for input (A2A 1.0 §4.1.3, §7.6.1). A question that would be lost is an error. */

describe.each(stores)("a question, on %s", (kind) => {
  const closing: (() => Promise<void>)[] = [];
  const log: { readonly level: string; readonly message: string }[] = [];

  afterEach(async () => {
    log.length = 0;
    for (const close of closing.splice(0).reverse()) await close();
  });

  async function open(): Promise<Store> {
    const place = await placeOf(kind);
    closing.push(() => place.remove());
    const store = await place.open();
    closing.push(() => store.close());
    return store;
  }

  async function run(
    onMessage: (turn: Turn) => AsyncGenerator<AgentEvent | readonly AgentEvent[], AgentEvent | void, void>,
    store?: Store,
  ): Promise<InProcess> {
    const kept = store ?? (await open());
    const write = (level: string) => (message: string) => void log.push({ level, message });
    const logger: Logger = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
    const agent = defineAgent({
      name: "Asker",
      description: "Asks",
      version: "1",
      skills: [],
      resumable: true,
      onMessage,
    });
    const made = inProcess(agent, { store: kept, logger });
    closing.push(() => made.engine.close());
    return made;
  }

  async function send({ service }: InProcess, text: string, taskId?: string): Promise<Task> {
    const message = {
      messageId: crypto.randomUUID(),
      role: "ROLE_USER" as const,
      parts: [{ text }],
      ...(taskId !== undefined && { taskId }),
    };
    const {
      payload: { value },
    } = await service.call("SendMessage", { message }, callContext());
    return value.task ?? expect.fail("A message came");
  }

  function errors(): string[] {
    return log.filter(({ level }) => level === "error").map(({ message }) => message);
  }

  const overwriting: readonly [string, (turn: Turn) => AgentEvent][] = [
    ["turn.working()", (turn) => turn.working("Booking")],
    ["turn.completed()", (turn) => turn.completed("Booked")],
    ["turn.reply()", (turn) => turn.reply("Booked")],
    ["turn.inputRequired()", (turn) => turn.inputRequired("And when?")],
    ["turn.authRequired()", (turn) => turn.authRequired("Log in")],
  ];

  it.each(overwriting)("is not replaced by a later %s, and the log says why", async (name, later) => {
    let wentOn = false;
    let cleaned = false;
    const made = await run(async function* (turn) {
      try {
        if (turn.number === 2) return yield turn.completed(`To ${turn.text}`);
        yield turn.working("Looking");
        yield turn.inputRequired("Where to?");
        yield later(turn);
        wentOn = true;
      } finally {
        cleaned = true;
      }
    });
    const asked = await send(made, "Book");
    expect(asked.status).toMatchObject({
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { parts: [{ text: "Where to?" }] },
    });
    const done = await send(made, "Rome", asked.id);
    expect(done.status).toMatchObject({ state: "TASK_STATE_COMPLETED", message: { parts: [{ text: "To Rome" }] } });
    expect([wentOn, cleaned]).toEqual([false, true]);
    expect(done.history?.map(({ parts }) => parts[0]?.text)).toEqual(["Book", "Where to?", "Rome", "To Rome"]);
    expect(errors()).toEqual([
      expect.stringContaining(`${name} after turn.inputRequired() is not stored. The question ends its turn`),
    ]);
  });

  it("is not replaced by later events in the same array, and earlier events are stored", async () => {
    const made = await run(async function* (turn) {
      yield [turn.artifact({ parts: [{ text: "draft" }] }), turn.inputRequired("Good?"), turn.completed("Sent")];
    });
    const asked = await send(made, "Write");
    expect(asked.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(asked.artifacts).toHaveLength(1);
    expect(errors()).toHaveLength(1);
  });

  it("may be followed by an artifact, and the log warns that readers see it late", async () => {
    const made = await run(async function* (turn) {
      yield turn.inputRequired("Good?");
      yield turn.artifact({ artifactId: "draft", parts: [{ text: "dra" }], open: true });
      yield turn.append("draft", [{ text: "ft" }], { last: true });
    });
    const { id } = await send(made, "Write");
    const get = async (): Promise<Task> => (await made.service.call("GetTask", { id }, callContext())).payload.value;
    await expect.poll(async () => (await get()).artifacts?.[0]?.parts).toEqual([{ text: "draft" }]);
    expect((await get()).status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(log.filter(({ level }) => level === "warn")).toHaveLength(1);
    expect(errors()).toEqual([]);
  });

  it("ends with its task if the agent fails or rejects the task, or throws", async () => {
    const made = await run(async function* (turn) {
      yield turn.inputRequired("Where to?");
      if (turn.text === "throw") throw new Error("a bug");
      yield turn.text === "failed" ? turn.failed("All flights are gone") : turn.rejected("Not allowed");
    });
    for (const [text, state] of [
      ["failed", "TASK_STATE_FAILED"],
      ["rejected", "TASK_STATE_REJECTED"],
      ["throw", "TASK_STATE_FAILED"],
    ] as const) {
      const { id } = await send(made, text);
      await expect
        .poll(async () => (await made.service.call("GetTask", { id }, callContext())).payload.value.status.state)
        .toBe(state);
    }
  });

  it("ends its turn, which is not called again after a restart", async () => {
    const kept = await open();
    const turns: string[] = [];
    const agent = async function* (turn: Turn): AsyncGenerator<AgentEvent | readonly AgentEvent[], void, void> {
      turns.push(`${turn.number} ${turn.attempt}`);
      if (turn.number === 2) return yield turn.completed("Booked");
      yield [turn.inputRequired("Where to?"), turn.saveCheckpoint("asked")];
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    };
    const first = await run(agent, kept);
    const asked = await send(first, "Book");
    await first.engine.close();
    const second = await run(agent, kept);
    const { tasks } = (await second.service.call("ListTasks", {}, callContext())).payload.value;
    expect(tasks.map(({ id, status }) => [id, status.state, status.message?.parts])).toEqual([
      [asked.id, "TASK_STATE_INPUT_REQUIRED", [{ text: "Where to?" }]],
    ]);
    const answer = { messageId: "answer", role: "ROLE_USER" as const, taskId: asked.id, parts: [{ text: "Rome" }] };
    const { task } = (await second.service.call("SendMessage", { message: answer }, callContext())).payload.value;
    expect(task?.status.message?.parts).toEqual([{ text: "Booked" }]);
    expect(turns).toEqual(["1 1", "2 1"]);
    expect(errors()).toEqual([]);
  });

  it("for an authorization does not end the turn, which continues once it is granted (§7.6.1)", async () => {
    const made = await run(async function* (turn) {
      yield turn.authRequired("Log in there");
      yield turn.artifact({ parts: [{ text: "secret" }] });
      yield turn.completed("Done");
    });
    const message = { messageId: "m", role: "ROLE_USER" as const, parts: [{ text: "Go" }] };
    const { batches } = await made.service.stream("SendStreamingMessage", { message }, callContext());
    const states: unknown[] = [];
    for await (const batch of batches)
      for (const {
        payload: { value: event },
      } of batch)
        if (event.statusUpdate !== undefined) states.push(event.statusUpdate.status.state);
    expect(states).toEqual(["TASK_STATE_AUTH_REQUIRED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
    expect(errors()).toEqual([]);
  });
});
