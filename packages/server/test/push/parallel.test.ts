import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { deferred } from "@parley/a2a/internal/base/index";
import { untilAborted } from "@parley/a2a/internal/base/async";
import type { Dialer } from "@parley/a2a/internal/net/index";
import { claimMargin } from "../../src/push/delivery.ts";
import { pushOperator } from "../../src/push/operator.ts";
import { memoryStore, type Store } from "../../src/store/index.ts";
import { fakeClock } from "@parley/testing";
import { bob, completed, effects, making, working } from "../../../testing/src/store/given.ts";
import { bound } from "../engine/support.ts";
import { configRow, gists, harness, plainSigner, receiver, until } from "./support.ts";

const hour = 3_600_000;

/** Starts a receiver that answers only on the test's command. */
async function holding() {
  const held: ServerResponse[] = [];
  const made = await receiver((_request, _count, response) => {
    held.push(response);
    return undefined;
  });
  return { ...made, held, answer: (status = 204) => held.splice(0).forEach((each) => each.writeHead(status).end()) };
}

/** Stores this many tasks, each with an event that is due for an address. */
async function fill(store: Store, count: number, urlOf: (at: number) => string): Promise<void> {
  for (let from = 0; from < count; from += 500) {
    const items = Array.from({ length: Math.min(500, count - from) }, (_, at) => from + at).map((at) => {
      const made = making(`d${at}`);
      const records = [...made.records, working(`d${at}`)];
      return { ...made, records, effects: [configRow("c", urlOf(at), at - count)] };
    });
    await store.append(items);
  }
}

describe("a receiver that does not answer delays no other", () => {
  it("ten thousand rows of one that hangs do not hide a working one, and it gets one request at a time", async () => {
    const dead = await holding();
    const alive = await receiver();
    const clock = fakeClock();
    const { outbox, store, task, append, row } = harness({ clock });
    await fill(store, 10_000, () => `${dead.url}/hook`);
    await task("t", { c: alive.url });
    await append("t", working("t"), completed("t"));
    outbox.start();
    // The clock does not advance, so no request to the dead receiver has ended.
    await until(async () => expect(await row("t")).not.toHaveProperty("due"));
    expect(gists(alive.received)).toEqual(["working", "completed"]);
    expect(dead.received).toHaveLength(1);
  });

  it("an origin that refuses connections gets a few attempts, then none for a while", async () => {
    const alive = await receiver();
    const clock = fakeClock();
    const { outbox, store, task, append, row, log } = harness({ clock });
    await fill(store, 1_000, () => "http://127.0.0.1:1025/");
    await task("t", { c: alive.url });
    await append("t", working("t"), completed("t"));
    outbox.start();
    await until(async () => expect(await row("t")).not.toHaveProperty("due"));
    const attempts = () => log.filter(({ message }) => message === "Webhook delivery failed").length;
    await until(async () =>
      expect(await store.dueFeatures({ feature: "push", now: clock.now(), limit: 1 })).toEqual([]),
    );
    expect(attempts()).toBe(5);
    // The other rows of the dead receiver were deferred without an attempt.
    const rows = await store.dueFeatures({ feature: "push", now: Infinity, limit: 1_000 });
    expect(rows.filter(({ value }) => value.includes("problem"))).toHaveLength(5);
    // After the pause, the outbox tries the receiver once more.
    clock.advance(25_000);
    await until(() => {
      clock.advance(20);
      expect(attempts()).toBeGreaterThan(5);
    });
  });

  it("many origins that hang leave half of all requests to those that answer", async () => {
    const dead = await Promise.all(Array.from({ length: 12 }, holding));
    const alive = await receiver();
    const clock = fakeClock();
    const { outbox, store, task, append } = harness({ clock, settings: { concurrency: 8 } });
    outbox.start();
    await task("t", { c: alive.url });
    await append("t", working("t"));
    await until(() => expect(alive.received).toHaveLength(1));
    await fill(store, 240, (at) => dead[at % dead.length]?.url ?? "");
    await until(() => {
      clock.advance(20);
      expect(dead.filter(({ received }) => received.length > 0)).toHaveLength(4);
    });
    await append("t", completed("t"));
    await until(() => expect(gists(alive.received)).toEqual(["working", "completed"]));
    expect(dead.flatMap(({ received }) => received)).toHaveLength(4);
  });

  /** Creates a dialer all of whose hosts hang, except `alive`. */
  function manyHosts() {
    const asked: string[] = [];
    const dialer: Dialer = {
      resolve: () => Promise.resolve([{ address: "192.168.0.1", family: 4 }]),
      fetch({ hostname }, _addresses, { signal }) {
        asked.push(hostname);
        if (hostname === "alive.example.com") return Promise.resolve(new Response(null, { status: 204 }));
        return untilAborted(new Promise<never>(() => {}), signal);
      },
    };
    return { asked, dialer };
  }

  it("two thousand origins that hang leave capacity to one that has answered before", async () => {
    const { asked, dialer } = manyHosts();
    const clock = fakeClock();
    const { outbox, store, task, append, row } = harness({ clock, settings: { dialer } });
    outbox.start();
    await task("t", { c: "http://alive.example.com/" });
    await append("t", working("t"));
    await until(async () => expect((await row("t"))?.config.delivered).toBe(1));
    await fill(store, 2_000, (at) => `http://dead${at}.example.com/`);
    await append("t", completed("t"));
    // The clock does not advance, so no request has ended.
    await until(async () => expect((await row("t"))?.config.delivered).toBe(2));
    expect(asked.filter((each) => each !== "alive.example.com").length).toBeLessThanOrEqual(32);
  });

  it("two thousand hanging origins of one owner leave turns to a new receiver of another owner", async () => {
    const { asked, dialer } = manyHosts();
    const clock = fakeClock();
    const { outbox, store } = harness({ clock, settings: { dialer, concurrency: 4 } });
    await fill(store, 2_000, (at) => `http://dead${at}.example.com/`);
    const made = making("b", { owner: bob });
    await store.append([
      {
        ...made,
        records: [...made.records, working("b"), completed("b")],
        effects: [configRow("c", "http://alive.example.com/", 0)],
      },
    ]);
    outbox.start();
    // Rows without capacity are deferred. Two of the first owner's 256 rows are claimed. The other owner's row is read last.
    const due = () => store.dueFeatures({ feature: "push", now: clock.now(), limit: 2_001 });
    await until(async () => expect((await due()).length).toBe(255));
    expect(asked.length).toBe(2);
    // Advances the clock until both requests end.
    clock.advance(10_000);
    const delivered = async () => JSON.parse((await store.features(bob, "b", "push"))[0]?.value ?? "{}");
    await until(async () => expect(await delivered()).toMatchObject({ delivered: 2 }));
    expect(asked.filter((each) => each !== "alive.example.com").length).toBeLessThanOrEqual(4);
  });

  it("a thousand rows of one working origin all arrive, within its concurrency limit", async () => {
    let running = 0;
    let most = 0;
    const alive = await receiver((_request, _count, response) => {
      running += 1;
      most = Math.max(most, running);
      setImmediate(() => {
        running -= 1;
        response.writeHead(204).end();
      });
      return undefined;
    });
    const { outbox, store } = harness();
    await fill(store, 1_000, (at) => `${alive.url}/${at}`);
    outbox.start();
    await until(() => expect(alive.received).toHaveLength(1_000));
    expect(new Set(alive.received.map(({ path }) => path)).size).toBe(1_000);
    expect(most).toBeLessThanOrEqual(8);
  });
});

describe("several processes on one store", () => {
  it("deliver each event once, in order for each config", async () => {
    const { url, received, at } = await receiver();
    const store = memoryStore();
    const workers = [harness({ store }), harness({ store }), harness({ store })] as const;
    for (const { outbox } of workers) outbox.start();
    const tasks = Array.from({ length: 20 }, (_, number) => `t${number}`);
    await Promise.all(
      tasks.map(async (id, number) => {
        const made = workers[number % 3] ?? workers[0];
        await made.task(id, { a: `${url}/${id}/a`, b: `${url}/${id}/b` });
        for (let round = 0; round < 3; round += 1) {
          const other = workers[(number + round) % 3] ?? workers[0];
          await other.append(id, working(id), { ...working(id), state: "TASK_STATE_WORKING" });
          await other.append(id, { ...completed(id), state: "TASK_STATE_INPUT_REQUIRED" });
        }
        await made.append(id, completed(id));
      }),
    );
    const paths = tasks.flatMap((id) => [`/${id}/a`, `/${id}/b`]);
    await until(() => expect(received).toHaveLength(paths.length * 7));
    for (const path of paths) {
      expect(at(path).map(({ headers }) => headers["parley-sequence"])).toEqual(["1", "2", "3", "4", "5", "6", "7"]);
      const seqs = at(path).map(({ headers }) => Number(String(headers["webhook-id"]).split("_")[2]));
      expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
      expect(new Set(seqs).size).toBe(7);
    }
  });

  it("do nothing more after one of them was paused during a request, once its claim expires", async () => {
    const slow = await holding();
    const store = memoryStore();
    const clocks = [fakeClock(), fakeClock()] as const;
    const first = harness({ store, clock: clocks[0] });
    const second = harness({ store, clock: clocks[1] });
    await first.task("t", { c: slow.url });
    await first.append("t", working("t"), completed("t"));
    first.outbox.start();
    await until(() => expect(slow.received).toHaveLength(1));
    const [ofFirst] = slow.held.splice(0);
    second.outbox.start();
    clocks[1].advance(10_000 + claimMargin);
    await until(() => {
      clocks[1].advance(20);
      slow.answer();
      expect(slow.received).toHaveLength(3);
    });
    await until(async () => expect(await first.row("t")).not.toHaveProperty("due"));
    ofFirst?.writeHead(500).end();
    await first.outbox.stop(60_000);
    expect(slow.received.map(({ headers }) => headers["webhook-id"])).toEqual(["n-c_1_2", "n-c_1_2", "n-c_2_3"]);
    const { config } = (await first.row("t")) ?? {};
    expect(config).toMatchObject({ cursor: 3, delivered: 2 });
    expect(config).not.toHaveProperty("problem");
  });

  it("send nothing after one of them was paused between its claim and its request", async () => {
    const { url, received } = await receiver();
    const store = memoryStore();
    const clocks = [fakeClock(), fakeClock()] as const;
    const gate = deferred<string>();
    let signing = 0;
    const signer = {
      ...plainSigner,
      signature: () => {
        signing += 1;
        return gate.promise;
      },
    };
    const first = harness({ store, clock: clocks[0], signer });
    const second = harness({ store, clock: clocks[1] });
    await first.task("t", { c: url });
    await first.append("t", working("t"));
    first.outbox.start();
    await until(() => expect(signing).toBe(1));
    second.outbox.start();
    clocks[1].advance(10_000 + claimMargin);
    await until(() => {
      clocks[1].advance(20);
      expect(received).toHaveLength(1);
    });
    await until(async () => expect(await first.row("t")).not.toHaveProperty("due"));
    clocks[0].advance(10_000 + claimMargin);
    gate.resolve("v1a,late");
    await first.outbox.stop(60_000);
    expect(received).toHaveLength(1);
  });
});

describe("a jump of the wall clock", () => {
  it("back by a fraction of a millisecond is corrected in whole milliseconds, even if the store fails first", async () => {
    const { url } = await receiver();
    const clock = fakeClock();
    const store = memoryStore();
    const asked: number[] = [];
    const strict: Store = {
      ...bound(store),
      dueFeatures(query) {
        if (query.now !== Infinity && query.after !== undefined) {
          asked.push(query.after, query.now);
          if (asked.length === 2) throw new Error("The store is down");
        }
        return store.dueFeatures(query);
      },
    };
    const { outbox, task, append, row } = harness({ clock, store: strict });
    outbox.start();
    await task("t", { c: url });
    await append("t", working("t"));
    await until(async () => expect((await row("t"))?.config.delivered).toBe(1));
    clock.jump(-hour - 0.5);
    await until(() => {
      clock.advance(20);
      expect(asked).toHaveLength(4);
    });
    expect(asked.filter((each) => !Number.isSafeInteger(each))).toEqual([]);
  });

  it("back by an hour delays nothing that was due before", async () => {
    const { url, received } = await receiver();
    const clock = fakeClock();
    const { outbox, task, append } = harness({ clock });
    await task("t", { c: url });
    await append("t", working("t"));
    clock.jump(-hour);
    outbox.start();
    await until(() => expect(gists(received)).toEqual(["working"]));
    await append("t", completed("t"));
    await until(() => expect(gists(received)).toEqual(["working", "completed"]));
  });

  it("back by years, before this process began: rows beyond the longest wait are due now, others stay", async () => {
    const { url, received } = await receiver();
    const clock = fakeClock();
    const { outbox, store, row } = harness({ clock });
    const far = clock.now() + 1_000 * 24 * hour;
    const soon = clock.now() + 20 * hour;
    for (const [id, due] of [
      ["far", far],
      ["later", far + 1],
      ["soon", soon],
    ] as const) {
      const made = making(id);
      await store.append([
        { ...made, records: [...made.records, working(id)], effects: [configRow("c", `${url}/${id}`, due)] },
      ]);
    }
    outbox.start();
    await until(() => expect(received.map(({ path }) => path).sort()).toEqual(["/far", "/later"]));
    expect(await row("soon")).toMatchObject({ due: soon });
  });

  it("forward during a request ends no claim of a running process, and repeats nothing", async () => {
    const slow = await holding();
    const clock = fakeClock();
    const { outbox, task, append, row } = harness({ clock });
    outbox.start();
    await task("t", { c: slow.url });
    await append("t", working("t"), completed("t"));
    await until(() => expect(slow.held).toHaveLength(1));
    clock.jump(48 * hour);
    clock.advance(20);
    await until(async () => {
      slow.answer();
      expect(await row("t")).not.toHaveProperty("due");
    });
    expect(gists(slow.received)).toEqual(["working", "completed"]);
  });
});

describe("the end of a process", () => {
  it("lets a request end within the grace, stores its result, and starts no other", async () => {
    const slow = await holding();
    const clock = fakeClock();
    const { outbox, task, append, row } = harness({ clock });
    outbox.start();
    await task("t", { c: slow.url });
    await append("t", working("t"), completed("t"));
    await until(() => expect(slow.held).toHaveLength(1));
    const stopped = outbox.stop(5_000);
    slow.answer();
    await stopped;
    expect(slow.received).toHaveLength(1);
    expect(await row("t")).toMatchObject({ due: clock.now(), config: { cursor: 2, delivered: 1 } });
    expect((await row("t"))?.config).not.toHaveProperty("claim");
  });

  it("aborts a request after the grace, and its row is due at once, without a counted attempt", async () => {
    const slow = await holding();
    const clock = fakeClock();
    const { outbox, task, append, row, store } = harness({ clock });
    outbox.start();
    await task("t", { c: slow.url });
    await append("t", working("t"));
    await until(() => expect(slow.held).toHaveLength(1));
    const stopped = outbox.stop(5_000);
    clock.advance(5_000);
    await stopped;
    const { due, config } = (await row("t")) ?? {};
    expect(due).toBe(clock.now());
    for (const member of ["claim", "attempts", "problem"]) expect(config).not.toHaveProperty(member);
    // The next process continues immediately.
    const next = harness({ clock, store });
    next.outbox.start();
    await until(() => expect(slow.held).toHaveLength(2));
    slow.answer();
    await until(async () => expect(await row("t")).not.toHaveProperty("due"));
  });

  it("without a grace stops at once, even before it has begun", async () => {
    const { outbox } = harness();
    await outbox.stop(0);
    outbox.start();
    await outbox.stop(0);
  });
});

describe("a store", () => {
  it("that fails for a while loses nothing", async () => {
    const { url, received } = await receiver();
    const store = bound(memoryStore());

    let fails = 0;
    const failing: Store = {
      ...store,
      append: (items) => {
        // Only the worker's own items contain no records.
        const own = items.some((item) => "records" in item && item.records.length === 0);
        if (own && (fails += 1) % 5 < 2) return Promise.reject(new Error("The disk is full"));
        return store.append(items);
      },
    };
    const clock = fakeClock();
    const { outbox, task, append, row } = harness({
      store: failing,
      clock,
      // If the clock advances during a request, the request fails, and the outbox repeats it.
      settings: { retryAfter: Array.from({ length: 1_000 }, () => 0) },
    });
    outbox.start();
    await task("t", { c: url });
    await append("t", working("t"), completed("t"));
    await until(async () => {
      clock.advance(10_000);
      expect(await row("t")).not.toHaveProperty("due");
    });
    const ids = received.map(({ headers }) => headers["webhook-id"]);
    expect([...new Set(ids)]).toEqual(["n-c_1_2", "n-c_2_3"]);
    expect(ids.indexOf("n-c_2_3")).toBe(ids.lastIndexOf("n-c_1_2") + 1);
  });

  it("with a row that is not a config logs it, and delivers the others", async () => {
    const { url, received } = await receiver();
    const { outbox, store, task, append, log } = harness();
    const broken = { effect: "feature", op: "set", feature: "push", key: "c", value: '{"url":5}', due: 1 } as const;
    await store.append([{ ...making("b"), effects: [broken] }, effects("b", { ...broken, key: "d", value: "null" })]);
    await task("t", { c: url });
    await append("t", working("t"));
    outbox.start();
    await until(() => expect(received).toHaveLength(1));
    const errors = log.filter(({ level }) => level === "error");
    expect(errors.map(({ taskId, configId }) => [taskId, configId])).toEqual([
      ["b", "c"],
      ["b", "d"],
    ]);
  });
});

describe("an operator", () => {
  it("may change a row during its delivery: the result is stored, and the operator's change applies", async () => {
    const codes = [400, 204, 204];
    const slow = await holding();
    const clock = fakeClock();
    const { outbox, task, append, row, store } = harness({ clock });
    outbox.start();
    await task("t", { c: slow.url });
    await append("t", working("t"), completed("t"));
    await until(() => expect(slow.held).toHaveLength(1));
    slow.answer(codes.shift());
    await until(() => expect(slow.held).toHaveLength(1));
    expect(await pushOperator(store, { clock }).retry("agent", "t", "c", { seq: 2 })).toBe(true);
    slow.answer(codes.shift());
    await until(() => expect(slow.held).toHaveLength(1));
    slow.answer(codes.shift());
    await until(async () => expect(await row("t")).not.toHaveProperty("due"));
    expect(slow.received.map(({ headers }) => headers["webhook-id"])).toEqual(["n-c_1_2", "n-c_2_3", "n-c_1_2"]);
    expect((await row("t"))?.config).toMatchObject({ cursor: 3, delivered: 2, sequence: 2 });
    expect((await row("t"))?.config).not.toHaveProperty("refused");
  });

  it("may drop a config while it is delivered: nothing more is sent", async () => {
    const slow = await holding();
    const { outbox, task, append, row, store } = harness();
    outbox.start();
    await task("t", { c: slow.url });
    await append("t", working("t"), completed("t"));
    await until(() => expect(slow.held).toHaveLength(1));
    expect(await pushOperator(store).drop("agent", "t", "c")).toBe(true);
    slow.answer();
    await outbox.stop(10_000);
    expect(slow.received).toHaveLength(1);
    expect(await row("t")).toBeUndefined();
  });
});
