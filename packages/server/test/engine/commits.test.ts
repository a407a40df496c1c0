import { expect, it } from "vitest";
import { A2AError } from "@parley/a2a/internal/model/index";
import { memoryStore, type AppendItem, type Store } from "../../src/store/index.ts";
import { harness } from "./support.ts";

/** Returns a store that throws if an item contains a text, and records the number of items per call. */
function refusing(text: string, error: Error): { store: Store; calls: number[] } {
  const store = memoryStore();
  const calls: number[] = [];
  const append = (items: readonly AppendItem[]): ReturnType<Store["append"]> => {
    calls.push(items.length);
    return JSON.stringify(items).includes(text) ? Promise.reject(error) : store.append(items);
  };
  const refuses = new Proxy(store, {
    get: (target, name) => {
      if (name === "append") return append;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  return { store: refuses, calls };
}

it("an item that the store rejects fails alone: the other tasks in the commit are stored", async () => {
  const { store, calls } = refusing("poison", new TypeError("An item is malformed"));
  const { send, get } = harness((turn) => Promise.resolve(turn.completed("ok")), { store });
  const sends = ["one", "poison", "two"].map((text) => send(text, { subject: text }));
  const [one, poison, two] = await Promise.allSettled(sends);
  expect(calls[0]).toBe(3);
  expect(poison).toMatchObject({ status: "rejected", reason: { code: "Unavailable" } });
  for (const [subject, sent] of [
    ["one", one],
    ["two", two],
  ] as const) {
    const task = sent?.status === "fulfilled" ? sent.value : undefined;
    expect((await get(task?.id ?? "", { subject })).status.state).toBe("TASK_STATE_COMPLETED");
  }
});

it("a store that cannot work is not asked again for each item", async () => {
  const { store, calls } = refusing("", new A2AError("Unavailable"));
  const { send } = harness((turn) => Promise.resolve(turn.completed("ok")), { store });
  const outcomes = await Promise.allSettled(["one", "two", "three"].map((text) => send(text)));
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  expect(calls).toEqual([3]);
});
