import Database from "libsql";
import { checkValues, type Driver, type Row, type Statement, type Value } from "./driver.ts";

/**
 * `libsql` as a driver. What it does in its own way and this keeps from the store: values of other types abort the
 * process, missing parameters are NULL, and statements live on when the connection is closed.
 */
export function openLibsql(path: string): Driver {
  // It waits for nobody: whoever finds the file busy comes back later, and meanwhile the event loop runs.
  const database = new Database(path, { timeout: 0 });
  const statements = new Map<string, Statement>();
  let open = true;

  const usable = (): void => {
    if (!open) throw new TypeError("The database is closed");
  };

  return {
    prepare(sql) {
      usable();
      let statement = statements.get(sql);
      if (statement === undefined) {
        statement = wrap(database, sql, usable);
        statements.set(sql, statement);
      }
      return statement;
    },
    exec(sql) {
      usable();
      database.exec(sql);
    },
    transaction(mode, body) {
      usable();
      database.exec(mode === "write" ? "BEGIN IMMEDIATE" : "BEGIN");
      try {
        const result = body();
        database.exec("COMMIT");
        return result;
      } catch (thrown) {
        // A full disk ends the transaction by itself.
        if (database.inTransaction) database.exec("ROLLBACK");
        throw thrown;
      }
    },
    close() {
      if (!open) return;
      open = false;
      statements.clear();
      try {
        // The statements keep the connection and its log open until they are collected: empty the log now.
        database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      } catch {
        // Whoever opens the file next reads the log.
      }
      database.close();
    },
  };
}

function wrap(database: Database.Database, sql: string, usable: () => void): Statement {
  const statement = database.prepare(sql);
  const parameters = sql.split("?").length - 1;
  if (statement.reader) statement.raw();
  // One array is what the library makes of its arguments anyway.
  const check = (values: readonly Value[]): readonly Value[] => {
    usable();
    checkValues(sql, parameters, values);
    return values;
  };
  return {
    run(...values) {
      const { changes, lastInsertRowid } = statement.run(check(values));
      return { changes, lastId: Number(lastInsertRowid) };
    },
    get: (...values) => statement.get(check(values)) as Row | undefined,
    all: (...values) => statement.all(check(values)) as readonly Row[],
  };
}
