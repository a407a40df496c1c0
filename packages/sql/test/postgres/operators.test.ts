import { describe, expect, test } from "vitest";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";

/** The cost of operators' reads (docs/decisions/operators.md). */

const database = useDatabase();

describe("the tasks of all owners", () => {
  test("are read along the index, with the same number of blocks at any depth", async () => {
    const store = await postgresStore({ database: database().url, schema: "many" });
    const state = "TASK_STATE_WORKING";
    for (let from = 0; from < 4_000; from += 500) {
      const items = Array.from({ length: 500 }, (_, n) => {
        const taskId = `t${from + n}`;
        const json = JSON.stringify({ id: taskId, contextId: "c", status: { state }, history: [] });
        const record = { kind: "task", state, json, time: from + n, actor: "user", turn: 1, attempt: 1 } as const;
        return { task: { agent: "/", owner: "o", taskId }, create: { contextId: "c" }, records: [record] };
      });
      await store.append(items);
    }
    await database().run("VACUUM ANALYZE many.tasks");
    const deep = await store.operators?.tasks({ order: "oldest", limit: 10, since: 2_000 });
    expect(deep?.heads.map(({ statusTime }) => statusTime)).toEqual(Array.from({ length: 10 }, (_, at) => 2_000 + at));
    await store.close();
    const [scope] = (await database().run("SELECT id FROM many.scopes WHERE parent = 0")).rows as { id: string }[];
    for (const [order, from] of [
      ["", 0],
      ["", 3_900],
      ["DESC", 0],
    ] as const) {
      const { rows } = await database().run(
        `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT number, status_time FROM many.tasks
         WHERE agent = $1 AND state = $2 AND status_time >= $3 AND status_time < $4
         ORDER BY status_time ${order}, number ${order} LIMIT $5`,
        [scope?.id, 1, from, 9_000, 11],
      );
      const [plan] = (
        rows[0] as { "QUERY PLAN": { Plan: Record<string, unknown> & { Plans: Record<string, unknown>[] } }[] }
      )["QUERY PLAN"];
      expect(plan?.Plan.Plans[0]).toMatchObject({ "Index Name": "tasks_agent", "Actual Rows": 11 });
      const blocks = Number(plan?.Plan["Shared Hit Blocks"]) + Number(plan?.Plan["Shared Read Blocks"]);
      expect(blocks).toBeLessThan(20);
    }
  });
});
