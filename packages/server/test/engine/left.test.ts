import { describe, expect, it } from "vitest";
import { memoryStore, type ClaimQuery, type Store } from "../../src/store/index.ts";
import { callContext, fakeClock } from "@parley/testing";
import { counted } from "./counted.ts";
import { bound, eventually, gate, harness, type OnMessage } from "./support.ts";

/* Tests tasks without a run, in a store whose leases last as long as their processes do. */

const immediately = { configuration: { returnImmediately: true } };
const ttl = 2_600;

describe("a run that ended because its append failed, in a process that lives on", () => {
  it.each([
    { resumable: false, state: "TASK_STATE_FAILED", attempts: [1] },
    { resumable: true, state: "TASK_STATE_COMPLETED", attempts: [1, 2] },
  ])("ends within lease.ttl and one scan, if resumable is $resumable", async ({ resumable, state, attempts }) => {
    const clock = fakeClock();
    const { shared } = counted(memoryStore(), clock);
    let isAway = false;
    const store: Store = {
      ...shared,
      async append(items) {
        if (isAway) throw new Error("the database is away");
        return shared.append(items);
      },
    };
    const seen: number[] = [];
    const { send, engine, get } = harness(
      async function* (turn) {
        seen.push(turn.attempt);
        yield turn.working("on it");
        await turn.flush();
        isAway = turn.attempt === 1;
        yield turn.artifact({ parts: [{ text: "half" }] });
        await turn.flush().catch(() => {});
      },
      { store, clock, lease: { ttl }, behaviour: { resumable } },
    );
    const { id } = await send("go", immediately);
    await eventually(() => isAway);
    await new Promise((resolve) => setTimeout(resolve, 20));
    isAway = false;
    for (let rounds = 0; rounds < 16; rounds += 1) {
      clock.advance(ttl / 8);
      await engine.round();
    }
    await eventually(async () => (await get(id)).status.state === state);
    expect(seen).toEqual(attempts);
  });
});

describe("processes with the same host name on two machines", () => {
  /** An agent function that works until it is stopped. */
  async function* forever(turn: Parameters<OnMessage>[0]) {
    yield turn.working("on it");
    await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
  }

  it("consider each other dead only after heartbeats stop", async () => {
    const clock = fakeClock();
    const { shared, silent } = counted(memoryStore(), clock);
    // On its own machine, each process looks for the other process, and does not find it.
    const of = (holder: string) => ({ ttl, holder, isGone: (other: string) => other !== holder });
    const behaviour = { resumable: true };
    const a = harness(forever, { store: shared, clock, lease: of("a"), behaviour });
    const { id } = await a.send("go", immediately);
    await eventually(async () => (await shared.head({ agent: "agent" }, id))?.fence === 1);
    const b = harness(forever, { store: shared, clock, lease: of("b"), behaviour });
    for (let rounds = 0; rounds < 20; rounds += 1) {
      clock.advance(ttl / 8);
      await b.engine.round(true);
    }
    expect((await shared.head({ agent: "agent" }, id))?.holder).toBe("a");
    silent.add("a");
    for (let rounds = 0; rounds < 4; rounds += 1) {
      clock.advance(ttl / 8);
      await b.engine.round(true);
    }
    await eventually(async () => (await shared.head({ agent: "agent" }, id))?.holder === "b");
  });
});

describe("a store that counts its processes", () => {
  it("has the next work due after lease.ttl while a run continues, not when its lease ends", async () => {
    const clock = fakeClock();
    const { shared } = counted(memoryStore(), clock);
    const { send, engine } = harness(
      async function* (turn) {
        yield turn.working("on it");
        await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      },
      { store: shared, clock, lease: { ttl } },
    );
    const { id } = await send("go", immediately);
    await eventually(async () => (await shared.head({ agent: "agent" }, id))?.holder !== undefined);
    expect(await engine.nextDue()).toBe(clock.now() + ttl);
  });
});

describe("a process that resumes its heartbeats while its tasks are being taken over", () => {
  it("keeps the tasks that were not taken over yet", async () => {
    const clock = fakeClock();
    const { shared, silent } = counted(memoryStore(), clock);
    const forever: OnMessage = async function* (turn) {
      yield turn.working("on it");
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    };
    const behaviour = { resumable: true };
    const b = harness(forever, { store: shared, clock, lease: { ttl, holder: "b" }, behaviour });
    for (let at = 0; at < 40; at += 1) await b.send("go", immediately);
    const heads = async () =>
      (await shared.claimable({ now: Number.MAX_SAFE_INTEGER, agents: ["agent"], limit: 100 })).heads;
    await eventually(async () => (await heads()).filter(({ holder }) => holder === "b").length === 40);
    // The other process is slow to claim the task. In the meantime, the process that it considered dead sends a heartbeat.
    const slow = gate();
    let claims = 0;
    const store: Store = {
      ...shared,
      async append(items) {
        const takes = items.some(({ effects = [] }) => effects.some((each) => each.effect === "lease"));
        if (takes) claims += 1;
        if (takes) await slow.opened;
        return shared.append(items);
      },
    };
    const a = harness(forever, { store, clock, lease: { ttl, holder: "a" }, behaviour });
    const pass = async (): Promise<void> => {
      clock.advance(ttl / 8);
      await new Promise((resolve) => setTimeout(resolve, 5));
    };
    for (let rounds = 0; rounds < 4; rounds += 1) await pass();
    silent.add("b");
    for (let rounds = 0; rounds < 40 && claims === 0; rounds += 1) await pass();
    expect(claims).toBeGreaterThan(0);
    silent.delete("b");
    for (let rounds = 0; rounds < 4; rounds += 1) await pass();
    slow.open();
    const scanned = a.engine.round(true);
    await scanned;
    const held = (await heads()).filter(({ holder }) => holder === "b").length;
    expect(held).toBe(15);
  });
});

describe("the tasks of a dead process among those of many live ones", () => {
  it("are found by the dead process's name, in two reads", async () => {
    const clock = fakeClock();
    const { shared, silent } = counted(memoryStore(), clock);
    const forever: OnMessage = async function* (turn) {
      yield turn.working("on it");
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    };
    const of = (holder: string) => ({ clock, lease: { ttl, holder }, behaviour: { resumable: true } });
    const b = harness(forever, { store: shared, ...of("b") });
    const c = harness(forever, { store: shared, ...of("c") });
    for (let at = 0; at < 10; at += 1) await b.send("go", immediately);
    for (let at = 0; at < 50; at += 1) await c.send("go", immediately);
    const queries: ClaimQuery[] = [];
    const store: Store = {
      ...shared,
      async claimable(query) {
        const page = await shared.claimable(query);
        queries.push(query);
        for (const { holder } of page.heads) heads.push(holder ?? "");
        return page;
      },
    };
    const heads: string[] = [];
    harness(forever, { store, ...of("a") });
    const pass = async (): Promise<void> => {
      clock.advance(ttl / 16);
      await new Promise((resolve) => setTimeout(resolve, 1));
    };
    for (let rounds = 0; rounds < 8; rounds += 1) await pass();
    silent.add("b");
    // Ignores the reads that the engine made at startup.
    queries.length = heads.length = 0;
    for (let rounds = 0; rounds < 60 && heads.length === 0; rounds += 1) await pass();
    expect(heads).toEqual(Array.from({ length: 10 }, () => "b"));
    expect(queries.map(({ holders }) => holders)).toEqual([undefined, ["b"]]);
    await eventually(async () => {
      const all = (await shared.claimable({ now: Number.MAX_SAFE_INTEGER, agents: ["agent"], limit: 99 })).heads;
      return all.length === 60 && all.every(({ holder }) => holder !== "b");
    });
  });
});

describe("a task that is canceled just after its lease was taken", () => {
  it("is not given to its agent again, and no failure is logged", async () => {
    const clock = fakeClock();
    const shared: Store = { ...bound(memoryStore()), close: async () => {} };
    const attempts: number[] = [];
    const forever: OnMessage = async function* (turn) {
      attempts.push(turn.attempt);
      yield turn.working(`attempt ${turn.attempt}`);
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    };
    const gone = { isGone: () => true };
    const behaviour = { resumable: true };
    const a = harness(forever, { store: shared, clock, lease: { holder: "a" }, behaviour });
    const { id } = await a.send("go", immediately);
    await eventually(() => attempts.length === 1);
    let isCanceled = false;
    const store: Store = {
      ...shared,
      async head(scope, taskId) {
        const { holder } = (await shared.head(scope, taskId)) ?? {};
        if (holder === "b" && !isCanceled) {
          isCanceled = true;
          await a.service.call("CancelTask", { id }, callContext());
        }
        return shared.head(scope, taskId);
      },
    };
    const b = harness(forever, { store, clock, lease: { holder: "b", ...gone }, behaviour });
    await eventually(() => isCanceled);
    await b.engine.round(true);
    expect(attempts).toEqual([1]);
    expect(b.log.filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
    expect((await b.get(id)).status.state).toBe("TASK_STATE_CANCELED");
  });
});
