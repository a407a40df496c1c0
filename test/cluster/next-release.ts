import { connect } from "../../packages/sql/src/postgres/connect.ts";
import {
  migrate as migratePostgres,
  versions as postgresVersions,
} from "../../packages/sql/src/postgres/migrations.ts";
import { Schema } from "../../packages/sql/src/postgres/schema.ts";
import { retryWhileBusy } from "../../packages/sql/src/sqlite/driver.ts";
import { defaultDriver, loadDriver, openConnection } from "../../packages/sql/src/sqlite/libraries.ts";
import { migrate as migrateSqlite, versions as sqliteVersions } from "../../packages/sql/src/sqlite/migrations.ts";

/* Simulates the next release, whose tables have one more version, with every change that the rule for versions allows. */

const postgresNext = `
  ALTER TABLE parley.tasks ADD COLUMN next_note text;
  CREATE INDEX tasks_next ON parley.tasks (next_note) WHERE next_note IS NOT NULL;
  ALTER TABLE parley.log ADD COLUMN next_size integer NOT NULL DEFAULT 0;
  ALTER TABLE parley.features ADD COLUMN next_kind smallint;
  CREATE TABLE parley.next_things (task bigint PRIMARY KEY, value text NOT NULL);
  `;

const sqliteNext = `
  ALTER TABLE tasks ADD COLUMN next_note TEXT;
  CREATE INDEX tasks_next ON tasks (next_note) WHERE next_note IS NOT NULL;
  ALTER TABLE log ADD COLUMN next_size INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE features ADD COLUMN next_kind INTEGER;
  CREATE TABLE next_things (task INTEGER PRIMARY KEY, value TEXT NOT NULL) STRICT;
  `;

/** The version of the tables in the next release. */
export const nextVersion = { postgres: postgresVersions.length + 1, sqlite: sqliteVersions.length + 1 };

/** Migrates the tables as the next release does when it starts, and writes data that only the next release understands. */
export async function migrateToNext({
  database,
  file,
}: {
  readonly database?: string;
  readonly file?: string;
}): Promise<void> {
  if (database !== undefined) {
    const [schema, opened] = [new Schema("parley"), await connect({ database })];
    const list = [...postgresVersions, postgresNext];
    // If a table is in use, retries like the store's own migration.
    for (let left = 100; left > 0; left -= 1) {
      const migrating = opened.transaction({ mode: "write" }, (queries) =>
        migratePostgres(queries, schema, list.length, list),
      );
      if (
        await migrating.then(
          () => true,
          (error: unknown) => (left === 1 ? Promise.reject(error as Error) : false),
        )
      )
        break;
    }
    await opened.query(schema.text("UPDATE parley.tasks SET next_note = 'seen'"));
    await opened.close();
  }
  if (file !== undefined) {
    const connection = {
      path: file,
      driver: defaultDriver(),
      synchronous: "NORMAL",
      busyTimeout: 5_000,
      maxPages: undefined,
    } as const;
    const driver = await openConnection(await loadDriver(undefined), connection);
    const list = [...sqliteVersions, sqliteNext];
    await retryWhileBusy(() => migrateSqlite(driver, list.length, list), 5_000);
    await retryWhileBusy(() => driver.exec("UPDATE tasks SET next_note = 'seen'"), 5_000);
    driver.close();
  }
}
