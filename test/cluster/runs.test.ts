import { describe, expect, onTestFinished, test, vi } from "vitest";
import { postgresStore, type PostgresStoreOptions } from "@parley/sql/postgres";
import { defineAgent } from "@parley/server/internal/agent/index";
import type { Turn } from "@parley/a2a/internal/protocol/index";
import type { EngineOptions } from "@parley/server/internal/engine/index";
import { queueFeature, type Store, type TaskAppend } from "@parley/server/internal/store/index";
import { callContext, inProcess } from "@parley/testing";
import { useDatabase } from "../postgres/database.ts";
import { figure } from "./node-process.ts";

/* Tests engines on one PostgreSQL, each with its own connections, like nodes behind a simple load balancer (A2A 1.0 §3.1). */

const database = useDatabase();
let schemas = 0;
const newSchema = (): string => `runs_${(schemas += 1)}`;

interface NodeOptions {
  readonly engine?: Partial<EngineOptions>;
  readonly store?: Partial<PostgresStoreOptions>;
  readonly change?: (store: Store) => void;
}

/** Starts a node, and returns the calls of its clients. */
async function node(schema: string, onMessage: (turn: Turn) => AsyncGenerator, options: NodeOptions = {}) {
  const store = await postgresStore({ database: database().url, schema, ...options.store });
  options.change?.(store);
  const agent = defineAgent({
    name: "test",
    description: "a test",
    version: "1",
    skills: [],
    resumable: true,
    onMessage: onMessage as never,
  });
  const made = inProcess(agent, { store, ownerOf: ({ subject }) => subject, ...options.engine });
  const close = async (): Promise<void> => {
    await made.engine.close();
    await store.close();
  };
  onTestFinished(close);
  const { service } = made;
  return {
    ...made,
    store,
    close,
    async send(text: string, subject = "ada", taskId?: string, returnImmediately = true) {
      const message = {
        messageId: crypto.randomUUID(),
        role: "ROLE_USER" as const,
        parts: [{ text }],
        ...(taskId !== undefined && { taskId }),
      };
      const request = { message, configuration: { returnImmediately } };
      const { task } = (await service.call("SendMessage", request, callContext({ subject }))).payload.value;
      if (task === undefined) throw new Error("Expected a task");
      return task;
    },
    get: async (id: string, subject = "ada") =>
      (await service.call("GetTask", { id }, callContext({ subject }))).payload.value,
    cancel: async (id: string, subject = "ada") =>
      (await service.call("CancelTask", { id }, callContext({ subject }))).payload.value,
  };
}

/** Waits until the check passes. */
const until = (check: () => unknown): Promise<void> =>
  vi.waitFor(() => expect(check()).toBe(true), { timeout: 60_000, interval: 2 });

const percentile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;

describe("a cancel at another node than the one that runs the task (A2A 1.0 §3.1.5)", () => {
  test("reaches 40 silent runs in milliseconds, by a wake-up and not by a heartbeat", async () => {
    const schema = newSchema();
    const aborted = new Map<string, number>();
    async function* silent(turn: Turn) {
      turn.signal.addEventListener("abort", () => aborted.set(turn.taskId, performance.now()));
      yield turn.working();
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    }
    // The node does not poll, and renews no lease, so it learns of the cancel only by a wake-up.
    const options = { store: { pollInterval: 3_600_000 }, engine: { lease: { ttl: 3_600_000 } } } as const;
    const [a, b] = await Promise.all([node(schema, silent, options), node(schema, silent, options)]);
    const ids = await Promise.all(Array.from({ length: 40 }, async () => (await a.send("go")).id));
    const took: number[] = [];
    for (const id of ids) {
      const began = performance.now();
      expect((await b.cancel(id)).status.state).toBe("TASK_STATE_CANCELED");
      await until(() => aborted.has(id));
      took.push((aborted.get(id) ?? NaN) - began);
    }
    took.sort((one, other) => one - other);
    expect(aborted.size).toBe(40);
    // This takes milliseconds on an idle machine (docs/postgres.md).
    figure(`a cancel: p50 ${percentile(took, 0.5).toFixed(1)} ms, p99 ${percentile(took, 0.99).toFixed(1)} ms`);
  });

  test("takes precedence over a stream at full speed: nothing follows it in the log, and the run ends without any wake-up", async () => {
    const schema = newSchema();
    let ended = 0;
    async function* fast(turn: Turn) {
      try {
        for (let n = 0; ; n += 1) {
          yield turn.artifact({ artifactId: `${n}`, parts: [{ text: "x" }] });
          if (n % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
        }
      } finally {
        ended += 1;
      }
    }
    const options = { store: { wakeup: false, pollInterval: 3_600_000 } } as const;
    const [a, b] = await Promise.all([node(schema, fast, options), node(schema, fast, options)]);
    const ids = await Promise.all(Array.from({ length: 8 }, async () => (await a.send("go")).id));
    await Promise.all(ids.map((id) => b.cancel(id)));
    await until(() => ended === ids.length);
    for (const id of ids) {
      const head = await b.store.head({ agent: "agent" }, id);
      const page = await b.store.read({ agent: "agent" }, id, { after: (head?.seq ?? 0) - 1, limit: 10 });
      expect(page?.records.map(({ state }) => state)).toEqual(["TASK_STATE_CANCELED"]);
    }
  });

  test("reaches its run with the next poll, if every wake-up is lost", async () => {
    const schema = newSchema();
    const aborted: string[] = [];
    async function* silent(turn: Turn) {
      yield turn.working();
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      aborted.push(turn.taskId);
    }
    const options = { store: { wakeup: false, pollInterval: 50 } } as const;
    const [a, b] = await Promise.all([node(schema, silent, options), node(schema, silent, options)]);
    const ids = await Promise.all(Array.from({ length: 20 }, async () => (await a.send("go")).id));
    for (const id of ids.slice(0, 10)) await b.cancel(id);
    await until(() => aborted.length === 10);
    expect(aborted.sort()).toEqual(ids.slice(0, 10).sort());
    // The other tasks continue.
    expect((await b.get(ids[15] ?? "")).status.state).toBe("TASK_STATE_WORKING");
  });
});

describe("messages for a task that another node runs (A2A 1.0 §3.4.3)", () => {
  test("reach its run, each once, in order, whichever node takes them", async () => {
    const schema = newSchema();
    const turns = new Map<string, string[]>();
    const gates = new Map<string, () => void>();
    const works = (name: string) =>
      async function* work(turn: Turn) {
        turns.set(turn.taskId, [...(turns.get(turn.taskId) ?? []), `${name} ${turn.text}`]);
        yield turn.working();
        if (turn.number === 1) await new Promise<void>((resolve) => gates.set(turn.taskId, resolve));
        yield turn.artifact({ artifactId: turn.text, parts: [{ text: turn.text }] });
      };
    const nodes = await Promise.all(["a", "b", "c"].map((name) => node(schema, works(name))));
    const [a, b, c] = nodes as [(typeof nodes)[0], (typeof nodes)[0], (typeof nodes)[0]];
    const ids = await Promise.all(Array.from({ length: 30 }, async () => (await a.send("0")).id));
    await until(() => gates.size === ids.length);
    await Promise.all(
      ids.map(async (id) => {
        for (const [at, other] of [b, c, b].entries()) await other.send(String(at + 1), "ada", id);
      }),
    );
    const waiting = ids.map((id) => c.send("4", "ada", id, false));
    const isThere = async (): Promise<void> => {
      for (const id of ids) expect((await b.get(id)).history).toHaveLength(5);
    };
    await vi.waitFor(isThere, { timeout: 60_000, interval: 20 });
    for (const open of gates.values()) open();
    for (const task of await Promise.all(waiting)) expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    for (const id of ids) {
      expect(turns.get(id)).toEqual(["a 0", "a 1", "a 2", "a 3", "a 4"]);
      expect((await b.get(id)).artifacts?.map(({ artifactId }) => artifactId)).toEqual(["0", "1", "2", "3", "4"]);
    }
  });
});

describe("the leases of a node with 1,000 runs", () => {
  test("cost one statement for each heartbeat, and no append", async () => {
    const schema = newSchema();
    let appended = 0;
    let beats = 0;
    async function* hold(turn: Turn) {
      yield turn.working();
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    }
    const a = await node(schema, hold, {
      change(store) {
        const { append, nodes } = store;
        store.append = (items) => ((appended += items.length), append.call(store, items));
        if (nodes !== undefined) {
          const { beat } = nodes;
          Object.assign(nodes, { beat: (name: string) => ((beats += 1), beat(name)) });
        }
      },
      engine: { lease: { ttl: 1_600 } },
    });
    await Promise.all(Array.from({ length: 1_000 }, () => a.send("go")));
    [appended, beats] = [0, 0];
    await until(() => beats >= 5);
    expect(appended).toBe(0);
    const [beating, renewing] = [await timed(() => a.store.nodes?.beat("x")), await timed(() => renewAll(a.store))];
    figure(`a heartbeat: ${beating.toFixed(1)} ms; 1,000 renewals: ${renewing.toFixed(0)} ms`);
    expect([...(await a.store.claimable({ now: Infinity, agents: ["agent"], limit: 2_000 })).heads]).toHaveLength(
      1_000,
    );
  });
});

describe("tasks in the queue of several nodes", () => {
  test("begin in order, alternating by owner, at whichever node has capacity, with two runs at each", async () => {
    const schema = newSchema();
    const begun: string[] = [];
    const ends: (() => void)[] = [];
    let running = 0;
    const most = new Map<string, number>();
    const now = new Map<string, number>();
    const works = (name: string) =>
      async function* work(turn: Turn) {
        begun.push(turn.text);
        running += 1;
        now.set(name, (now.get(name) ?? 0) + 1);
        most.set(name, Math.max(most.get(name) ?? 0, now.get(name) ?? 0));
        yield turn.working();
        await new Promise<void>((resolve) => ends.push(resolve));
        running -= 1;
        now.set(name, (now.get(name) ?? 0) - 1);
        yield turn.artifact({ parts: [{ text: name }] });
      };
    // Polls are a minute apart, so no node polls during the test.
    const options = { engine: { limits: { runs: 2 }, pollInterval: 60_000 } };
    const nodes = await Promise.all(["a", "b", "c"].map((name) => node(schema, works(name), options)));
    const [a, b] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
    const sent: string[] = [];
    // Six turns begin, on three nodes, although one node takes all messages, because the other nodes learn that messages wait.
    for (let at = 0; at < 30; at += 1) sent.push((await a.send(`ada ${at}`)).id);
    await until(() => running === 6);
    for (let at = 0; at < 3; at += 1) sent.push((await b.send(`bob ${at}`, "bob")).id);
    const before = begun.length;
    const order: string[] = [];
    while (order.length < 6) {
      ends.shift()?.();
      await until(() => begun.length === before + order.length + 1);
      order.push(begun.at(-1) ?? "");
    }
    expect(order.slice(0, 2)).toContain("bob 0");
    expect(order.filter((text) => text.startsWith("bob"))).toEqual(["bob 0", "bob 1", "bob 2"]);
    expect(order.filter((text) => text.startsWith("ada"))).toEqual(["ada 6", "ada 7", "ada 8"]);
    const stop = setInterval(() => ends.splice(0).forEach((end) => end()), 1);
    await until(() => begun.length === 33 && running === 0);
    clearInterval(stop);
    expect(new Set(begun).size).toBe(33);
    expect(Math.max(...most.values())).toBe(2);
    expect(most.size).toBe(3);
  });

  test("10,000 of one owner delay the first task of another by one place, and cost a node no memory", async () => {
    const schema = newSchema();
    const begun: string[] = [];
    const ends: (() => void)[] = [];
    async function* hold(turn: Turn) {
      begun.push(turn.text);
      yield turn.working();
      await new Promise<void>((resolve) => ends.push(resolve));
      yield turn.artifact({ parts: [{ text: "done" }] });
    }
    const filled = await postgresStore({ database: database().url, schema });
    for (let from = 1; from < 10_000; from += 2_000) {
      await filled.append(Array.from({ length: 2_000 }, (_, at) => queued("ada", `ada ${from + at}`, from + at)));
    }
    await filled.close();
    const options = { engine: { limits: { runs: 1 } } };
    const [a, b] = await Promise.all([node(schema, hold, options), node(schema, hold, options)]);
    await until(() => begun.length === 2);
    await b.send("bob 1", "bob");
    await a.send("ada 10001");
    for (let count = 3; count <= 5; count += 1) {
      ends.shift()?.();
      await until(() => begun.length === count);
    }
    expect(begun.slice(0, 2).sort()).toEqual(["ada 1", "ada 2"]);
    expect(begun.slice(2)).toEqual(["ada 3", "bob 1", "ada 4"]);
    const rows = await a.store.dueFeatures({
      feature: queueFeature,
      agents: ["agent"],
      now: Number.MAX_SAFE_INTEGER,
      limit: 20_000,
    });
    expect(rows).toHaveLength(9_997);
    expect(rows.at(-1)?.due).toBe(10_001);
  });
});

/** Returns a queued task, as a node stores it. */
function queued(owner: string, text: string, due: number): TaskAppend {
  const state = "TASK_STATE_SUBMITTED";
  const time = Date.now() - 60_000 + due;
  const status = { state, timestamp: new Date(time).toISOString() };
  const message = { messageId: text, role: "ROLE_USER", parts: [{ text }] };
  const call = { principal: { subject: owner }, version: "1.0", extensions: [], acceptedOutputModes: [] };
  return {
    task: { agent: "agent", owner, taskId: text },
    create: { contextId: text },
    records: [
      {
        kind: "task",
        json: JSON.stringify({ id: text, contextId: text, status, history: [message] }),
        call: JSON.stringify(call),
        state,
        time,
        turn: 1,
        attempt: 1,
        actor: "user",
      },
    ],
    effects: [{ effect: "feature", op: "set", feature: queueFeature, key: "run", value: `{"turn":1,"input":1}`, due }],
  };
}

async function timed(work: () => unknown): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** Runs the statement that heartbeats have replaced. */
async function renewAll(store: Store): Promise<void> {
  const { heads } = await store.claimable({ now: Infinity, agents: ["agent"], limit: 2_000 });
  const items = heads.map(({ task, fence, leaseUntil = 0 }): TaskAppend => {
    const effects = [{ effect: "lease", op: "renew", until: leaseUntil + 1 }] as const;
    return { task, fence, records: [], effects };
  });
  for (let at = 0; at < items.length; at += 128) await store.append(items.slice(at, at + 128));
}
