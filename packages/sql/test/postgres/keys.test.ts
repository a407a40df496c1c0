import pg from "pg";
import { expect, test, vi } from "vitest";
import { postgresStore } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { done, making, verdicts } from "./given.ts";

const database = useDatabase();

test("an expired key that two nodes reuse at once belongs to the first task on both", async () => {
  const schema = "twice";
  const store = await postgresStore({ database: database().url, schema });
  const other = new pg.Client({ connectionString: database().url });
  await other.connect();
  try {
    const once = { effect: "once", key: "k", hash: "h", now: 1, until: 10 } as const;
    const first = making("a");
    await store.append([{ ...first, records: [...first.records, done("a")], effects: [once] }, making("b")]);
    // The other node has replaced the key, but not committed yet.
    await other.query(`BEGIN; UPDATE ${schema}.keys SET until = 1000,
      task = (SELECT number FROM ${schema}.tasks WHERE id = 'b')`);
    const appending = store.append([{ ...making("c"), effects: [{ ...once, now: 20, until: 2000 }] }]);
    const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    await vi.waitFor(async () => expect((await database().run(waiting)).rowCount).toBe(1));
    await other.query("COMMIT");
    const [outcome] = await appending;
    expect(outcome).toMatchObject({ ok: false, reason: "duplicate", once: { taskId: "b" } });
  } finally {
    await other.end();
    await store.close();
  }
});

test("a repeated key is recognized while another process has locked it", async () => {
  const schema = "locked";
  const store = await postgresStore({ database: database().url, schema });
  const other = new pg.Client({ connectionString: database().url });
  await other.connect();
  try {
    const once = { effect: "once", key: "k", hash: "h", now: 1, until: 10 } as const;
    await store.append([{ ...making("a"), effects: [once] }]);
    await other.query(`BEGIN; SELECT 1 FROM ${schema}.keys FOR UPDATE`);
    expect(verdicts(await store.append([{ ...making("b"), effects: [once] }]))).toEqual(["duplicate"]);
    await other.query("COMMIT");
  } finally {
    await other.end();
    await store.close();
  }
});
