import pg from "pg";
import { afterEach, describe, expect, test, vi } from "vitest";
import { eraseOwner, type AppendItem, type Owner, type Store } from "@parley/server/store";
import { postgresStore, type PostgresStoreOptions } from "@parley/sql/postgres";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { alice, done, keyOf, making } from "./given.ts";

/** Deletion of an owner during other owners' transactions (docs/retention.md). */

const database = useDatabase();
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

async function store(schema: string, options: Pick<PostgresStoreOptions, "lockTimeout"> = {}): Promise<Store> {
  const opened = await postgresStore({ database: database().url, schema, ...options });
  open.push(opened);
  return opened;
}

const bob = { agent: "agent", owner: "bob" } as const;

function context(owner: Owner, contextId: string): AppendItem {
  return { context: { ...owner, contextId }, effects: [{ effect: "contextState", value: "1" }] };
}

/** A transaction that stays open. */
async function held(text: string) {
  const client = new pg.Client({ connectionString: database().url });
  await client.connect();
  open.push({ close: () => client.end() });
  await client.query("BEGIN");
  await client.query(text);
  const run = (more: string): Promise<unknown> => client.query(more);
  return { run, end: () => run("COMMIT") };
}

test("a lock that one owner cannot get does not fail other owners' appends in the same commit", async () => {
  const schema = "locks_one";
  const made = await store(schema, { lockTimeout: 100 });
  await made.append([context(alice, "c"), context(bob, "c")]);
  const other = await held(`UPDATE ${schema}.contexts SET touched = touched WHERE owner =
    (SELECT id FROM ${schema}.scopes WHERE name LIKE '%alice%')`);
  const calls = await Promise.allSettled([alice, bob].map((owner) => made.append([context(owner, "c")])));
  expect(calls).toMatchObject([
    { status: "rejected", reason: { code: "Unavailable" } },
    { status: "fulfilled", value: [{ ok: true }] },
  ]);
  await other.end();
  expect(await made.append([context(alice, "c")])).toMatchObject([{ ok: true }]);
});

describe("deleting an owner", () => {
  test("waits for no transaction of another owner, and blocks none", async () => {
    const schema = "forgets_one";
    const made = await store(schema);
    await made.append([context(alice, "c"), context(bob, "c")]);
    // An open transaction of Bob, like a large group of appends or a VACUUM of the table.
    const other = await held(`UPDATE ${schema}.contexts SET touched = touched WHERE id > 0 AND owner =
      (SELECT id FROM ${schema}.scopes WHERE name LIKE '%bob%')`);
    await forgetAll(made);
    expect(await made.append([context({ agent: "agent", owner: "carol" }, "c")])).toMatchObject([{ ok: true }]);
    await other.end();
    expect((await made.upkeep?.owners({ limit: 9 }))?.map(({ owner }) => owner)).toEqual(["bob", "carol"]);
  });

  test("waits for running appends that create the owner's data, which is then deleted or created anew", async () => {
    const schema = "forgets_all";
    const made = await store(schema);
    await made.append([context(alice, "c")]);
    // Like an append that creates something (docs/decisions/postgres.md).
    const creating = await held(`SELECT 1 FROM ${schema}.scopes WHERE name LIKE '%alice%' FOR KEY SHARE`);
    let isOver = false;
    const forgotten = forgetAll(made).then(() => (isOver = true));
    await vi.waitFor(async () => expect(await waiting()).toBe(1), 10_000);
    expect(isOver).toBe(false);
    await creating.run(`INSERT INTO ${schema}.contexts (id, owner, name, tasks, touched, n0, n1, n2, n3, n4, n5, n6, n7)
      SELECT 77, id, 'late', 0, 1, 0, 0, 0, 0, 0, 0, 0, 0 FROM ${schema}.scopes WHERE name LIKE '%alice%'`);
    await creating.end();
    await forgotten;
    const { rows } = await database().run(`SELECT (SELECT count(*) FROM ${schema}.contexts)::int AS contexts,
      (SELECT count(*) FROM ${schema}.scopes WHERE parent <> 0)::int AS owners`);
    expect(rows[0]).toEqual({ contexts: 0, owners: 0 });
  });

  test("recreates it for appends that arrive at the same time, and loses none of them", async () => {
    const schema = "forgets_often";
    const [one, two] = [await store(schema), await store(schema)];
    for (let round = 0; round < 20; round += 1) {
      const [, outcomes] = await Promise.all([forgetAll(one), two.append([context(alice, `c${round}`)])]);
      expect(outcomes).toMatchObject([{ ok: true }]);
    }
    const { rows } = await database().run(`SELECT count(*)::int AS lost FROM ${schema}.contexts c
      WHERE NOT EXISTS (SELECT 1 FROM ${schema}.scopes s WHERE s.id = c.owner)`);
    expect(rows[0]).toEqual({ lost: 0 });
  });

  test("succeeds once a sweep has released its tasks", async () => {
    const schema = "forgets_locked";
    const made = await store(schema);
    await made.append([making("t")]);
    await made.append([{ task: keyOf("t"), records: [done("t")] }]);
    const sweep = await held(`SELECT 1 FROM ${schema}.tasks FOR UPDATE`);
    const erased = eraseOwner(made, alice);
    // Longer than twenty rounds without a pause.
    await new Promise((resolve) => setTimeout(resolve, 500));
    await sweep.end();
    expect(await erased).toEqual({ tasks: 1, canceled: 0 });
  });

  async function forgetAll({ upkeep }: Store): Promise<void> {
    while ((await upkeep?.forget(alice, 9))?.more === true);
  }

  /** How many transactions wait for a lock. */
  async function waiting(): Promise<number> {
    const { rows } = await database().run(
      "SELECT count(*)::int AS count FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
    );
    return (rows[0] as { count: number }).count;
  }
});
