import { existsSync, readFileSync, statSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { NewRecord } from "@parley/a2a/internal/model/index";
import type { Store, TaskAppend } from "@parley/server/store";
import { sqliteStore } from "@parley/sql/sqlite";
import { migrate } from "../../src/sqlite/migrations.ts";
import { openDriver } from "./drivers.ts";

const folder = await mkdtemp(join(tmpdir(), "parley-"));
afterAll(() => rm(folder, { recursive: true }));

let files = 0;
function newPath(): string {
  files += 1;
  return join(folder, `${files}.db`);
}

const alice = { agent: "agent", owner: "alice" };
const record = { time: 1000, actor: "agent", turn: 1, attempt: 1 } as const;

function making(taskId: string, text = "hello"): TaskAppend {
  const state = "TASK_STATE_SUBMITTED";
  const history = [{ messageId: taskId, role: "ROLE_USER", parts: [{ text }] }];
  const task = { id: taskId, contextId: "c", status: { state }, history };
  return {
    task: { ...alice, taskId },
    create: { contextId: "c" },
    records: [{ ...record, kind: "task", state, json: JSON.stringify(task) }],
    effects: [{ effect: "once", key: taskId, hash: "h", now: 1 }],
  };
}

function completed(taskId: string): TaskAppend {
  const state = "TASK_STATE_COMPLETED";
  const json = JSON.stringify({ taskId, contextId: "c", status: { state } });
  return { task: { ...alice, taskId }, records: [{ ...record, kind: "statusUpdate", state, json }] };
}

describe("a full disk", () => {
  it("rejects an append that does not fit, stores none of it, still serves reads, and accepts appends once there is room", async () => {
    const store = await sqliteStore({ path: newPath(), maxPages: 210 });
    const stored: string[] = [];
    let refused: unknown;
    for (let number = 1; refused === undefined; number += 1) {
      const ids = [`${number}-a`, `${number}-b`];
      try {
        await store.append([making(ids[0] ?? ""), making(ids[1] ?? "", "x".repeat(30_000)), completed(ids[0] ?? "")]);
        stored.push(...ids);
      } catch (thrown) {
        refused = thrown;
        for (const id of ids) {
          expect(await store.head(alice, id)).toBeUndefined();
          expect(await store.once(alice, id, 1)).toBeUndefined();
        }
      }
    }
    expect(refused).toMatchObject({ code: "Unavailable", cause: { code: "SQLITE_FULL" } });
    expect(String((refused as Error).message)).not.toContain(folder);
    const page = await store.list(alice, { limit: 100, artifacts: true });
    expect(page.total).toBe(stored.length);
    expect(page.tasks.map(({ task }) => task.id).sort()).toEqual([...stored].sort());
    expect((await store.conversation({ ...alice, contextId: "c" }, { limit: 1000 })).entries).toHaveLength(
      stored.length,
    );

    await store.append(stored.filter((id) => id.endsWith("b")).map(completed));
    await store.sweep({ now: 0, deleteBefore: 2000, limit: 100 });
    expect(await store.append([making("after", "x".repeat(30_000))])).toMatchObject([{ ok: true }]);
    await store.close();
  });

  it.each([true, false])(
    "is reported by `check` until its own write succeeds (with a writing thread: %s)",
    async (thread) => {
      const path = newPath();
      const store = await sqliteStore({ path, maxPages: 203, thread });
      expect(await store.check?.()).toEqual({ writable: true });
      let stored = 0;
      const fill = async (): Promise<never> => {
        for (; ; stored += 1) await store.append([making(`${stored}`, "x".repeat(30_000))]);
      };
      await expect(fill()).rejects.toMatchObject({ code: "Unavailable" });
      const full = { writable: false, reason: "The disk of the database is full" };
      expect(await Promise.all([store.check?.(), store.check?.()])).toEqual([full, full]);
      await store.append(Array.from({ length: stored }, (_, id) => completed(`${id}`)));
      // A small write has succeeded, but a large one fails.
      await expect(store.append([making("large", "x".repeat(100_000))])).rejects.toMatchObject({ code: "Unavailable" });
      expect(await store.check?.()).toEqual(full);
      // Another process frees space.
      const other = await sqliteStore({ path, thread: false });
      await other.sweep({ now: 0, deleteBefore: 2000, limit: 100 });
      await other.close();
      expect(await store.check?.()).toEqual({ writable: true });
      expect(await store.append([making("after", "x".repeat(30_000))])).toMatchObject([{ ok: true }]);
      await store.close();
      const left = openDriver(path);
      expect(left.prepare("SELECT count(*) FROM context_states").get()).toEqual([0]);
      left.close();
    },
  );
});

describe("a file that another process uses", () => {
  it("is waited for without blocking the event loop", async () => {
    const path = newPath();
    const store = await sqliteStore({ path });
    const other = openDriver(path);
    other.exec("BEGIN IMMEDIATE");
    let settled = false;
    const append = store.append([making("t")]).finally(() => (settled = true));
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(settled).toBe(false);
    expect(await store.head(alice, "t")).toBeUndefined();
    other.exec("COMMIT");
    expect(await append).toMatchObject([{ ok: true }]);
    other.close();
    await store.close();
  });

  it("is opened once its exclusive user is done, such as a process that creates it at the same time", async () => {
    const path = newPath();
    const other = openDriver(path);
    other.exec("BEGIN EXCLUSIVE");
    let settled = false;
    const opening = sqliteStore({ path }).finally(() => (settled = true));
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    await expect(sqliteStore({ path, busyTimeout: 0 })).rejects.toMatchObject({ code: "Unavailable" });
    expect(settled).toBe(false);
    other.exec("ROLLBACK");
    other.close();
    const store = await opening;
    expect(await store.append([making("t")])).toMatchObject([{ ok: true }]);
    await store.close();
  });

  it("makes a call fail as Unavailable after the timeout, with nothing stored", async () => {
    const path = newPath();
    const store = await sqliteStore({ path, busyTimeout: 20 });
    const other = openDriver(path);
    other.exec("BEGIN IMMEDIATE");
    await expect(store.append([making("t")])).rejects.toMatchObject({
      code: "Unavailable",
      cause: { code: "SQLITE_BUSY" },
    });
    other.exec("ROLLBACK");
    expect(await store.head(alice, "t")).toBeUndefined();
    expect(await store.append([making("t")])).toMatchObject([{ ok: true }]);
    other.close();
    await store.close();
  });

  it.each([true, false])(
    "is free of deleted data once `scrub` resolves, which waits for readers (with a writing thread: %s)",
    async (thread) => {
      const path = newPath();
      const store = await sqliteStore({ path, thread });
      const upkeep = store.upkeep ?? expect.fail("no upkeep");
      await store.append([making("t", "deletedtext"), completed("t")]);
      const written = (): string => ["", "-wal"].map((end) => readFileSync(path + end, "latin1")).join("");
      expect(written()).toContain("deletedtext");
      const other = openDriver(path);
      other.exec("BEGIN");
      other.prepare("SELECT count(*) FROM tasks").get();
      await upkeep.remove(alice, 9);
      await upkeep.forget(alice, 9);
      const before = statSync(`${path}-wal`).size;
      const scrub = upkeep.scrub();
      // The copy is in the log, after the old pages.
      await expect.poll(() => statSync(`${path}-wal`).size).toBeGreaterThan(before);
      other.exec("COMMIT");
      await scrub;
      expect(written()).not.toContain("deletedtext");
      other.close();
      await store.close();
    },
  );

  it("makes `scrub` fail as Unavailable if a reader stays longer than the timeout", async () => {
    const path = newPath();
    const store = await sqliteStore({ path, busyTimeout: 20 });
    const other = openDriver(path);
    await store.append([making("t")]);
    other.exec("BEGIN");
    other.prepare("SELECT count(*) FROM tasks").get();
    await expect(store.upkeep?.scrub()).rejects.toMatchObject({ code: "Unavailable", cause: { code: "SQLITE_BUSY" } });
    other.exec("COMMIT");
    await store.upkeep?.scrub();
    expect(readFileSync(`${path}-wal`)).toHaveLength(0);
    other.close();
    await store.close();
  });

  it("is closed only after the waiting calls", async () => {
    const path = newPath();
    const store = await sqliteStore({ path });
    const other = openDriver(path);
    other.exec("BEGIN IMMEDIATE");
    const append = store.append([making("t")]);
    const close = store.close();
    other.exec("COMMIT");
    expect(await append).toMatchObject([{ ok: true }]);
    await close;
    other.close();
  });

  it("can be written by two stores at once, which see each other's leases and sequence numbers", async () => {
    const path = newPath();
    const [old, young] = await Promise.all([sqliteStore({ path }), sqliteStore({ path })]);
    await old.append([making("t")]);
    const acquire = (holder: string): TaskAppend => ({
      task: { ...alice, taskId: "t" },
      records: [],
      effects: [{ effect: "lease", op: "acquire", holder, now: 1, until: 9 }],
    });
    expect(await old.append([acquire("old")])).toMatchObject([{ ok: true, fence: 1 }]);
    expect(await young.append([acquire("young")])).toMatchObject([{ ok: false, reason: "leased" }]);

    const writers = [old, young].flatMap((store) => Array.from({ length: 25 }, () => store));
    const said: NewRecord = { ...record, kind: "message", json: '{"messageId":"m","role":"ROLE_USER","parts":[]}' };
    const outcomes = await Promise.all(
      writers.map((store) => store.append([{ task: { ...alice, taskId: "t" }, fence: 1, records: [said] }])),
    );
    expect(
      outcomes
        .flat()
        .map((outcome) => outcome.ok && outcome.seq)
        .sort((a, b) => Number(a) - Number(b)),
    ).toEqual(Array.from({ length: 50 }, (_, index) => index + 2));
    for (const store of [old, young]) expect((await store.head(alice, "t"))?.seq).toBe(51);
    await old.close();
    expect((await young.load(alice, "t", { artifacts: true }))?.task.history).toHaveLength(51);
    await young.close();
  });

  it("calls watchers after another process has written", async () => {
    const path = newPath();
    const [one, two] = await Promise.all([
      sqliteStore({ path, watchInterval: 5 }),
      sqliteStore({ path, watchInterval: 5 }),
    ]);
    let tell = (): void => {};
    const told = (): Promise<void> => new Promise((resolve) => (tell = resolve));
    // The first check has nothing to compare with, so it reports a change.
    const first = told();
    const stop = one.watch?.(() => tell());
    await first;
    for (const id of ["t", "u"]) {
      const again = told();
      await two.append([making(id)]);
      await again;
    }
    stop?.();
    await Promise.all([one.close(), two.close()]);
  });
});

describe("a file that cannot be opened", () => {
  async function refusal(
    path: string,
    options: { readonly create?: boolean } = {},
  ): Promise<{ code: unknown; message: string }> {
    try {
      await sqliteStore({ path, ...options });
    } catch (thrown) {
      if (thrown instanceof Error && "code" in thrown) return { code: thrown.code, message: thrown.message };
      throw thrown;
    }
    throw new Error("it was opened");
  }

  it("is rejected if a newer release wrote it, and the error says so", async () => {
    const path = newPath();
    await (await sqliteStore({ path })).close();
    const database = openDriver(path);
    database.exec("INSERT INTO migrations (version) VALUES (999)");
    database.close();
    expect(await refusal(path)).toEqual({
      code: "Unavailable",
      message: expect.stringMatching(/version 999, this release supports version \d+ /) as string,
    });
  });

  it("is not changed with `create: false`, unless it is a database of this version", async () => {
    const missing = newPath();
    expect(await refusal(missing, { create: false })).toMatchObject({ code: "Unavailable" });
    expect(existsSync(missing)).toBe(false);

    const another = newPath();
    const theirs = openDriver(another);
    theirs.exec("CREATE TABLE migrations (name TEXT)");
    theirs.close();
    const before = readFileSync(another);
    expect(await refusal(another, { create: false })).toMatchObject({
      message: "The file is not a Parley database",
    });
    expect(readFileSync(another).equals(before)).toBe(true);

    const own = newPath();
    await (await sqliteStore({ path: own })).close();
    await (await sqliteStore({ path: own, create: false })).close();
    const older = openDriver(own);
    older.exec("DELETE FROM migrations WHERE version > 1");
    older.close();
    expect(await refusal(own, { create: false })).toMatchObject({
      message: expect.stringMatching(/has version 1, and this release has/) as string,
    });
  });

  it("is migrated if an older release wrote it: task sizes are counted, runs found by agent, and feature rows kept", async () => {
    const path = newPath();
    const first = await sqliteStore({ path });
    const lost = { effect: "run", run: { turn: 1, attempt: 1, input: 1 } } as const;
    await first.append([{ ...making("t"), effects: [lost] }, making("u")]);
    const head = await first.head(alice, "t");
    await first.close();
    const database = openDriver(path);
    database.exec(`DELETE FROM migrations WHERE version > 1; ALTER TABLE tasks DROP COLUMN bytes; ALTER TABLE tasks DROP COLUMN run_deaths;
      ALTER TABLE tasks DROP COLUMN run_alone; DROP TABLE features; DROP TABLE task_states;
      DROP TRIGGER search_forgets; DROP TABLE search_gone; DROP TABLE search; DROP TABLE search_tasks;
      DROP TABLE search_texts; DROP TABLE notes; DROP TABLE orders; DROP TABLE acts; DROP INDEX tasks_runs;
      CREATE INDEX tasks_runs ON tasks (lease_until) WHERE run_turn IS NOT NULL`);
    database.close();
    const store = await sqliteStore({ path });
    expect(await store.head(alice, "t")).toEqual(head);
    expect(head?.bytes).toBeGreaterThan(50);
    expect((await store.claimable({ now: 1, agents: ["agent"], limit: 9 })).heads).toEqual([head]);
    const row = { effect: "feature", op: "set", feature: "f", key: "k", value: "1" } as const;
    await store.append([{ task: { ...alice, taskId: "t" }, records: [], effects: [row] }]);
    expect(await store.features(alice, "t", "f")).toEqual([{ key: "k", value: "1" }]);
    await store.close();
  });

  it("is migrated from the version before task states: its data stays, and a state can be stored", async () => {
    const path = newPath();
    const before = openDriver(path);
    migrate(before, 4);
    before.close();
    // A task with a checkpoint, in the tables of that older release.
    const older = openDriver(path);
    older.exec(`INSERT INTO scopes (id, parent, name, is_context, tasks) VALUES (1, 0, 'agent', 0, 1), (2, 1, 'alice', 0, 1), (3, 2, 'ctx', 1, 1);
      INSERT INTO tasks (number, agent, owner, context, id, state, status_time, status_seq, seq, first_seq, generation, fence, run_turn, run_attempt, run_input, has_metadata, bytes)
        VALUES (1, 1, 2, 3, 't', 1, 5, 1, 1, 1, 1, 3, 1, 1, 1, 0, 9);
      INSERT INTO checkpoints (task, value) VALUES (1, '{"step":2}')`);
    older.close();
    const store = await sqliteStore({ path });
    const task = { ...alice, taskId: "t" };
    expect(await store.head(alice, "t")).toMatchObject({ checkpoint: '{"step":2}', fence: 3 });
    expect("taskState" in ((await store.head(alice, "t")) ?? {})).toBe(false);
    const append = (fence: number, value: string): ReturnType<typeof store.append> =>
      store.append([{ task, fence, records: [], effects: [{ effect: "taskState", value }] }]);
    expect(await append(2, '"late"')).toMatchObject([{ ok: false, reason: "fenced" }]);
    expect(await append(3, '{"cart":[]}')).toMatchObject([{ ok: true }]);
    await store.close();
    const again = await sqliteStore({ path });
    expect(await again.head(alice, "t")).toMatchObject({ checkpoint: '{"step":2}', taskState: '{"cart":[]}' });
    await again.close();
  });

  it("is rejected if it is not a database, or a folder", async () => {
    const path = newPath();
    await writeFile(path, "This is not a database. ".repeat(1000));
    const folderPath = newPath();
    await mkdir(folderPath);
    for (const [bad, reason] of [
      [path, ": file is not a database"],
      [folderPath, ": it is a folder"],
      [join(path, "below", "a-file.db"), ""],
    ] as const)
      expect(await refusal(bad)).toEqual({ code: "Unavailable", message: `The database cannot be opened${reason}` });
  });

  it("is created with its folders if it is missing", async () => {
    const store = await sqliteStore({ path: join(folder, "a", "b", "new.db") });
    expect(await store.append([making("t")])).toMatchObject([{ ok: true }]);
    await store.close();
  });
});

describe("values that SQLite cannot store", () => {
  it("reject the call, and nothing of it is stored", async () => {
    const store: Store = await sqliteStore({ path: newPath() });
    const bad = [NaN, Infinity, 2 ** 60, true as unknown as number, undefined as unknown as number];
    for (const time of bad) {
      const item = making("t");
      const broken = { ...item, records: item.records.map((one) => ({ ...one, time })) };
      await expect(store.append([making("u"), broken])).rejects.toThrow(TypeError);
    }
    expect((await store.list(alice, { limit: 9, artifacts: false })).total).toBe(0);
    expect(await store.append([making("t")])).toMatchObject([{ ok: true }]);
    await store.close();
  });

  it("leave no trace of the new owners of the call", async () => {
    const store = await sqliteStore({ path: newPath() });
    const item = making("t");
    const broken = { ...making("u"), records: item.records.map((one) => ({ ...one, time: NaN })) };
    await expect(store.append([item, broken])).rejects.toThrow(TypeError);
    const other = { agent: "other", owner: "bob" };
    await store.append([{ ...making("b"), task: { ...other, taskId: "b" } }, item]);
    expect((await store.head(alice, "t"))?.task).toEqual({ ...alice, taskId: "t" });
    expect((await store.head(other, "b"))?.task).toEqual({ ...other, taskId: "b" });
    for (const owner of [alice, other]) expect((await store.list(owner, { limit: 9, artifacts: false })).total).toBe(1);
    await store.close();
  });
});
