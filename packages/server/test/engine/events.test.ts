import { describe, expect, it } from "vitest";
import { memoryStore, type Store } from "../../src/store/index.ts";
import { bound, eventually, harness } from "./support.ts";
import { immediately, keysOf, over, waits } from "./waiting.ts";

/** Tests events from `signal()` that arrive in parallel, or during changes of their task (docs/decisions/waiting.md). */

describe("concurrent events", () => {
  it("are at most 32 from all senders", async () => {
    const on = harness(async function* (turn) {
      yield turn.working();
      yield* turn.waitFor("begin");
      const got: unknown[] = [];
      for (let at = 0; at < 32; at += 1) got.push(yield* turn.waitFor("number"));
      yield turn.completed(JSON.stringify(got));
    });
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    const sent = await Promise.allSettled(
      Array.from({ length: 60 }, (_, at) => on.engine.signal(id, "number", at, { id: `event ${at}` })),
    );
    const accepted = sent.flatMap(({ status }, at) => (status === "fulfilled" ? [at] : []));
    expect(accepted).toHaveLength(32);
    for (const each of sent)
      if (each.status === "rejected") expect(each.reason).toMatchObject({ code: "TooManyRequests" });
    expect((await keysOf(on, id)).filter((key) => key.startsWith("event."))).toHaveLength(32);
    // The queue is full, so the agent must take a number before "begin" fits.
    await expect(on.engine.signal(id, "begin")).rejects.toMatchObject({ code: "TooManyRequests" });
    await on.cancel(id);
  });

  it("are taken in order, even while more arrive", async () => {
    const on = harness(async function* (turn) {
      yield turn.working();
      const got: unknown[] = [];
      for (let at = 0; at < 80; at += 1) got.push(yield* turn.waitFor("number"));
      yield turn.completed(JSON.stringify(got));
    });
    const { id } = await on.send("Go", immediately);
    for (let at = 0; at < 80;) {
      try {
        await on.engine.signal(id, "number", at);
        at += 1;
      } catch {
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    expect(await over(on, id)).toBe(`COMPLETED ${JSON.stringify(Array.from({ length: 80 }, (_, at) => at))}`);
  });
});

describe("an event of a task that ends at the same time", () => {
  it("is rejected, not accepted and dropped", async () => {
    const shared = memoryStore();
    let between = (): Promise<unknown> => Promise.resolve();
    const store: Store = {
      ...bound(shared),
      features: async (...query) => {
        const rows = await shared.features(...query);
        const work = between;
        between = () => Promise.resolve();
        await work();
        return rows;
      },
    };
    const on = harness(
      async function* (turn) {
        yield turn.working();
        yield* turn.waitFor("never");
      },
      { store },
    );
    const { id } = await on.send("Go", immediately);
    await waits(on, id);
    await eventually(async () => (await keysOf({ store: shared }, id)).length === 1);
    between = () => on.cancel(id);
    await expect(on.engine.signal(id, "paid")).rejects.toMatchObject({ code: "UnsupportedOperation" });
  });
});
