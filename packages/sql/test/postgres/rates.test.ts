import { expect, test } from "vitest";
import type { RateTaken } from "@parley/server/store";
import { connect } from "../../src/postgres/connect.ts";
import { migratePostgres } from "../../src/postgres/index.ts";
import { Rates } from "../../src/postgres/nodes.ts";
import { Schema } from "../../src/postgres/schema.ts";
import { useDatabase } from "../../../../test/postgres/database.ts";

/* Budgets that nodes share through the database (docs/decisions/rate-limits.md). The store contract tests their guarantees. */

const database = useDatabase();
const week = 7 * 24 * 60 * 60_000;

async function given(name: string) {
  await migratePostgres({ database: database().url, schema: name });
  const opened = await connect({ database: database().url });
  const rates = new Rates(opened, new Schema(name));
  const take = async (key: string, requests: number, per: number, wanted: number): Promise<RateTaken> => {
    const [answer] = await rates.take([{ key, requests, per, used: 0, wanted }]);
    return answer ?? { taken: NaN, back: NaN };
  };
  const rows = async (): Promise<unknown[]> => (await database().run(`SELECT * FROM ${name}.rates`)).rows;
  return { opened, rates, take, rows };
}

test("rows of full budgets are deleted, and no others", async () => {
  const { opened, rates, take, rows } = await given("tidied");
  for (let at = 0; at < 3; at += 1) await take(`short ${at}`, 10, 1, 1);
  await take("long", 10, week, 3);
  await expect
    .poll(async () => {
      await rates.tidy();
      return (await rows()).length;
    })
    .toBe(1);
  expect((await take("long", 10, week, 10)).taken).toBe(7);
  expect(rates.isUntidy).toBe(false);
  await opened.close();
});

test("after the database clock jumps back a year, callers wait for at most two budgets", async () => {
  const { opened, take } = await given("set_back");
  expect(await take("a", 10, week, 4)).toMatchObject({ taken: 4 });
  await database().run("UPDATE set_back.rates SET back_at = back_at + 365 * 24 * 3600 * 1000.0");
  const { taken, back } = await take("a", 10, week, 4);
  expect([taken, Math.round(back / week)]).toEqual([0, 2]);
  await opened.close();
});

test("the names of callers are not in the table", async () => {
  const { opened, take, rows } = await given("named");
  await take('principal ["acme","ada@example.com"]', 10, week, 1);
  const stored = JSON.stringify(await rows());
  expect(stored).toContain('"taken":1');
  expect(stored).not.toMatch(/ada|acme/);
  await opened.close();
});
