import { fakeClock, wakeupContract, type FakeClock } from "@parley/testing";
import { WakeupBatch, type Wakeup, type WakeupListener } from "@parley/server/store";
import { systemClock } from "@parley/server";
import { describe, expect, test as it } from "vitest";

/** Simulates a cluster in one process. */
function hub(): { open(): Promise<Wakeup>; disconnect(): Promise<void> } {
  const nodes = new Set<{ receive(message: string): void; lose(): void }>();
  return {
    open() {
      const listeners = new Set<{ readonly tell: WakeupListener }>();
      const tell = (taskId: string | undefined): void => {
        for (const entry of listeners) entry.tell(taskId);
      };
      let isOpen = true;
      const batch = new WakeupBatch({
        clock: systemClock,
        messageBytes: 500,
        send(messages) {
          for (const message of messages) for (const node of nodes) node.receive(message);
          return Promise.resolve();
        },
        onError: () => undefined,
      });
      const node = {
        receive(message: string) {
          const received = batch.read(message);
          if (received !== undefined && !received.isOwn) received.taskIds.forEach(tell);
        },
        lose: () => tell(undefined),
      };
      nodes.add(node);
      return Promise.resolve({
        get isConnected() {
          return isOpen;
        },
        publish: (taskIds) => batch.add(taskIds),
        subscribe(listener) {
          const entry = { tell: listener };
          listeners.add(entry);
          return () => void listeners.delete(entry);
        },
        async close() {
          isOpen = false;
          await batch.close();
          nodes.delete(node);
        },
      } satisfies Wakeup);
    },
    disconnect() {
      for (const node of nodes) node.lose();
      return Promise.resolve();
    },
  };
}

describe("the contract of wake-ups, in memory", () => {
  wakeupContract({ describe, it, expect }, hub());
});

describe("the contract of wake-ups fails", () => {
  const cases = new Map<string, () => Promise<void>>();
  const { open } = hub();
  let spoil: (wakeup: Wakeup) => Wakeup = (wakeup) => wakeup;
  wakeupContract(
    { describe: (_name, body) => body(), it: (name, body) => cases.set(name, body) },
    { open: async () => spoil(await open()) },
  );

  it("if listeners stay after they ended", async () => {
    spoil = (wakeup) => over(wakeup, { subscribe: (listener) => (wakeup.subscribe(listener), () => undefined) });
    await expect(cases.get("stop when the subscription ends")?.()).rejects.toThrow("Not equal");
  });

  it("if each change is published", async () => {
    spoil = (wakeup) =>
      over(wakeup, {
        subscribe: (listener) => wakeup.subscribe((taskId) => Array.from({ length: 200 }, () => listener(taskId))),
      });
    await expect(cases.get("are coalesced if a task changes often")?.()).rejects.toThrow("Not equal");
  });

  it("if a closed node counts as connected", async () => {
    spoil = (wakeup) => over(wakeup, {}, true);
    await expect(cases.get("are sent before the node closes and not after")?.()).rejects.toThrow("Not equal");
  });

  function over(wakeup: Wakeup, more: Partial<Wakeup>, isConnected?: boolean): Wakeup {
    return {
      get isConnected() {
        return isConnected ?? wakeup.isConnected;
      },
      publish: (taskIds) => wakeup.publish(taskIds),
      subscribe: (listener) => wakeup.subscribe(listener),
      close: () => wakeup.close(),
      ...more,
    };
  }
});

describe("a batch of wake-ups", () => {
  /** Creates a batch that records the ids of each call. A call stays pending until the test ends it. */
  function batchOf(clock: FakeClock, options: { pendingBytes?: number; messageBytes?: number } = {}) {
    const calls: string[][] = [];
    const errors: unknown[] = [];
    let settle: ((error?: Error) => void)[] = [];
    const batch = new WakeupBatch({
      clock,
      interval: 10,
      messageBytes: 200,
      ...options,
      send(messages) {
        calls.push([...messages]);
        return new Promise((resolve, reject) => settle.push((error) => (error ? reject(error) : resolve())));
      },
      onError: (cause) => errors.push(cause),
    });
    const ids = (): unknown[] => calls.map((call) => call.flatMap((message) => batch.read(message)?.taskIds));
    const done = async (error?: Error): Promise<void> => {
      for (const end of settle) end(error);
      settle = [];
      await flush();
    };
    return { batch, calls, errors, ids, done };
  }

  const flush = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it("sends the first at once, with everything published before the next await", async () => {
    const { batch, ids } = batchOf(fakeClock());
    batch.add(["a"]);
    batch.add(["b", "a"]);
    expect(ids()).toEqual([]);
    await flush();
    expect(ids()).toEqual([["a", "b"]]);
  });

  it("waits for the previous call, and for the interval after its start", async () => {
    const clock = fakeClock();
    const { batch, ids, done } = batchOf(clock);
    batch.add(["a"]);
    await flush();
    batch.add(["b"]);
    clock.advance(25);
    await flush();
    expect(ids()).toEqual([["a"]]);
    await done();
    await flush();
    expect(ids()).toEqual([["a"], ["b"]]);
    await done();
    batch.add(["c"]);
    clock.advance(9);
    await flush();
    expect(ids()).toHaveLength(2);
    clock.advance(1);
    await flush();
    expect(ids()).toEqual([["a"], ["b"], ["c"]]);
  });

  it("splits ids that do not fit into one message, and loses none", async () => {
    const { batch, calls, ids } = batchOf(fakeClock(), { messageBytes: 100 });
    const many = Array.from({ length: 50 }, (_, at) => `${"é".repeat(at % 7)}${at}`);
    batch.add(many);
    await flush();
    expect(ids()).toEqual([many]);
    expect(calls[0]?.length).toBeGreaterThan(3);
    for (const message of calls[0] ?? []) expect(Buffer.byteLength(message)).toBeLessThanOrEqual(100);
  });

  it("keeps a bounded number of bytes: beyond it, any task may have changed", async () => {
    const { batch, ids, done } = batchOf(fakeClock(), { pendingBytes: 1000 });
    batch.add(Array.from({ length: 10_000 }, (_, at) => `task ${at}`));
    await flush();
    expect(ids()).toEqual([[undefined]]);
    await done();
    batch.add(["x".repeat(1000)]);
    const closed = batch.close();
    await flush();
    await done();
    await closed;
    expect(ids()).toEqual([[undefined], [undefined]]);
  });

  it("drops messages that could not be sent, then says that any task may have changed", async () => {
    const clock = fakeClock();
    const { batch, ids, errors, done } = batchOf(clock);
    batch.add(["lost"]);
    await flush();
    batch.add(["waits"]);
    await done(new Error("no connection"));
    expect(errors).toHaveLength(1);
    clock.advance(1000);
    await flush();
    // The batch does not retry a failed call automatically.
    expect(ids()).toEqual([["lost"]]);
    batch.add(["next"]);
    await flush();
    expect(ids()).toEqual([["lost"], [undefined]]);
    await done();
    batch.add(["by name"]);
    clock.advance(10);
    await flush();
    expect(ids()).toEqual([["lost"], [undefined], ["by name"]]);
  });

  it("says so at once when the connection is back", async () => {
    const clock = fakeClock();
    const { batch, ids, done } = batchOf(clock);
    batch.resume();
    batch.add(["lost"]);
    await flush();
    await done(new Error("no connection"));
    clock.advance(1000);
    batch.resume();
    await flush();
    expect(ids()).toEqual([["lost"], [undefined]]);
    await done();
    clock.advance(1000);
    batch.resume();
    await flush();
    expect(ids()).toHaveLength(2);
  });

  it("sends the rest when it is closed, and nothing later", async () => {
    const { batch, ids, done } = batchOf(fakeClock());
    batch.add(["a"]);
    await flush();
    batch.add(["b"]);
    const closed = batch.close();
    batch.add(["c"]);
    await done();
    await done();
    await closed;
    expect(ids()).toEqual([["a"], ["b"]]);
  });

  it.each(["", "{}", "[]", "[1]", '["node",1]', "null", '["node"', "\u0000"])("ignores the message %j", (message) => {
    expect(batchOf(fakeClock()).batch.read(message)).toBeUndefined();
  });
});
