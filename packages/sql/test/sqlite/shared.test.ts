import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { NewRecord, TaskState } from "@parley/a2a";
import type { Store, TaskAppend } from "@parley/a2a/store";
import { sqliteStore } from "@parley/sql/sqlite";

/** Two stores on one file, as two processes have them. */

const folder = await mkdtemp(join(tmpdir(), "parley-"));
afterAll(() => rm(folder, { recursive: true }));

const alice = { agent: "agent", owner: "alice" };
const contextId = "context";

function change(taskId: string, state: TaskState, time: number, text = ""): NewRecord {
  const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text }] };
  const json = JSON.stringify({ taskId, contextId, status: { state, message } });
  return { kind: "statusUpdate", state, time, json, actor: "agent", turn: 1, attempt: 1 };
}

function making(taskId: string, state: TaskState, time: number): TaskAppend {
  const json = JSON.stringify({ id: taskId, contextId, status: { state } });
  const record: NewRecord = { kind: "task", state, time, json, actor: "user", turn: 1, attempt: 1 };
  return { task: { ...alice, taskId }, create: { contextId }, records: [record] };
}

async function both(name: string, body: (one: Store, other: Store) => Promise<void>): Promise<void> {
  const path = join(folder, `${name}.db`);
  const stores = [await sqliteStore({ path }), await sqliteStore({ path, thread: false })] as const;
  await body(...stores);
  for (const store of stores) await store.close();
}

describe("a store that shares its file", () => {
  it("gives a task as the other one left it, though it has read it before", async () => {
    await both("tasks", async (one, other) => {
      const textsOf = async (): Promise<unknown[]> => {
        const options = { artifacts: true };
        const loaded = await one.load(alice, "t", options);
        const [listed] = (await one.list(alice, { ...options, limit: 1 })).tasks;
        return [loaded?.task.status.message?.parts[0], listed?.task.status.message?.parts[0]];
      };
      await one.append([making("t", "TASK_STATE_SUBMITTED", 1)]);
      expect(await textsOf()).toEqual([undefined, undefined]);
      await other.append([{ task: { ...alice, taskId: "t" }, records: [change("t", "TASK_STATE_COMPLETED", 2, "a")] }]);
      expect(await textsOf()).toEqual([{ text: "a" }, { text: "a" }]);
      await other.sweep({ now: 0, deleteBefore: 3, limit: 1 });
      expect(await one.load(alice, "t", { artifacts: true })).toBe(undefined);
      // The same id, the same number, as many records.
      const again = making("t", "TASK_STATE_SUBMITTED", 3);
      await other.append([{ ...again, records: [...again.records, change("t", "TASK_STATE_COMPLETED", 4, "b")] }]);
      expect(await textsOf()).toEqual([{ text: "b" }, { text: "b" }]);
    });
  });
});
