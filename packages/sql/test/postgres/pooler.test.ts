import type { Wakeup } from "@parley/server/store";
import { afterEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { startPooler } from "../../../../test/postgres/pooler.ts";
import { connect } from "../../src/postgres/connect.ts";
import type { Database } from "../../src/postgres/database.ts";
import { notifyWakeup } from "../../src/postgres/wakeup.ts";
import { recorder } from "./logs.ts";

const database = useDatabase();
const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function behind(mode: "transaction" | "session"): Promise<{ db: Database; wakeup: Wakeup; lines: string[] }> {
  const pooler = await startPooler(database().url, mode);
  opened.push(pooler);
  const { lines, logger } = recorder();
  const db = await connect({ database: pooler.url, logger });
  opened.push(db);
  const wakeup = await notifyWakeup(db.driver, db.server.pooled, { logger, echoTimeout: 1000 });
  opened.push(wakeup);
  return { db, wakeup, lines };
}

describe("behind a pooler", () => {
  test("in transaction mode: transactions work with their limits, and a log line says what does not work", async () => {
    const { db, wakeup, lines } = await behind("transaction");
    expect(db.server.pooled).toBe(true);
    await db.query("CREATE TABLE t (id bigint PRIMARY KEY)");
    // More concurrent calls than the pooler has connections, with statements that would each need the previous one's session.
    await Promise.all(
      Array.from({ length: 40 }, (_, id) =>
        db.transaction({ mode: "write" }, async (tx) => {
          await tx.query("SELECT set_config('parley.test', $1, true)", [String(id)]);
          const [, limit] = await Promise.all([
            tx.query("INSERT INTO t SELECT current_setting('parley.test')::bigint"),
            tx.query("SHOW lock_timeout"),
          ]);
          expect(limit.rows).toEqual([["5s"]]);
        }),
      ),
    );
    expect((await db.query("SELECT count(*), count(DISTINCT id) FROM t WHERE id < $1", [40])).rows).toEqual([[40, 40]]);
    // No session passes state on to the next one.
    for (let at = 0; at < 10; at += 1) expect((await db.query("SHOW lock_timeout")).rows).toEqual([["0"]]);
    expect(wakeup.isConnected).toBe(false);
    expect(lines).toEqual([
      expect.stringContaining("the pooler rejects timeout settings"),
      expect.stringContaining("notifications do not pass the pooler"),
    ]);
    // Not sent, because no node would receive it.
    wakeup.publish(["a"]);
    const listening = await db.query(
      "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()",
    );
    expect(listening.rows).toEqual([[0]]);
  });

  test("in session mode: wake-ups arrive", async () => {
    const { db, wakeup } = await behind("session");
    expect(db.server.pooled).toBe(true);
    expect(wakeup.isConnected).toBe(true);
  });
});
