import {
  delegationFeature,
  operatorBounds,
  type AuditedAct,
  type OperatorQuery,
  type StandingOrder,
  type StoreOperators,
} from "@parley/server/internal/store/index";
import type { TaskState } from "@parley/a2a/internal/model/index";
import {
  alice,
  append,
  bob,
  codeOf,
  completed,
  headOf,
  key,
  making,
  status,
  type Case,
  type Cases,
  type Given,
} from "./given.ts";

/** Optional: operators' queries over all tasks, their orders, and the audit log of their acts. */

/** A case for stores with `operators`. Passes without them. */
function operating(body: (given: Given & { readonly operators: StoreOperators }) => Promise<void>): Case {
  return async (given) => {
    const { operators } = given.store;
    if (operators !== undefined) await body({ ...given, operators });
  };
}

const other = { agent: "other \u0000\ud800", owner: "alice" } as const;
const [working, failed] = ["TASK_STATE_WORKING", "TASK_STATE_FAILED"] as const;

/** Creates tasks of several owners and agents, in several states, some with equal times. */
async function many({ store }: Given, count: number): Promise<void> {
  const states: readonly TaskState[] = ["TASK_STATE_SUBMITTED", working, failed, "TASK_STATE_COMPLETED"];
  const owners = [alice, bob, other];
  for (let at = 0; at < count; at += 1) {
    const [owner, state] = [owners[at % 3] ?? alice, states[at % 4] ?? working];
    const time = 1_000 + Math.floor(at / 5);
    const contextId = `of ${at}`;
    const records = [...making(`t${at}`, { time, owner, contextId }).records];
    if (state !== "TASK_STATE_SUBMITTED") records.push(status(`t${at}`, state, { time, contextId }));
    await append(store, { task: key(`t${at}`, owner), create: { contextId }, records });
  }
}

type Filter = Omit<OperatorQuery, "limit" | "after">;

/** The ids from all pages. */
async function listed(operators: StoreOperators, filter: Filter, limit: number): Promise<readonly string[]> {
  const found: string[] = [];
  for (let after: OperatorQuery["after"]; ;) {
    const page = await operators.tasks({ ...filter, limit, ...(after && { after }) });
    if (page.heads.length > limit) throw new Error(`a page has ${page.heads.length} tasks; the limit is ${limit}`);
    found.push(...page.heads.map(({ task }) => task.taskId));
    if (page.next === undefined) return found;
    after = page.next;
  }
}

const act = (subject: string, text: string, time = 5): AuditedAct => ({
  subject,
  json: JSON.stringify({ text }),
  time,
});

async function textsOf(operators: StoreOperators, subject?: string): Promise<readonly unknown[]> {
  const acts = await operators.acts({ limit: 10, ...(subject !== undefined && { subject }) });
  return acts.map(({ json }) => (JSON.parse(json) as { readonly text: string }).text);
}

const named = (orders: readonly StandingOrder[]): readonly string[] => orders.map(({ name }) => name);

export const operatorCases: Cases = {
  "tasks of all owners are listed by time, each once, in pages": operating(async (given) => {
    const { operators, expect } = given;
    await many(given, 41);
    const all = await listed(operators, { order: "oldest" }, 100);
    expect(all).toEqual(Array.from({ length: 41 }, (_, at) => `t${at}`));
    for (const limit of [1, 3, 40, 41]) {
      expect(await listed(operators, { order: "oldest" }, limit)).toEqual(all);
      expect(await listed(operators, { order: "newest" }, limit)).toEqual(all.toReversed());
    }
  }),

  "tasks are listed by agent, owner, state and age": operating(async (given) => {
    const { operators, expect } = given;
    await many(given, 40);
    const numbers = Array.from({ length: 40 }, (_, at) => at);
    const wanted = (fits: (at: number) => boolean): readonly string[] => numbers.filter(fits).map((at) => `t${at}`);
    const found = (filter: Omit<Filter, "order">) => listed(operators, { order: "oldest", ...filter }, 3);
    expect(await found({ agent: other.agent })).toEqual(wanted((at) => at % 3 === 2));
    expect(await found({ owner: "bob" })).toEqual(wanted((at) => at % 3 === 1));
    expect(await found({ owner: "alice" })).toEqual(wanted((at) => at % 3 !== 1));
    expect(await found({ agent: other.agent, owner: "alice" })).toEqual(wanted((at) => at % 3 === 2));
    expect(await found({ states: [working, failed] })).toEqual(wanted((at) => at % 4 === 1 || at % 4 === 2));
    expect(await found({ states: [] })).toEqual([]);
    expect(await found({ since: 1_002, before: 1_004 })).toEqual(wanted((at) => at >= 10 && at < 20));
    expect(await found({ since: 1_001.5, before: 1_001.6 })).toEqual([]);
    expect(await found({ agent: "nobody" })).toEqual([]);
    const newest = { order: "newest", agent: "agent", states: [failed], before: 1_006 } as const;
    expect(await listed(operators, newest, 2)).toEqual(
      wanted((at) => at % 3 < 2 && at % 4 === 2 && at < 30).toReversed(),
    );
  }),

  "a page has the heads of its tasks, says which have an open delegation, and the next page is correct after its last task changes":
    operating(async (given) => {
      const { operators, store, expect } = given;
      await many(given, 9);
      const set = { effect: "feature", op: "set", feature: delegationFeature, key: "a", value: "1" } as const;
      await append(store, { task: key("t0"), records: [], effects: [set, { ...set, key: "b" }] });
      await append(store, { task: key("t2", other), records: [], effects: [{ ...set, feature: "f" }] });
      const first = await operators.tasks({ order: "oldest", limit: 3 });
      const { checkpoint: _, taskState: __, ...head } = await headOf(store, key("t0"));
      expect(first.heads[0]).toEqual({ ...head, delegates: true });
      expect(first.heads.map(({ delegates }) => delegates)).toEqual([true, undefined, undefined]);
      await append(store, { task: key("t2", other), records: [], effects: [{ effect: "lease", op: "revoke" }] });
      await append(store, { task: key("t0"), records: [completed("t0", { time: 9_000, contextId: "of 0" })] });
      const after = first.next;
      const rest = await operators.tasks({ order: "oldest", limit: 99, ...(after && { after }) });
      expect(rest.heads.map(({ task }) => task.taskId)).toEqual(["t3", "t4", "t5", "t6", "t7", "t8", "t0"]);
    }),

  "tasks are counted exactly, by agent and state": operating(async (given) => {
    const { operators, store, expect } = given;
    expect(await operators.counts(10)).toEqual([]);
    await many(given, 24);
    const each = { TASK_STATE_SUBMITTED: 2, TASK_STATE_WORKING: 2, TASK_STATE_FAILED: 2, TASK_STATE_COMPLETED: 2 };
    const both = { TASK_STATE_SUBMITTED: 4, TASK_STATE_WORKING: 4, TASK_STATE_FAILED: 4, TASK_STATE_COMPLETED: 4 };
    expect(await operators.counts(10)).toEqual([
      { agent: "agent", states: both },
      { agent: other.agent, states: each },
    ]);
    expect(await operators.counts(1)).toEqual([{ agent: "agent", states: both }]);
    await append(store, { task: key("t1", bob), records: [completed("t1", { contextId: "of 1" })] });
    const [first] = await operators.counts(1);
    expect(first?.states).toEqual({ ...both, TASK_STATE_WORKING: 3, TASK_STATE_COMPLETED: 5 });
  }),

  "an order stays until it is withdrawn, and changes only from the value that was read": operating(
    async ({ operators, expect }) => {
      const name = `pause ${"ä".repeat(900)}\u0000`;
      const set = (value: string | null, before: string | null) =>
        operators.change({ order: { name, value, if: before } });
      expect(await operators.orders()).toEqual([]);
      expect(await set(null, null)).toEqual(true);
      expect(await set('{"a":1}', "1")).toEqual(false);
      expect(await set('{"a":1}', null)).toEqual(true);
      expect(await set('{"a":2}', null)).toEqual(false);
      expect(await set('{"a":2}', '{"a":1}')).toEqual(true);
      expect(await operators.change({ order: { name: "drain", value: "1", if: null } })).toEqual(true);
      expect(await operators.orders()).toEqual([
        { name: "drain", value: "1" },
        { name, value: '{"a":2}' },
      ]);
      expect(await set(null, '{"a":1}')).toEqual(false);
      expect(await set(null, '{"a":2}')).toEqual(true);
      expect(named(await operators.orders())).toEqual(["drain"]);
    },
  ),

  "an act on a task is stored atomically with the task's change": operating(async ({ operators, store, expect }) => {
    await append(store, making("t"));
    const effects = [{ effect: "act", ...act("task t", "cancel") }] as const;
    expect((await append(store, { task: key("t"), expect: 9, records: [], effects })).ok).toEqual(false);
    expect(await operators.acts({ limit: 10 })).toEqual([]);
    expect((await append(store, { task: key("t"), expect: 1, records: [], effects })).ok).toEqual(true);
    const [stored] = await operators.acts({ limit: 10 });
    expect({ ...stored, number: 1 }).toEqual({ number: 1, ...act("task t", "cancel") });
  }),

  "an act without a task is stored atomically with its order": operating(async ({ operators, expect }) => {
    const order = (value: string | null, before: string | null, text: string) =>
      operators.change({ order: { name: "pause", value, if: before }, act: act("pause", text, 1.5) });
    expect(await order("1", null, "first")).toEqual(true);
    expect(await order("2", null, "second")).toEqual(false);
    expect(await order(null, "1", "third")).toEqual(true);
    expect(await operators.change({ act: act("refused", "fourth") })).toEqual(true);
    expect(await textsOf(operators)).toEqual(["fourth", "third", "first"]);
    expect((await operators.acts({ limit: 10, subject: "pause" })).map(({ time }) => time)).toEqual([2, 2]);
  }),

  "acts are listed newest first, in pages, and by subject": operating(async ({ operators, store, expect }) => {
    const long = `task ${"ü".repeat(1_000)}`;
    await append(store, making("t"));
    for (const at of [1, 2, 3, 4, 5]) {
      const next = act(at % 2 === 0 ? long : "a", `${at}`);
      await append(store, { task: key("t"), records: [], effects: [{ effect: "act", ...next }] });
    }
    expect(await textsOf(operators)).toEqual(["5", "4", "3", "2", "1"]);
    expect(await textsOf(operators, long)).toEqual(["4", "2"]);
    expect(await textsOf(operators, "nothing")).toEqual([]);
    const [, second] = await operators.acts({ limit: 2 });
    const next = await operators.acts({ limit: 2, before: second?.number ?? 0 });
    expect(next.map(({ json }) => json)).toEqual(['{"text":"3"}', '{"text":"2"}']);
    expect(next[0]?.subject).toEqual("a");
    expect(next[1]?.subject).toEqual(long);
  }),

  "malformed acts and orders are rejected before anything is stored": operating(
    async ({ operators, store, expect }) => {
      await append(store, making("t"));
      const bad: readonly AuditedAct[] = [
        act("", "x"),
        act("x".repeat(operatorBounds.name + 1), "x"),
        { ...act("x", "x"), json: "{" },
        { ...act("x", "x"), json: JSON.stringify("x".repeat(operatorBounds.value)) },
        { ...act("x", "x"), time: Number.NaN },
      ];
      for (const each of bad) {
        expect(await codeOf(() => operators.change({ act: each }))).toEqual("TypeError");
        const effects = [{ effect: "act", ...each }] as const;
        expect(await codeOf(() => append(store, { task: key("t"), records: [], effects }))).toEqual("TypeError");
      }
      const order = { name: "", value: "1", if: null };
      expect(await codeOf(() => operators.change({ order, act: act("x", "x") }))).toEqual("TypeError");
      expect(await operators.acts({ limit: 10 })).toEqual([]);
    },
  ),
};

/** For a store that two processes share. */
export async function sharesOrders({ store, share, expect }: Given): Promise<void> {
  const second = await share?.(store);
  if (second?.operators === undefined || store.operators === undefined) return second?.close();
  try {
    const change = { order: { name: "pause", value: "1", if: null }, act: act("pause", "once") };
    const done = await Promise.all([store.operators, second.operators].map((each) => each.change(change)));
    expect(done.filter(Boolean).length).toEqual(1);
    expect(await second.operators.orders()).toEqual(await store.operators.orders());
    expect(await textsOf(second.operators)).toEqual(["once"]);
  } finally {
    await second.close();
  }
}

/** Orders and acts survive reopening the store. */
export async function ordersStay({ store, reopen, expect }: Given): Promise<void> {
  await store.operators?.change({ order: { name: "pause", value: "1", if: null }, act: act("pause", "x") });
  const again = await reopen?.(store);
  if (again?.operators === undefined) return again?.close();
  expect(await again.operators.orders()).toEqual([{ name: "pause", value: "1" }]);
  expect(await textsOf(again.operators)).toEqual(["x"]);
  await again.close();
}
