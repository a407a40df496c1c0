import { describe, expect, it, onTestFinished } from "vitest";
import { defineAgent } from "../../src/agent/index.ts";
import type { Task } from "@parley/a2a/internal/model/index";
import { memoryStore, type Store } from "../../src/store/index.ts";
import { changedBy } from "../../src/store/wakeup.ts";
import { callContext, fakeClock, inProcess } from "@parley/testing";
import { bound, eventually, gate, messageOf, Reading, type OnMessage } from "./support.ts";

/** Creates two engines on one store, one of which stops. Their clock is stopped, so polling finds no work. */
function twoNodes(onMessage: OnMessage) {
  const shared = memoryStore();
  const clock = fakeClock();
  const listeners = new Set<(taskId?: string) => void>();
  const store: Store = {
    ...bound(shared),
    async append(items) {
      const outcomes = await shared.append(items);
      for (const taskId of changedBy(items, outcomes)) for (const tell of listeners) tell(taskId);
      return outcomes;
    },
    watch(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const node = () => {
    const definition = { name: "test", description: "a test", version: "1", skills: [], resumable: true, onMessage };
    const made = inProcess(defineAgent(definition), { clock, store });
    onTestFinished(() => made.engine.close());
    return made;
  };
  return [node(), node()] as const;
}

type Node = ReturnType<typeof inProcess>;

async function begin({ service }: Node, text: string): Promise<{ id: string; reading: Reading }> {
  const { batches } = await service.stream("SendStreamingMessage", { message: messageOf(text) }, callContext());
  const reading = new Reading(batches);
  return { id: (await reading.next())?.payload.value.task?.id ?? "", reading };
}

async function subscribe({ service }: Node, id: string): Promise<Reading> {
  const reading = new Reading((await service.stream("SubscribeToTask", { id }, callContext())).batches);
  await reading.next();
  return reading;
}

async function taskOf({ service }: Node, id: string): Promise<Task> {
  return (await service.call("GetTask", { id }, callContext())).payload.value;
}

const stopping = { code: "Unavailable" };

describe("a stopping engine", () => {
  it("ends streams of tasks that run elsewhere at once, and streams of its own tasks with their turns", async () => {
    const gates = { own: gate(), other: gate() };
    const [one, two] = twoNodes(async function* (turn) {
      yield turn.working("begun");
      await gates[turn.text as "own" | "other"].opened;
      yield turn.artifact({ parts: [{ text: "done" }] });
    });
    const own = await begin(one, "own");
    const other = await begin(two, "other");
    const moved = await subscribe(one, other.id);
    const waiting = one.service.call(
      "SendMessage",
      { message: messageOf("more", { taskId: other.id }) },
      callContext(),
    );
    let answered = false;
    void waiting.catch(() => {}).finally(() => (answered = true));
    await eventually(async () => (await taskOf(two, other.id)).history?.length === 2);
    const closed = one.engine.close({ grace: 60_000 });
    await expect(moved.until(() => false)).rejects.toMatchObject(stopping);
    // The send stays pending, because no other node could continue it.
    expect(answered).toBe(false);
    gates.own.open();
    const events = await own.reading.all();
    expect(events.at(-1)?.payload.value.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
    await closed;
    await expect(waiting).rejects.toMatchObject(stopping);
  });

  it("leaves its tasks to another engine, which continues with them at once, and takes none itself", async () => {
    const { opened, open } = gate();
    const [one, two] = twoNodes(async function* (turn) {
      yield turn.artifact({ artifactId: "first", parts: [{ text: "first" }] });
      await Promise.race([opened, new Promise((resolve) => turn.signal.addEventListener("abort", resolve))]);
      yield turn.artifact({ artifactId: "second", parts: [{ text: "second" }] });
    });
    const { id, reading } = await begin(one, "go");
    const reader = await subscribe(two, id);
    await reading.next();
    await one.engine.close({ grace: 0 });
    await expect(reading.all()).rejects.toMatchObject(stopping);
    open();
    const events = await reader.all();
    const texts = events.flatMap(({ payload }) =>
      payload.value.artifactUpdate?.artifact.parts.map((part) => part.text),
    );
    expect(texts.filter((text) => text !== undefined).slice(-1)).toEqual(["second"]);
    expect(events.at(-1)?.payload.value.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
    expect((await taskOf(two, id)).artifacts?.map(({ artifactId }) => artifactId)).toEqual(["first", "second"]);
  });
});
