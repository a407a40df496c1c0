import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { postgresStore } from "@parley/sql/postgres";
import { compiled } from "../../../../test/programs.ts";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { alice, making } from "./given.ts";

const database = useDatabase();
const appender = compiled(fileURLToPath(new URL("appender.ts", import.meta.url)));

const [processes, rounds, tasks] = [4, 15, 20];

describe("four processes that append to the same tasks, and one that sweeps", () => {
  test("lock in one order: nothing deadlocks or gets lost, and a task that all create exists once", async () => {
    const { url } = database();
    const store = await postgresStore({ database: url, schema: "many" });
    try {
      await store.append(Array.from({ length: tasks }, (_, at) => making(`t${at}`, `c${at % 5}`)));
      const deadlocks = async (): Promise<number> => {
        const { rows } = await database().run(
          "SELECT pg_stat_force_next_flush(), deadlocks::int AS n FROM pg_stat_database WHERE datname = current_database()",
        );
        return (rows[0] as { n: number }).n;
      };
      const run = promisify(execFile);
      let areOver = false;
      const appending = Promise.all(
        Array.from({ length: processes }, (_, at) =>
          run(process.execPath, [appender, url, "many", `p${at}`, String(rounds), String(tasks)]),
        ),
      ).finally(() => {
        areOver = true;
      });
      let deleted = 0;
      const sweep = async (now: number): Promise<boolean> => {
        const swept = await store.sweep({ now, deleteBefore: 500, limit: 20 });
        deleted += swept.deleted;
        return swept.more;
      };
      for (let now = 0; !areOver; now = (now + 10) % (10 * rounds)) await sweep(now);
      const ran = await appending;
      while (await sweep(Infinity)) continue;
      expect(deleted).toBeGreaterThan(0);
      const stored = ran.reduce((sum, { stdout }) => sum + Number(stdout), 0);
      // Each process stores two records in each task in each round. One of the processes creates each new task.
      expect(stored).toBe(processes * rounds * tasks + rounds * tasks);
      for (const at of [0, tasks - 1]) {
        const page = await store.read(alice, `t${at}`, { after: 0, limit: 10_000 });
        expect(page?.records.map(({ seq }) => seq)).toEqual(
          Array.from({ length: 1 + 2 * processes * rounds }, (_, index) => index + 1),
        );
        expect(page?.head.seq).toBe(page?.records.length);
        expect((await store.features(alice, `t${at}`, "f")).length).toBe(processes);
      }
      const { total } = await store.list(alice, { limit: 1, artifacts: false });
      expect(total).toBe(tasks + rounds * tasks);
      expect((await store.list(alice, { limit: 1, artifacts: false, since: 0 })).total).toBe(total);
      expect((await store.list(alice, { limit: 1, artifacts: false, contextId: "c1" })).total).toBe(tasks / 5);
      expect(await deadlocks()).toBe(0);
    } finally {
      await store.close();
    }
  });
});
