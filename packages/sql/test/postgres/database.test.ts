import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../../test/postgres/database.ts";
import { connect } from "../../src/postgres/connect.ts";

const database = useDatabase();

describe("a database by its URL", () => {
  test("runs a transaction", async () => {
    const db = await connect({ database: database().url });
    try {
      expect(db.server.version).toBeGreaterThan(150_000);
      expect(db.server.pooled).toBe(false);
      await db.query("CREATE TABLE t (id bigint PRIMARY KEY, name text, tags text[])");
      const id = await db.transaction({ mode: "write" }, async (tx) => {
        const [{ rows }] = await Promise.all([
          tx.query("INSERT INTO t VALUES ($1, $2, $3) RETURNING id", [5, "a", ["x", 'y "z" \\', null]]),
          tx.query("INSERT INTO t VALUES (6, 'b')"),
        ]);
        return rows[0]?.[0];
      });
      expect(id).toBe(5);
      const { rows, count } = await db.query("SELECT * FROM t ORDER BY id");
      expect(rows).toEqual([
        [5, "a", ["x", 'y "z" \\', null]],
        [6, "b", null],
      ]);
      expect(count).toBe(2);
    } finally {
      await db.close();
    }
  });
});
