import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { NewRecord } from "@parley/a2a/internal/model/index";
import { sqliteStore } from "@parley/sql/sqlite";
import { openDriver } from "./drivers.ts";

const folder = await mkdtemp(join(tmpdir(), "parley-"));
afterAll(() => rm(folder, { recursive: true }));

const task = { agent: "agent", owner: "alice", taskId: "t" };
const record = { time: 1000, actor: "agent", turn: 1, attempt: 1 } as const;

function chunk(n: number): NewRecord {
  const artifact = { artifactId: "a", parts: [{ text: String(n).padStart(6) }] };
  const json = JSON.stringify({ taskId: "t", contextId: "c", artifact, ...(n > 0 && { append: true }) });
  return { ...record, kind: "artifactUpdate", json };
}

describe("the cost of a chunk", () => {
  it("is the same for the last of 16,000 as for the first, in bytes written", async () => {
    const path = join(folder, "cost.db");
    const store = await sqliteStore({ path });
    const state = "TASK_STATE_WORKING";
    const json = JSON.stringify({ id: "t", contextId: "c", status: { state }, history: [] });
    await store.append([{ task, create: { contextId: "c" }, records: [{ ...record, kind: "task", state, json }] }]);
    const log = openDriver(path);
    let made = 0;
    /** Appends `count` chunks, one per transaction. Returns the number of bytes that SQLite wrote. */
    async function written(count: number): Promise<number> {
      log.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      for (let n = 0; n < count; n += 1) await store.append([{ task, records: [chunk(made++)] }]);
      return (await stat(`${path}-wal`)).size;
    }
    const first = await written(100);
    const records = Array.from({ length: 16_000 }, () => chunk(made++));
    for (let at = 0; at < records.length; at += 500) {
      await store.append([{ task, records: records.slice(at, at + 500) }]);
    }
    const last = await written(100);
    log.close();
    await store.close();
    expect(first).toBeGreaterThan(100 * 4096);
    expect(last).toBeLessThan(2 * first);
  });
});
