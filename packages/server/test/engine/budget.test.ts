import { describe, expect, it } from "vitest";
import type { Message } from "@parley/a2a/internal/model/index";
import { memoryStore, type Store } from "../../src/store/index.ts";
import { fakeClock } from "@parley/testing";
import { bound, eventually, gate, gist, harness } from "./support.ts";

const kib = 1 << 10;

describe("the byte budget of running tasks", () => {
  it("gets back all bytes of a task that is canceled while its next message is read", async () => {
    const store = memoryStore();
    const [working, looking] = [gate(), gate()];
    let looks = 0;
    const slow: Store = {
      ...bound(store),
      async read(scope, taskId, options) {
        if (options.kinds?.[0] === "message") {
          looks += 1;
          await looking.opened;
        }
        return store.read(scope, taskId, options);
      },
    };
    const { send, cancel, stream } = harness(
      async function* (turn) {
        yield turn.working();
        await working.opened;
      },
      { store: slow, clock: fakeClock(), limits: { totalBytes: 400 * kib } },
    );
    const configuration = { returnImmediately: true };
    const first = await stream("x".repeat(80 * kib));
    const taskId = (await first.next())?.payload.value.task?.id ?? "";
    await send("y".repeat(80 * kib), { message: { taskId }, configuration });
    working.open();
    await eventually(() => looks === 1);
    await cancel(taskId);
    looking.open();
    await first.all();
    // If a message is larger than the budget, it is accepted only while the budget is unused.
    const next = await stream("z".repeat(401 * kib), { subject: "other" });
    const event = (await next.next())?.payload.value;
    expect(event && gist(event)).toBe("task submitted");
  });

  it.each<[string, Partial<Message>]>([
    ["the name of a file", { parts: [{ text: "", filename: "f".repeat(200 * kib) }] }],
    ["a media type", { parts: [{ text: "", mediaType: `text/plain;x=${"b".repeat(200 * kib)}` }] }],
    ["ids of other tasks", { referenceTaskIds: Array.from({ length: 1_000 }, (_, n) => `${n}`.padStart(200, "0")) }],
    ["extensions", { extensions: ["https://example.com/".padEnd(200 * kib, "e")] }],
    ["parts without content", { parts: Array.from({ length: 5_000 }, () => ({ text: "" })) }],
    ["empty values", { parts: [{ data: Array.from({ length: 20_000 }, () => ({})) }] }],
  ])("counts %s of a message", async (_what, message) => {
    const { opened, open } = gate();
    const clock = fakeClock();
    let started = 0;
    const { ask } = harness(
      async (turn) => {
        started += 1;
        await opened;
        return turn.reply("Done");
      },
      {
        clock,
        limits: { totalBytes: 200 * kib },
        behaviour: { defaultInputModes: ["text/plain", "application/json"] },
      },
    );
    const first = ask("", { message });
    await eventually(() => started === 1);
    const second = ask("", { message: { ...message, messageId: "second" } });
    const outcomes = Promise.allSettled([first, second]);
    clock.advance(10_000);
    open();
    expect(await outcomes).toMatchObject([
      { status: "fulfilled" },
      { status: "rejected", reason: { code: "Unavailable", retryAfter: 5 } },
    ]);
  });

  it("accepts small messages beyond it, but not any number of them", async () => {
    const { opened, open } = gate();
    const clock = fakeClock();
    let started = 0;
    const { ask } = harness(
      async (turn) => {
        started += 1;
        await opened;
        return turn.reply("Done");
      },
      { clock, limits: { totalBytes: 400 * kib } },
    );
    const asked = Array.from({ length: 20 }, (_, n) => ask("x".repeat(60 * kib), { message: { messageId: `m-${n}` } }));
    const outcomes = Promise.allSettled(asked);
    await eventually(() => started >= 9);
    clock.advance(10_000);
    open();
    const fulfilled = (await outcomes).filter(({ status }) => status === "fulfilled");
    expect(fulfilled).toHaveLength(9);
    expect(started).toBe(9);
  });
});

describe("direct replies in memory", () => {
  it("count once in a conversation that grows, and do not displace other conversations", async () => {
    const texts: string[][] = [];
    const { ask } = harness(
      async (turn) => {
        if (turn.text === "What was it?") texts.push((await turn.context.history()).map(({ text }) => text));
        return turn.reply("Noted");
      },
      { conversations: "memory" },
    );
    await ask("It was blue", { message: { contextId: "quiet" } });
    for (let n = 0; n < 60; n += 1) await ask("x".repeat(50 * kib), { message: { contextId: "busy" } });
    await ask("What was it?", { message: { contextId: "quiet" } });
    expect(texts).toEqual([["It was blue", "Noted", "What was it?"]]);
  });
});
