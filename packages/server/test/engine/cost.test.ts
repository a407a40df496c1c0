import { fakeClock } from "@parley/testing";
import { describe, expect, it } from "vitest";
import { memoryStore } from "../../src/store/index.ts";
import { harness } from "./support.ts";

const chunks = 4_000;

/** Creates a store that counts its reads and the appended characters. */
function counting() {
  const store = memoryStore();
  const work = { reads: 0, chars: 0 };
  const append = store.append.bind(store);
  store.append = (items) => {
    for (const item of items) if ("task" in item) for (const { json } of item.records) work.chars += json.length;
    return append(items);
  };
  const counted =
    <Args extends readonly unknown[], Result>(call: (...args: Args) => Result) =>
    (...args: Args): Result => {
      work.reads += 1;
      return call(...args);
    };
  store.load = counted(store.load.bind(store));
  store.read = counted(store.read.bind(store));
  store.head = counted(store.head.bind(store));
  return { store, work };
}

describe(`a stream of ${chunks} small chunks`, () => {
  it("is stored chunk by chunk, is read only from memory, and lets other callers be answered", async () => {
    const { store, work } = counting();
    let running = true;
    const { stream, get } = harness(
      async function* (turn) {
        yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "0" }] } };
        for (let n = 1; n < chunks; n += 1) yield turn.append("a", [{ text: String(n) }]);
        running = false;
      },
      { store, limits: { pendingEvents: 64 } },
    );
    const reading = await stream("count");
    const id = (await reading.next())?.payload.value.task?.id ?? "";
    const before = { ...work };
    let answered = 0;
    const others = (async () => {
      while (running) {
        await get(id, { historyLength: 0 });
        answered += 1;
        // Waits, because the server only reads requests between turns of the event loop.
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const seen = (await reading.all()).filter(({ payload }) => payload.value.artifactUpdate !== undefined);
    await others;
    expect(seen).toHaveLength(chunks);
    const largest = Math.max(...seen.map(({ payload }) => payload.json.length));
    expect(work.chars - before.chars).toBeLessThan(chunks * (largest + 20));
    // The other callers cause store reads, but the stream does not.
    expect(work.reads - before.reads - answered).toBeLessThan(20);
    expect(answered).toBeGreaterThan(chunks / 64 / 4);
  });
});

/** Creates a clock that advances by a millisecond with each reading. */
function slowClock() {
  const clock = fakeClock();
  return {
    ...clock,
    now: () => (clock.advance(1), clock.now()),
    elapsed: () => (clock.advance(1), clock.elapsed()),
  };
}

describe("many agents at full speed", () => {
  it("yield to the event loop once all of them together took a millisecond", async () => {
    const agents = 16;
    const each = 50;
    const { stream } = harness(
      async function* (turn) {
        yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "0" }] } };
        for (let n = 1; n < each; n += 1) yield turn.append("a", [{ text: String(n) }]);
      },
      { clock: slowClock() },
    );
    let turns = 0;
    let running = true;
    const count = (): void => {
      turns += 1;
      if (running) setImmediate(count);
    };
    setImmediate(count);
    const readings = await Promise.all(Array.from({ length: agents }, (_, n) => stream(`count ${n}`)));
    await Promise.all(readings.map((reading) => reading.all()));
    running = false;
    // Each agent makes one step in a turn of the event loop. Without the time slice, all agents would finish in one or two turns.
    expect(turns).toBeGreaterThan(each / 2);
  });
});

describe("a short answer", () => {
  it("takes one commit and does not read the store, even when other agents have used up the time slice", async () => {
    const { store, work } = counting();
    const append = store.append.bind(store);
    const records: number[] = [];
    store.append = (items) => {
      for (const item of items) if ("task" in item) records.push(item.records.length);
      return append(items);
    };
    const { send } = harness(
      async function* () {
        yield { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "done" }] } };
      },
      { store, clock: slowClock() },
    );
    const tasks = await Promise.all(["one", "two", "three"].map((text) => send(text)));
    for (const task of tasks)
      expect(task).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" }, artifacts: [{}] });
    expect(records).toEqual([3, 3, 3]);
    expect(work.reads).toBe(0);
  });
});
