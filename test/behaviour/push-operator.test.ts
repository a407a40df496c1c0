import type { AuditRecord } from "@parley/a2a/internal/protocol/index";
import { pushOperator, type FeatureEffect, type Store, type TaskKey } from "@parley/server/store";
import { fakeClock } from "@parley/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { parkedFeature, pushFeature, type StoredConfig } from "@parley/server/internal/push/stored";
import { placeOfTest, stores } from "./stores.ts";

/** Tests what an operator can see and do, on the rows that a server has stored (docs/decisions/webhooks.md). */

const clock = fakeClock(1_000_000);
const now = clock.now();
const later = now + 60_000;

const ada: TaskKey = { agent: "/", owner: "ada", taskId: "t" };

const refusal = (seq: number) => ({ at: now - 9, reason: "It answered 400.", status: 400, seq, sequence: seq });

function config(more: Partial<StoredConfig> = {}): StoredConfig {
  const url = "https://user:pass@hooks.example/a/b?key=secret#part";
  return {
    url,
    version: "1.0",
    sealed: "sealed",
    created: 0,
    nonce: "n",
    cursor: 4,
    sequence: 3,
    delivered: 2,
    ...more,
  };
}

interface Row {
  readonly task?: TaskKey;
  readonly feature?: string;
  readonly due?: number;
  readonly config?: StoredConfig;
}

function set(id: string, { feature = pushFeature, due, config: value = config() }: Row): FeatureEffect {
  const row = { effect: "feature", op: "set", feature, key: id, value: JSON.stringify(value) } as const;
  return due === undefined ? row : { ...row, due };
}

async function store(made: Store, task: TaskKey, effects: readonly FeatureEffect[]): Promise<void> {
  const state = "TASK_STATE_WORKING";
  const json = JSON.stringify({ id: task.taskId, contextId: "c", status: { state } });
  const first = { kind: "task", state, json, time: 1, actor: "user", turn: 1, attempt: 1 } as const;
  const isNew = (await made.head(task, task.taskId)) === undefined;
  const item = { task, records: isNew ? [first] : [], effects, ...(isNew && { create: { contextId: "c" } }) };
  expect(await made.append([item])).toMatchObject([{ ok: true }]);
}

/** Reads a task's rows as a server does. */
async function rows(made: Store, task = ada): Promise<unknown> {
  const read = async (feature: string) =>
    (await made.features(task, task.taskId, feature)).map(({ value, ...row }) => ({
      ...row,
      config: JSON.parse(value) as unknown,
    }));
  return { push: await read(pushFeature), parked: await read(parkedFeature) };
}

describe.each(stores)("the operator of a store (%s)", (kind) => {
  async function given(configs: Readonly<Record<string, Row>> = {}) {
    const made = await (await placeOfTest(kind)).open();
    onTestFinished(() => made.close());
    for (const [id, row] of Object.entries(configs)) await store(made, row.task ?? ada, [set(id, row)]);
    return { made, operator: pushOperator(made, { clock }) };
  }

  it("lists the webhooks of every agent and owner: those that are due, then those that are parked", async () => {
    const bob = { agent: "/other", owner: "bob", taskId: "u" };
    const { operator } = await given({
      idle: {},
      waits: {
        due: later,
        config: config({ attempts: 2, problem: { at: now - 5, reason: "It answered 500.", status: 500 } }),
      },
      claimed: { due: now + 1, config: config({ claim: "x" }) },
      abandoned: { due: now, config: config({ claim: "x" }) },
      foreign: { task: bob, due: now - 1 },
      parked: { feature: parkedFeature, due: now - 50, config: config({ attempts: 10 }) },
    });
    const list = async (query?: Parameters<typeof operator.list>[0]) =>
      (await operator.list(query)).map(({ configId, state }) => `${configId} ${state}`);
    const due = ["foreign due", "abandoned due", "claimed delivering", "waits due"];
    expect(await list()).toEqual([...due, "parked parked"]);
    expect(await list({ state: "due" })).toEqual(due);
    expect(await list({ state: "parked" })).toEqual(["parked parked"]);
    expect(await list({ agent: "/other" })).toEqual(["foreign due"]);
    expect(await list({ agent: "/none" })).toEqual([]);
    expect(await list({ limit: 2 })).toEqual(due.slice(0, 2));
    expect(await list({ limit: 4 })).toEqual(due);
    for (const limit of [0, -1, 1.5, 1001, Number.NaN, Infinity]) {
      await expect(operator.list({ limit })).rejects.toMatchObject({ code: "InvalidParams" });
    }
    expect(await operator.show("/", "t")).toEqual([
      { ...shown("idle"), state: "idle" },
      {
        ...shown("waits"),
        state: "due",
        due: later,
        attempts: 2,
        problem: { at: now - 5, reason: "It answered 500.", status: 500 },
      },
      { ...shown("claimed"), state: "delivering", due: now + 1 },
      { ...shown("abandoned"), state: "due", due: now },
      { ...shown("parked"), state: "parked", due: now - 50, attempts: 10 },
    ]);
    expect(await operator.show("/", "none")).toEqual([]);
    expect(await operator.show("/other", "t")).toEqual([]);
  });

  it("shows no secret: only origin and path of a URL, and no sealed value", async () => {
    const { operator } = await given({ a: { config: config({ scheme: "Bearer" }) } });
    const text = JSON.stringify([await operator.show("/", "t"), await operator.list()]);
    for (const secret of ["secret", "user", "pass", "sealed", "part", '"n"']) expect(text).not.toContain(secret);
    expect(text).toContain('"url":"https://hooks.example/a/b"');
  });

  it("starts a parked webhook again where it stopped, with all its attempts, in one step", async () => {
    const problem = { at: now - 5, reason: "It answered 500.", status: 500 };
    const { made, operator } = await given({
      a: { feature: parkedFeature, due: now - 50, config: config({ attempts: 10, problem }) },
    });
    expect(await operator.retry("/", "t", "a")).toBe(true);
    expect(await rows(made)).toEqual({ push: [{ key: "a", due: now, config: config({ problem }) }], parked: [] });
    expect((await operator.list()).map(({ state }) => state)).toEqual(["due"]);
  });

  it("retries a waiting webhook at once, and leaves one that has nothing to deliver", async () => {
    const { made, operator } = await given({
      waits: { due: later, config: config({ attempts: 2 }) },
      idle: {},
      over: { due: now - 1 },
    });
    for (const id of ["waits", "idle", "over"]) expect(await operator.retry("/", "t", id)).toBe(true);
    expect(await rows(made)).toEqual({
      push: [
        { key: "waits", due: now, config: config({ attempts: 2 }) },
        { key: "idle", config: config() },
        { key: "over", due: now - 1, config: config() },
      ],
      parked: [],
    });
    expect(await operator.retry("/", "t", "none")).toBe(false);
    const records: AuditRecord[] = [];
    const audited = pushOperator(made, { audit: (record) => records.push(record), by: "root" });
    expect(await audited.retry("/", "t", "waits")).toBe(true);
    expect(await audited.drop("/", "t", "none")).toBe(false);
    const act = {
      event: "administration",
      subject: "root",
      agent: "/",
      taskId: "t",
      contextId: "c",
      time: expect.any(Number) as number,
    };
    expect(records).toEqual([
      { ...act, action: "push.retry", outcome: "success" },
      { ...act, action: "push.drop", outcome: "failed" },
    ]);
    expect(await operator.retry("/", "none", "waits")).toBe(false);
    expect(await operator.retry("/other", "t", "waits")).toBe(false);
  });

  it("does not disturb a delivery: the claim and its end stay as they are", async () => {
    const claimed = config({ claim: "x", refused: [refusal(2), refusal(3)] });
    const { made, operator } = await given({ a: { due: later, config: claimed } });
    expect(await operator.retry("/", "t", "a")).toBe(true);
    expect(await rows(made)).toEqual({ push: [{ key: "a", due: later, config: claimed }], parked: [] });
    expect(await operator.retry("/", "t", "a", { seq: 3 })).toBe(true);
    expect(await operator.retry("/", "t", "a", { seq: 3 })).toBe(true);
    expect(await operator.retry("/", "t", "a", { seq: 2 })).toBe(true);
    expect(await rows(made)).toEqual({
      push: [{ key: "a", due: later, config: { ...claimed, again: [3, 2] } }],
      parked: [],
    });
    expect(await operator.drop("/", "t", "a", { seq: 3 })).toBe(true);
    const left = { ...claimed, refused: [refusal(2)], again: [2] };
    expect(await rows(made)).toEqual({ push: [{ key: "a", due: later, config: left }], parked: [] });
  });

  it("delivers a rejected event once more, also of a webhook that is idle or parked", async () => {
    const refused = [refusal(2)];
    const { made, operator } = await given({
      idle: { config: config({ refused }) },
      waits: { due: later, config: config({ refused, attempts: 1 }) },
      parked: { feature: parkedFeature, due: now - 50, config: config({ refused, attempts: 4 }) },
    });
    for (const id of ["idle", "waits", "parked"]) {
      expect(await operator.retry("/", "t", id, { seq: 9 })).toBe(false);
      expect(await operator.retry("/", "t", id, { seq: 2 })).toBe(true);
    }
    expect(await rows(made)).toEqual({
      push: [
        { key: "idle", due: now, config: config({ refused, again: [2] }) },
        { key: "waits", due: now, config: config({ refused, attempts: 1, again: [2] }) },
        { key: "parked", due: now, config: config({ refused, again: [2] }) },
      ],
      parked: [],
    });
  });

  it("drops a webhook in every state, or one of its rejected events", async () => {
    const { made, operator } = await given({
      idle: {},
      claimed: { due: later, config: config({ claim: "x" }) },
      parked: { feature: parkedFeature, due: now, config: config({ refused: [refusal(2), refusal(3)] }) },
    });
    expect(await operator.drop("/", "t", "parked", { seq: 9 })).toBe(false);
    expect(await operator.drop("/", "t", "parked", { seq: 2 })).toBe(true);
    expect(await operator.drop("/", "t", "parked", { seq: 3 })).toBe(true);
    expect(await rows(made)).toMatchObject({ parked: [{ key: "parked", due: now, config: config() }] });
    for (const id of ["idle", "claimed", "parked"]) {
      expect(await operator.drop("/", "t", id)).toBe(true);
      expect(await operator.drop("/", "t", id)).toBe(false);
    }
    expect(await rows(made)).toEqual({ push: [], parked: [] });
  });

  it("applies a change to a row that a server has changed meanwhile", async () => {
    const { made } = await given({ a: { due: later, config: config({ refused: [refusal(2)] }) } });
    const claimed = config({ cursor: 5, claim: "x", refused: [refusal(2)] });
    let first = true;
    const operator = pushOperator(
      {
        head: (scope, id) => made.head(scope, id),
        features: (scope, id, feature) => made.features(scope, id, feature),
        dueFeatures: (query) => made.dueFeatures(query),
        async append(items) {
          if (first) await store(made, ada, [set("a", { due: later, config: claimed })]);
          first = false;
          return made.append(items);
        },
      },
      { clock },
    );
    expect(await operator.retry("/", "t", "a", { seq: 2 })).toBe(true);
    expect(await rows(made)).toMatchObject({ push: [{ due: later, config: { ...claimed, again: [2] } }] });
  });

  it("stops at a row that changes on each attempt, instead of retrying without end", async () => {
    const { made } = await given({ a: { due: later } });
    let changes = 0;
    const operator = pushOperator(
      {
        head: (scope, id) => made.head(scope, id),
        features: (scope, id, feature) => made.features(scope, id, feature),
        dueFeatures: (query) => made.dueFeatures(query),
        async append(items) {
          await store(made, ada, [set("a", { due: later, config: config({ cursor: (changes += 1) }) })]);
          return made.append(items);
        },
      },
      { clock },
    );
    await expect(operator.retry("/", "t", "a")).rejects.toMatchObject({ code: "Unavailable" });
    // An operator can drop a webhook nevertheless.
    expect(await operator.drop("/", "t", "a")).toBe(true);
  });
});

function shown(configId: string): object {
  const url = "https://hooks.example/a/b";
  return { task: ada, configId, url, version: "1.0", delivered: 2, cursor: 4, attempts: 0, refused: [] };
}
