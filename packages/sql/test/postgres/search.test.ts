import { expect, test } from "vitest";
import { postgresStore } from "@parley/sql/postgres";
import { searchTerms } from "@parley/server/store";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { connect } from "../../src/postgres/connect.ts";
import { Schema } from "../../src/postgres/schema.ts";
import { run } from "../../src/postgres/dialect.ts";
import { search, switchIndex } from "../../src/postgres/search.ts";
import { stepIndex } from "../../src/shared/search.ts";
import { alice, making } from "./given.ts";

const database = useDatabase();

test("each indexing step reads 2,000 tasks, even if they are up to date, and the next step continues after them", async () => {
  const name = "steps";
  const store = await postgresStore({ database: database().url, schema: name });
  const db = await connect({ database: database().url });
  const schema = new Schema(name);
  try {
    await store.search?.use(true);
    await store.append([making("t")]);
    await store.search?.use(false);
    // Enough tasks for three steps, all of them indexed.
    await database().run(`INSERT INTO ${name}.tasks SELECT (jsonb_populate_record(t,
        jsonb_build_object('number', t.number + g, 'id', t.id || g))).* FROM ${name}.tasks t, generate_series(1, 4500) g;
      INSERT INTO ${name}.search_tasks SELECT number, seq, seq, 0 FROM ${name}.tasks ON CONFLICT DO NOTHING`);
    const numbers = (await db.query(schema.text("SELECT number FROM parley.tasks ORDER BY number"))).rows.flat();
    const next = async (): Promise<unknown> =>
      (await db.query(schema.text("SELECT next FROM parley.search"))).rows[0]?.[0];
    await db.transaction({ mode: "write" }, (queries) => switchIndex(schema.over(queries), true));
    const steps: unknown[] = [];
    const step = (): Promise<boolean> =>
      db.transaction({ mode: "write" }, (queries) => run(schema.over(queries), stepIndex(search)));
    while (await step()) steps.push(await next());
    expect(steps).toEqual([numbers[1999], numbers[3999]]);
    expect(await next()).toBe(null);
    const found = await store.search?.find(alice, { terms: searchTerms("hello"), limit: 9 });
    expect(found?.hits.map(({ taskId }) => taskId)).toEqual(["t"]);
  } finally {
    await Promise.all([store.close(), db.close()]);
  }
});
