import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterAll, expect, test } from "vitest";
import type { NewRecord } from "@parley/a2a/internal/model/index";
import type { Store } from "@parley/server";
import { openDriver } from "./drivers.ts";
import { integrityOf } from "./integrity.ts";

/** Backups of a file while a store writes to it (docs/retention.md). */

const folder = await mkdtemp(join(tmpdir(), "parley-backup-"));
afterAll(() => rm(folder, { recursive: true }));

const alice = { agent: "agent", owner: "alice" } as const;
const common = { time: 1, turn: 1, attempt: 1, actor: "agent" } as const;
const state = "TASK_STATE_COMPLETED";

function artifactOf(id: string): NewRecord {
  const artifact = { artifactId: "a", parts: [{ text: `${id} `.repeat(200) }] };
  return { ...common, kind: "artifactUpdate", json: JSON.stringify({ taskId: id, contextId: "c", artifact }) };
}

/** Stores finished tasks, one per item, until it is told to stop. Returns the acknowledged ids. */
function writing(store: Store) {
  const stored: string[] = [];
  let isOver = false;
  const work = async (): Promise<void> => {
    for (let at = 0; !isOver; at += 1) {
      const id = `t${at}`;
      const task = { id, contextId: "c", status: { state: "TASK_STATE_WORKING" }, history: [] };
      const first = { ...common, kind: "task", state: "TASK_STATE_WORKING", json: JSON.stringify(task) } as const;
      const status = JSON.stringify({ taskId: id, contextId: "c", status: { state } });
      const last = { ...common, kind: "statusUpdate", state, json: status } as const;
      await store.append([
        { task: { ...alice, taskId: id }, create: { contextId: "c" }, records: [first, artifactOf(id), last] },
      ]);
      stored.push(id);
    }
  };
  const done = work();
  return {
    stored,
    async stop() {
      isOver = true;
      await done;
    },
  };
}

async function backedUp(take: (path: string, copy: string) => void | Promise<void>, name: string): Promise<void> {
  const path = join(folder, `${name}.db`);
  const copy = join(folder, `${name}-copy.db`);
  const store = await sqliteStore({ path, synchronous: "NORMAL" });
  const writer = writing(store);
  await expect.poll(() => writer.stored.length).toBeGreaterThan(20);
  const known = [...writer.stored];
  await take(path, copy);
  await expect.poll(() => writer.stored.length).toBeGreaterThan(known.length);
  await writer.stop();
  await store.close();

  expect(integrityOf(copy)).toEqual(["ok"]);
  const restored = await sqliteStore({ path: copy });
  for (const id of known) {
    const task = (await restored.load(alice, id, { artifacts: true }))?.task;
    expect(task).toMatchObject({ status: { state }, artifacts: [{ parts: [{ text: `${id} `.repeat(200) }] }] });
  }
  await restored.append([
    { context: { ...alice, contextId: "new" }, effects: [{ effect: "contextState", value: "1" }] },
  ]);
  await restored.close();
}

test("VACUUM INTO copies every acknowledged task, while others are stored", async () => {
  await backedUp((path, copy) => {
    const driver = openDriver(path);
    driver.prepare("VACUUM INTO ?").run(copy);
    driver.close();
  }, "vacuum");
});

test("a store that is closed is one file, which can be copied", async () => {
  const path = join(folder, "closed.db");
  const store = await sqliteStore({ path });
  const writer = writing(store);
  await expect.poll(() => writer.stored.length).toBeGreaterThan(5);
  await writer.stop();
  await store.close();
  const copy = join(folder, "closed-copy.db");
  await copyFile(path, copy);
  const restored = await sqliteStore({ path: copy });
  expect((await restored.list(alice, { limit: 1, artifacts: false })).total).toBe(writer.stored.length);
  await restored.close();
});
