import { expect, test } from "vitest";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { alice, making, verdicts } from "./given.ts";

const database = useDatabase();
const bob = { ...alice, owner: "bob" };
const all = { limit: 9, artifacts: false } as const;

/* A failover loses the newest commits, or an older backup is restored, while nodes remember newer data. Sequences are reset as well. */
test("a node that remembers a deleted owner finds no other owner under its id, and creates the owner anew", async () => {
  const schema = "back";
  const options = { database: database().url, schema };
  const [one, two] = [await postgresStore(options), await postgresStore(options)];
  try {
    await one.append([making("t1")]);
    const { rows } = await database().run(`SELECT id FROM ${schema}.scopes WHERE name = 'alice'`);
    const { id } = rows[0] as { id: string };
    await database().run(`TRUNCATE ${schema}.tasks, ${schema}.contexts, ${schema}.counts, ${schema}.log;
      DELETE FROM ${schema}.scopes WHERE name = 'alice'; ALTER TABLE ${schema}.scopes ALTER COLUMN id RESTART WITH ${id}`);
    await two.append([{ ...making("t2"), task: { ...bob, taskId: "t2" } }]);
    expect(await one.list(alice, all)).toEqual({ tasks: [], total: 0 });
    expect((await one.conversation({ ...alice, contextId: "c" }, { limit: 9 })).entries).toEqual([]);
    // From here, all nodes find Alice's new data.
    expect(verdicts(await one.append([making("t3")]))).toEqual(["ok"]);
    for (const store of [one, two]) {
      expect((await store.head(alice, "t3"))?.task.owner).toBe("alice");
      expect((await store.list(alice, all)).tasks.map(({ task }) => task.id)).toEqual(["t3"]);
      expect((await store.list(bob, all)).tasks.map(({ task }) => task.id)).toEqual(["t2"]);
    }
    // If another node recreates Alice, the first node also finds the new data.
    await database().run(
      `TRUNCATE ${schema}.tasks, ${schema}.contexts, ${schema}.counts, ${schema}.log, ${schema}.scopes`,
    );
    await two.append([making("t4")]);
    expect((await one.list(alice, all)).total).toBe(1);
    expect(verdicts(await one.append([making("t5")]))).toEqual(["ok"]);
    expect((await two.list(alice, all)).total).toBe(2);
  } finally {
    await Promise.all([one.close(), two.close()]);
  }
});
