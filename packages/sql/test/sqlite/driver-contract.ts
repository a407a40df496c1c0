import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Driver, Value } from "../../src/sqlite/driver.ts";
import type { OpenDriver } from "../../src/sqlite/libraries.ts";

/** The functions of a test runner that the suite needs, so that it runs in vitest and in Bun. */
export interface Runner {
  describe(name: string, body: () => void): unknown;
  it(name: string, body: () => void): unknown;
  expect(actual: unknown, message?: string): { toEqual(expected: unknown): void };
}

/** The SQLite error code of a call, or the name of the error class. */
function thrownBy(call: () => unknown): unknown {
  try {
    call();
  } catch (thrown) {
    if (!(thrown instanceof Error)) return thrown;
    // An extended code adds details to the primary one, but not every library supports them.
    const [code] =
      "code" in thrown && typeof thrown.code === "string" ? thrown.code.split(/(?<=^SQLITE_[A-Z]+)_/u) : [];
    return code ?? thrown.name;
  }
  return "nothing";
}

/** Every rule of the `Driver` port as a test. The store relies on all of them, with every library. */
export function driverContract({ describe, it, expect }: Runner, open: OpenDriver): void {
  function inMemory(body: (driver: Driver) => void): void {
    const driver = open(":memory:");
    try {
      body(driver);
    } finally {
      driver.close();
    }
  }
  function inFolder(body: (folder: string) => void): void {
    const folder = mkdtempSync(join(tmpdir(), "parley-driver-"));
    try {
      body(folder);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  describe("values", () => {
    it("are returned as they were stored: safe integers, text, null", () =>
      inMemory((driver) => {
        const { MAX_SAFE_INTEGER: max, MIN_SAFE_INTEGER: min } = Number;
        driver.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v ANY) STRICT");
        const values = [0, -1, max, min, null, "", "x", '"\\', "é e\u0301", "😀", "\ufffd", "x".repeat(1 << 20)];
        for (const value of values) driver.prepare("INSERT INTO t (v) VALUES (?)").run(value);
        expect(driver.prepare("SELECT v FROM t ORDER BY id").all()).toEqual(values.map((value) => [value]));
        expect(values.map((_, at) => driver.prepare("SELECT v FROM t WHERE id = ?").get(at + 1)?.[0])).toEqual(values);
      }));

    it("are rejected if a library would change them or end the process, and if their number is wrong", () =>
      inMemory((driver) => {
        const select = driver.prepare("SELECT ?, ?");
        const blob = new Uint8Array([1, 2]);
        const bad = [true, undefined, 1.5, NaN, Infinity, 2 ** 53, 1n, "a\0b", {}, [1], new Date(), blob];
        for (const value of bad as readonly unknown[] as readonly Value[]) {
          for (const ask of ["run", "get", "all"] as const) {
            expect([value, thrownBy(() => select[ask]("x", value))]).toEqual([value, "TypeError"]);
          }
        }
        for (const values of [[], [1], [1, 2, 3]]) expect(thrownBy(() => select.all(...values))).toEqual("TypeError");
        expect(select.get(1, null)).toEqual([1, null]);
      }));
  });

  describe("statements", () => {
    it("return rows as arrays in the order of the columns, even if columns share a name", () =>
      inMemory((driver) => {
        expect(driver.prepare("SELECT 1 AS a, 2 AS a UNION ALL SELECT 3, 4").all()).toEqual([
          [1, 2],
          [3, 4],
        ]);
        expect(driver.prepare("SELECT 1 AS a, 2 AS a UNION ALL SELECT 3, 4").get()).toEqual([1, 2]);
        expect(driver.prepare("SELECT 1 WHERE ? = 2").get(1)).toEqual(undefined);
        expect(driver.prepare("SELECT 1 WHERE ? = 2").all(1)).toEqual([]);
        expect(driver.prepare("PRAGMA user_version").all()).toEqual([[0]]);
      }));

    it("return the number of changed rows, and the id of the last new row", () =>
      inMemory((driver) => {
        driver.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT) STRICT; CREATE INDEX i ON t (v)");
        const insert = driver.prepare("INSERT INTO t (v) VALUES (?), (?)");
        expect(insert.run("a", "b")).toEqual({ changes: 2, lastId: 2 });
        expect(insert.run("c", "d")).toEqual({ changes: 2, lastId: 4 });
        expect(driver.prepare("UPDATE t SET v = ? WHERE id > ?").run("x", 1).changes).toEqual(3);
      }));

    it("are prepared once, and still work after the tables have changed", () =>
      inMemory((driver) => {
        driver.exec("CREATE TABLE t (id INTEGER PRIMARY KEY)");
        const select = driver.prepare("SELECT count(*) FROM t");
        expect(driver.prepare("SELECT count(*) FROM t") === select).toEqual(true);
        driver.exec("ALTER TABLE t ADD COLUMN v TEXT; INSERT INTO t (v) VALUES ('a')");
        expect(select.get()).toEqual([1]);
      }));

    it("use the values of each call, whichever call preceded it", () =>
      inMemory((driver) => {
        driver.exec("CREATE TABLE t (name)");
        const insert = driver.prepare("INSERT INTO t VALUES (?)");
        for (const name of ["a", "b", "c"]) insert.run(name);
        const find = driver.prepare("SELECT name FROM t WHERE name = ?");
        expect([find.get("a"), find.all("b"), find.get("c"), find.get("a"), find.all("c"), find.get("b")]).toEqual([
          ["a"],
          [["b"]],
          ["c"],
          ["a"],
          [["c"]],
          ["b"],
        ]);
      }));
    it("end after `get` has returned one row of many, and hold no snapshot", () =>
      inFolder((folder) => {
        const [one, two] = [open(join(folder, "t.db")), open(join(folder, "t.db"))];
        one.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (v); INSERT INTO t VALUES (1), (2), (3)");
        expect(one.prepare("SELECT v FROM t").get()).toEqual([1]);
        two.exec("INSERT INTO t VALUES (4)");
        one.transaction("write", () => one.prepare("INSERT INTO t VALUES (?)").run(5));
        expect(one.prepare("SELECT count(*) FROM t").get()).toEqual([5]);
        one.close();
        two.close();
      }));

    it("throw errors with SQLite's code, and can be run again", () =>
      inMemory((driver) => {
        driver.exec("CREATE TABLE t (id INTEGER PRIMARY KEY)");
        const insert = driver.prepare("INSERT INTO t (id) VALUES (?)");
        insert.run(1);
        expect(thrownBy(() => insert.run(1))).toEqual("SQLITE_CONSTRAINT");
        insert.run(2);
        expect(thrownBy(() => driver.prepare("SELEC 1"))).toEqual("SQLITE_ERROR");
        expect(thrownBy(() => driver.exec("SELEC 1"))).toEqual("SQLITE_ERROR");
      }));
  });

  describe("transactions", () => {
    it("are rolled back when their body throws, and rethrow the error", () =>
      inMemory((driver) => {
        driver.exec("CREATE TABLE t (v TEXT)");
        const insert = driver.prepare("INSERT INTO t VALUES (?)");
        expect(driver.transaction("write", () => insert.run("a").changes)).toEqual(1);
        const failing = (): never => {
          insert.run("b");
          throw new RangeError("no");
        };
        expect(thrownBy(() => driver.transaction("write", failing))).toEqual("RangeError");
        expect(driver.transaction("read", () => driver.prepare("SELECT v FROM t").all())).toEqual([["a"]]);
      }));

    it("that read see one snapshot, while another connection writes", () =>
      inFolder((folder) => {
        const [one, two] = [open(join(folder, "t.db")), open(join(folder, "t.db"))];
        one.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (v)");
        const count = one.prepare("SELECT count(*) FROM t");
        const seen = one.transaction("read", () => {
          const before = count.get();
          two.exec("INSERT INTO t VALUES (1)");
          return [before, count.get()];
        });
        expect([seen, count.get()]).toEqual([[[0], [0]], [1]]);
        one.close();
        two.close();
      }));

    it("that write fail at once while the file is busy, and begin when it is free", () =>
      inFolder((folder) => {
        const [one, two] = [open(join(folder, "t.db")), open(join(folder, "t.db"))];
        one.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (v)");
        const write = (): unknown => two.transaction("write", () => two.prepare("INSERT INTO t VALUES (1)").run());
        expect(two.prepare("PRAGMA busy_timeout").get()).toEqual([0]);
        one.transaction("write", () => expect(thrownBy(write)).toEqual("SQLITE_BUSY"));
        write();
        expect(one.prepare("SELECT count(*) FROM t").get()).toEqual([1]);
        one.close();
        two.close();
      }));

    it("fail with SQLITE_FULL if the file is full, leave nothing, and succeed with less data", () =>
      inFolder((folder) => {
        const driver = open(join(folder, "t.db"));
        driver.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (v)");
        driver.prepare("PRAGMA max_page_count = 10").all();
        const insert = driver.prepare("INSERT INTO t VALUES (?)");
        const fill = (): unknown => driver.transaction("write", () => insert.run("x".repeat(100_000)));
        expect(thrownBy(fill)).toEqual("SQLITE_FULL");
        expect(driver.transaction("write", () => insert.run("x")).changes).toEqual(1);
        expect(driver.prepare("SELECT count(*) FROM t").get()).toEqual([1]);
        driver.close();
      }));
  });

  describe("a connection", () => {
    it("that cannot be opened throws an error with SQLite's code", () =>
      inFolder((folder) => {
        writeFileSync(join(folder, "text"), "This is not a database. ".repeat(1000));
        const read = (path: string): void => {
          const driver = open(path);
          try {
            driver.prepare("SELECT * FROM sqlite_schema").all();
          } finally {
            driver.close();
          }
        };
        expect(thrownBy(() => read(join(folder, "text")))).toEqual("SQLITE_NOTADB");
        expect(thrownBy(() => read(folder))).toEqual("SQLITE_CANTOPEN");
        expect(thrownBy(() => read(join(folder, "none", "t.db")))).toEqual("SQLITE_CANTOPEN");
      }));

    it("rejects all calls after it is closed, and so do its statements", () => {
      const driver = open(":memory:");
      const select = driver.prepare("SELECT 1");
      driver.close();
      driver.close();
      for (const call of [
        () => select.get(),
        () => select.all(),
        () => select.run(),
        () => driver.prepare("SELECT 1"),
        () => driver.exec("SELECT 1"),
        () => driver.transaction("read", () => 1),
      ]) {
        expect(thrownBy(call)).toEqual("TypeError");
      }
    });

    it("moves everything from the log into the database file when it is closed", () =>
      inFolder((folder) => {
        const path = join(folder, "t.db");
        const driver = open(path);
        driver.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (v)");
        for (let at = 0; at < 100; at += 1) driver.prepare(`INSERT INTO t VALUES (${at})`).run();
        driver.close();
        const wal = `${path}-wal`;
        expect(existsSync(wal) ? statSync(wal).size : 0).toEqual(0);
        const again = open(path);
        expect(again.prepare("SELECT count(*), sum(v) FROM t").get()).toEqual([100, 4950]);
        again.close();
      }));

    it("keeps its settings, and has the SQLite functions that the store uses", () =>
      inFolder((folder) => {
        const driver = open(join(folder, "t.db"));
        driver.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
        driver.prepare("PRAGMA wal_autocheckpoint = 4000").all();
        const settings = ["journal_mode", "synchronous", "wal_autocheckpoint", "page_size"];
        expect(settings.map((name) => driver.prepare(`PRAGMA ${name}`).get()?.[0])).toEqual(["wal", 1, 4000, 4096]);
        expect(driver.prepare("SELECT octet_length('é'), 1 << 24, group_concat('a' || 1, char(10))").get()).toEqual([
          2,
          1 << 24,
          "a1",
        ]);
        driver.close();
      }));
  });
}
