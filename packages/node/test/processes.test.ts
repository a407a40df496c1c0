import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { memoryStore, type Store } from "@parley/server";
import { freeRuns } from "@parley/server/store";
import { wakeupContract } from "@parley/testing";
import { wake, type Child } from "../src/processes/calls.ts";
import { Spread } from "../src/processes/spread.ts";
import { anyText, channelWakeup, wakingStore, type WakeupChannel } from "../src/processes/wakeup.ts";

/** Tests the parts of `processes`. Real processes are in test/cluster/processes.test.ts. */

/** Creates channels. A text sent on one channel reaches all other channels, as if a parent process forwarded the text. */
function hub(): () => WakeupChannel {
  const channels = new Map<object, (text: string) => void>();
  return () => {
    const own = {};
    channels.set(own, () => {});
    return {
      isOpen: true,
      async send(text) {
        const others = [...channels].filter(([other]) => other !== own);
        setImmediate(() => {
          for (const [, tell] of others) tell(text);
        });
      },
      listen: (listener) => void channels.set(own, listener),
    };
  };
}

const open = hub();
wakeupContract({ describe, it, expect }, { open: async () => channelWakeup(open()) });

describe("the store of several processes", () => {
  it("tells other processes which tasks have changed and which runs are free, and tells its watchers about theirs", async () => {
    const channel = hub();
    const [own, other] = [channelWakeup(channel()), channelWakeup(channel())];
    const told: (string | undefined)[] = [];
    other.subscribe((taskId) => told.push(taskId));
    const inner = memoryStore();
    const store = wakingStore(inner, own);
    const heard: (string | undefined)[] = [];
    const end = store.watch?.((taskId) => heard.push(taskId));
    const task = { agent: "a", owner: "o", taskId: "t" };
    const json = JSON.stringify({ id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } });
    const record = { kind: "task", state: "TASK_STATE_WORKING", time: 1, actor: "agent", turn: 1, attempt: 1 } as const;
    const run = { effect: "run", run: { turn: 1, attempt: 1, input: 1 } } as const;
    const lease = { effect: "lease", op: "acquire", holder: "h", now: 0, until: 9e12 } as const;
    const [made] = await store.append([
      { task, create: { contextId: "c" }, records: [{ ...record, json }], effects: [run, lease] },
    ]);
    expect(made?.ok).toBe(true);
    await expect.poll(() => told).toEqual(["t"]);
    const fence = made?.ok === true && "fence" in made ? made.fence : 0;
    // A rejected append causes no notification.
    await store.append([{ task: { ...task, taskId: "no" }, records: [], effects: [run] }]);
    await store.append([{ task, fence, records: [], effects: [{ effect: "lease", op: "release" }] }]);
    await expect.poll(() => told).toEqual(["t", "t", freeRuns]);
    other.publish(["theirs"]);
    await expect.poll(() => heard).toEqual(["theirs"]);
    end?.();
    expect(store.durable).toBe(false);
    expect((await store.head(task, "t"))?.task.taskId).toBe("t");
    await store.close();
  });

  it("is left unchanged if it notifies other machines itself", () => {
    const own = channelWakeup(hub()());
    const withWakeup = (isConnected: boolean): Store =>
      Object.assign(memoryStore(), { wakeup: { ...own, isConnected } });
    const [woken, deaf] = [withWakeup(true), withWakeup(false)];
    expect(wakingStore(woken, own)).toBe(woken);
    expect(wakingStore(deaf, own)).not.toBe(deaf);
  });
});

describe("a process that does not read", () => {
  it("gets one wake-up in place of the dropped ones, once it reads: its queue is bounded", () => {
    const sent: { text: string; done: () => void }[] = [];
    const send = ({ text }: { text: string }, done: () => void): void => void sent.push({ text, done });
    const worker = { isConnected: () => true, process: { send } };
    const child = { worker, unread: 0, missed: false } as unknown as Child;
    const text = JSON.stringify(["node", "x".repeat(200_000)]);
    for (let at = 0; at < 100; at += 1) wake(child, text);
    expect(sent).toHaveLength(5);
    expect(child.unread).toBeLessThan(1 << 20);
    for (const { done } of sent.splice(0)) done();
    expect(sent.map((each) => each.text)).toEqual([JSON.stringify(["", null])]);
    sent.pop()?.done();
    wake(child, "next");
    expect(sent.map((each) => each.text)).toEqual(["next"]);
  });

  it("learns that any task may have changed", async () => {
    let tell = (_text: string): void => {};
    const listen = (listener: (text: string) => void): void => void (tell = listener);
    const wakeup = channelWakeup({ isOpen: true, send: async () => {}, listen });
    const told: unknown[] = [];
    wakeup.subscribe((taskId) => told.push(taskId));
    tell(anyText);
    expect(told).toEqual([undefined]);
    await wakeup.close();
  });
});

/** A simulated process that accepts connections. */
class Taker {
  readonly sent: Socket[] = [];
  send(_port: number, socket: Socket): void {
    this.sent.push(socket);
  }
}

describe("the connections of several processes", () => {
  /** Opens connections. Returns the accepted ends and the clients' ends. */
  async function connections(count: number): Promise<{ accepted: Socket[]; clients: Socket[]; close(): void }> {
    const accepted: Socket[] = [];
    const server = createServer({ pauseOnConnect: true }, (socket) => accepted.push(socket)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const clients: Socket[] = [];
    for (let at = 0; at < count; at += 1) {
      clients.push(connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {}));
      await expect.poll(() => accepted).toHaveLength(at + 1);
    }
    return {
      accepted,
      clients,
      close() {
        for (const socket of [...clients, ...accepted]) socket.destroy();
        server.close();
      },
    };
  }

  it("go to the processes in turn, wait while a process is busy, and survive its end", async () => {
    const { accepted, clients, close } = await connections(6);
    const [a, b, c, d, e, f] = accepted as [Socket, Socket, Socket, Socket, Socket, Socket];
    const spread = new Spread<Taker>({ onStuck: () => {} });
    const [one, two] = [new Taker(), new Taker()];
    spread.give(0, a);
    spread.add(one);
    spread.add(two);
    expect(one.sent).toEqual([a]);
    spread.give(0, b);
    spread.give(0, c);
    // Neither process has confirmed its first connection, so neither gets another one.
    expect([one.sent, two.sent]).toEqual([[a], [b]]);
    spread.taken(two);
    expect(two.sent).toEqual([b, c]);
    // If a process ends, another process gets the connections that the ended one has not taken.
    spread.ended(one);
    spread.taken(two);
    expect(two.sent).toEqual([b, c, a]);
    expect(a.destroyed).toBe(false);
    // A removed process keeps the connections that were already sent to it, but gets no further ones.
    spread.remove(two);
    spread.give(0, d);
    spread.taken(two);
    expect(two.sent).toHaveLength(3);
    expect(a.destroyed).toBe(true);
    spread.add(two);
    expect(two.sent.at(-1)).toBe(d);
    spread.give(0, e);
    spread.give(0, f);
    spread.end();
    await expect.poll(() => clients.slice(4).map(({ destroyed }) => destroyed)).toEqual([true, true]);
    close();
  });
});
