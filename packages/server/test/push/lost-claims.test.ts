import { describe, expect, it } from "vitest";
import { memoryStore, type Store } from "../../src/store/index.ts";
import { fakeClock } from "@parley/testing";
import { making, working } from "../../../testing/src/store/given.ts";
import { configRow, harness, receiver, until } from "./support.ts";

/* Tests rows that were claimed by a process that has died. The clock only advances if a test advances it. */

const claimed = { claim: "of another", holder: "other" };

/** Stores a task with an event, and a config that is claimed for half a minute. */
async function claim(store: Store, now: number, taskId: string, url: string, by: object = claimed): Promise<void> {
  const made = making(taskId);
  const effects = [configRow("c", { url, ...by }, now + 30_000)];
  await store.append([{ ...made, records: [...made.records, working(taskId)], effects }]);
}

function withHolders(isLost: (holder: string) => boolean, fresh = Infinity) {
  const clock = fakeClock();
  const store = memoryStore();
  return { clock, ...harness({ clock, store, holders: { own: () => "me", isLost, fresh } }) };
}

describe("a claim of a process", () => {
  it("that is dead when the server starts is released, however many rows it has claimed", async () => {
    const { url } = await receiver();
    const { clock, store, outbox } = withHolders((holder) => holder === "other");
    // Stores more rows than fit on a page, two of them due at each time.
    for (let at = 0; at < 300; at += 1) await claim(store, clock.now() + ((at + 1) >> 1), `t${at}`, url);
    outbox.start();
    const claims = async (): Promise<number> => {
      const rows = await store.dueFeatures({ feature: "push", now: Infinity, limit: 1_000 });
      return rows.filter(({ value }) => value.includes("other")).length;
    };
    await until(async () => expect(await claims()).toBe(0));
  });

  it("that is dead is found behind five thousand deferred rows, even if it dies meanwhile", async () => {
    const { url, received } = await receiver();
    const lost = new Set(["other"]);
    const { clock, store, outbox } = withHolders((holder) => lost.has(holder));
    const { dueFeatures } = store;
    store.dueFeatures = async (query) => {
      const rows = await dueFeatures.call(store, query);
      if (query.after !== undefined && query.after > clock.now()) {
        lost.add("third");
        outbox.reclaim();
        store.dueFeatures = dueFeatures;
      }
      return rows;
    };
    for (let task = 0; task < 50; task += 1) {
      const effects = Array.from({ length: 100 }, (_, at) => configRow(`c${at}`, { url }, clock.now() + 20_000 + at));
      await store.append([{ ...making(`put-off-${task}`), effects }]);
    }
    await claim(store, clock.now() - 15_000, "first", `${url}/first`, { claim: "of a third", holder: "third" });
    await claim(store, clock.now(), "last", `${url}/last`);
    outbox.start();
    await until(() => expect(received.map(({ path }) => path).sort()).toEqual(["/first", "/last"]));
  });

  it("lasts until it expires, if the process may live, is unknown, or has no name", async () => {
    const { url, received } = await receiver();
    const lost = new Set<string>();
    const { clock, store, outbox, row } = withHolders((holder) => lost.has(holder));
    await claim(store, clock.now(), "known", `${url}/known`);
    await claim(store, clock.now(), "unnamed", `${url}/unnamed`, { claim: "of an older release" });
    outbox.start();
    outbox.reclaim();
    await until(() => expect(outbox.isBusy).toBe(false));
    expect(received).toEqual([]);
    lost.add("other");
    // No dead process was reported, so no row is released.
    outbox.poll();
    await until(() => expect(outbox.isBusy).toBe(false));
    expect(received).toEqual([]);
    outbox.reclaim();
    await until(() => expect(received.map(({ path }) => path)).toEqual(["/known"]));
    await until(async () => expect((await row("known"))?.config).toMatchObject({ delivered: 1 }));
    expect((await row("known"))?.config).not.toHaveProperty("holder");
    clock.advance(30_001);
    await until(() => expect(received).toHaveLength(2));
  });

  it("names the process while it delivers, and is extended before a request if the process was paused", async () => {
    const held: string[] = [];
    const sent: number[] = [];
    const { url } = await receiver(() => {
      sent.push(held.length);
      return 204;
    });
    const { clock, store, task, append, outbox } = withHolders(() => false, 500);
    const { append: stored } = store;
    store.append = (items) => {
      const [claim] = /"claim":"[^"]*","holder":"me"/.exec(JSON.stringify(items).replaceAll("\\", "")) ?? [];
      if (claim !== undefined) held.push(claim);
      // Pauses the process after its first claim.
      if (held.length === 1) clock.advance(501);
      return stored.call(store, items);
    };
    outbox.start();
    await task("t", { c: url });
    await append("t", working("t"));
    await until(() => expect(sent).toEqual([2]));
    expect(new Set(held).size).toBe(1);
  });
});
