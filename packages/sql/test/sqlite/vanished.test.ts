import { copyFile, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { silentLogger, type Store } from "@parley/server";
import type { Logger } from "@parley/a2a/protocol";
import type { NewRecord } from "@parley/a2a/internal/model/index";
import type { AppendItem } from "@parley/server/store";
import { sqliteStore } from "@parley/sql/sqlite";

const root = await mkdtemp(join(tmpdir(), "parley-"));
afterAll(() => rm(root, { recursive: true }));

const owner = { agent: "agent", owner: "alice" };
const unavailable = { code: "Unavailable" };

function making(taskId: string): AppendItem {
  const json = JSON.stringify({ id: taskId, contextId: "c", status: { state: "TASK_STATE_WORKING" } });
  const record: NewRecord = {
    kind: "task",
    state: "TASK_STATE_WORKING",
    json,
    time: 1,
    actor: "user",
    turn: 1,
    attempt: 1,
  };
  return { task: { ...owner, taskId }, create: { contextId: "c" }, records: [record] };
}

interface Opened {
  readonly store: Store;
  readonly folder: string;
  readonly path: string;
  /** Logged errors and warnings. */
  readonly errors: { message: string; path: unknown }[];
  readonly warnings: string[];
}

let folders = 0;
async function opened(thread: boolean): Promise<Opened> {
  const folder = join(root, `${(folders += 1)}`);
  const path = join(folder, "tasks.db");
  const errors: Opened["errors"] = [];
  const warnings: string[] = [];
  const logger: Logger = {
    ...silentLogger,
    error: (message, fields) => errors.push({ message, path: fields?.["path"] }),
    warn: (message) => warnings.push(message),
  };
  const store = await sqliteStore({ path, thread, logger, watchInterval: 5 });
  expect(await store.append([making("before")])).toMatchObject([{ ok: true }]);
  return { store, folder, path, errors, warnings };
}

/** Calls `ask` until it is rejected, because reads check the files only from time to time. */
async function refused(ask: () => unknown): Promise<void> {
  for (;;) {
    try {
      await ask();
    } catch (thrown) {
      expect(thrown).toMatchObject(unavailable);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** D3: acknowledged data survives a restart, so an append into removed files is not acknowledged. */
describe.each([
  ["with a writer thread", true],
  ["without a writer thread", false],
])("a SQLite store that is open while its files are removed or replaced, %s", (_, thread) => {
  const acts: Record<string, (at: Opened) => Promise<unknown>> = {
    "the database is removed": ({ path }) => rm(path),
    "its log is removed": ({ path }) => rm(`${path}-wal`),
    "the index of its log is removed": ({ path }) => rm(`${path}-shm`),
    "its folder is removed": ({ folder }) => rm(folder, { recursive: true }),
    "its folder is renamed": ({ folder }) => rename(folder, `${folder}-moved`),
    "a file is in the place of its folder": async ({ folder }) => {
      await rename(folder, `${folder}-moved`);
      await copyFile(`${folder}-moved/tasks.db`, folder);
    },
    "another database takes its place": async ({ path }) => {
      await copyFile(path, `${path}-copy`);
      await rename(`${path}-copy`, path);
    },
    "another folder takes the place of its own": async ({ folder, path }) => {
      await rename(folder, `${folder}-moved`);
      await mkdir(folder);
      await (await sqliteStore({ path, thread: false })).close();
    },
  };

  it.each(Object.keys(acts))("rejects every call and logs that once when %s", async (name) => {
    const at = await opened(thread);
    const { store, path, errors } = at;
    await acts[name]?.(at);
    await expect(store.append([making("after")])).rejects.toMatchObject(unavailable);
    await expect(store.sweep({ now: 0, limit: 1 })).rejects.toMatchObject(unavailable);
    await expect(store.head(owner, "before")).rejects.toMatchObject(unavailable);
    await expect(store.list(owner, { limit: 1, artifacts: false })).rejects.toMatchObject(unavailable);
    expect(() => store.once(owner, "key", 1)).toThrow(expect.objectContaining(unavailable) as Error);
    expect(errors).toEqual([{ message: expect.stringContaining("removed, renamed or replaced") as string, path }]);
    await store.close();
  });

  it("rejects reads too, without a write", async () => {
    const at = await opened(thread);
    await at.store.head(owner, "before");
    await rm(at.path);
    await refused(() => at.store.head(owner, "before"));
    await refused(() => at.store.once(owner, "key", 1));
    expect(at.errors.length).toBe(1);
    await at.store.close();
  });

  it("logs it without a call if it is watched", async () => {
    const at = await opened(thread);
    const unwatch = at.store.watch?.(() => {});
    await rm(at.path);
    while (at.errors.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    unwatch?.();
    await at.store.close();
  });

  it("works again when the same files are back, with everything acknowledged and nothing rejected", async () => {
    const { store, folder, path, errors, warnings } = await opened(thread);
    for (let round = 1; round <= 2; round += 1) {
      await rename(folder, `${folder}-moved`);
      await expect(store.append([making(`lost-${round}`)])).rejects.toMatchObject(unavailable);
      await rename(`${folder}-moved`, folder);
      expect(await store.append([making(`after-${round}`)])).toMatchObject([{ ok: true }]);
      expect((await store.head(owner, `after-${round}`))?.seq).toBe(1);
      expect([errors.length, warnings.length]).toEqual([round, round]);
    }
    await store.close();
    const again = await sqliteStore({ path });
    const ids = (await again.list(owner, { limit: 9, artifacts: false })).tasks.map(({ task }) => task.id);
    expect(ids).toEqual(["after-2", "after-1", "before"]);
    await again.close();
  });
});
