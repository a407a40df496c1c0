import type { Driver } from "./driver.ts";
import { conditionOf, refuseOthers, refuseTooNew, UnknownVersion } from "../shared/versions.ts";
import { count } from "./rows.ts";

/**
 * The tables by version. A published version never changes: append a new one (`shared/versions.ts`).
 *
 * - `scopes`: agents, owners and contexts, each with its number of tasks per state.
 * - `tasks`: the head of a task, a small row that each append rewrites. Large values are in other tables.
 * - `log`: one row per record, with the key `number << 24 | seq`, so the records of a task are adjacent, and appends add to their end. A
 * partial index finds the history. Artifacts have no index, because they are most of a long log, and each chunk would write one more page.
 * - `search_texts`: searched texts by the key of their record, with their number of words. `search_tasks`: how far a log is indexed.
 * `search_index`: words. A trigger deletes the texts with their task, and adds the task to `search_gone` until its words are deleted.
 * - `features`: rows that server features keep with tasks, with a partial index of due ones.
 * - `notes`: notes between processes, until they expire.
 * - `orders`: standing orders of operators. `acts`: the audit of operators.
 *
 * Measurements: `docs/decisions/sqlite-layout.md`.
 */
export const versions: readonly string[] = [
  `
  CREATE TABLE scopes (
    id INTEGER PRIMARY KEY,
    parent INTEGER NOT NULL,
    name TEXT NOT NULL,
    is_context INTEGER NOT NULL,
    tasks INTEGER NOT NULL DEFAULT 0,
    touched INTEGER NOT NULL DEFAULT 0,
    late INTEGER NOT NULL DEFAULT 0,
    places INTEGER NOT NULL DEFAULT 0,
    n0 INTEGER NOT NULL DEFAULT 0,
    n1 INTEGER NOT NULL DEFAULT 0,
    n2 INTEGER NOT NULL DEFAULT 0,
    n3 INTEGER NOT NULL DEFAULT 0,
    n4 INTEGER NOT NULL DEFAULT 0,
    n5 INTEGER NOT NULL DEFAULT 0,
    n6 INTEGER NOT NULL DEFAULT 0,
    n7 INTEGER NOT NULL DEFAULT 0,
    UNIQUE (parent, name)
  ) STRICT;
  CREATE INDEX scopes_idle ON scopes (touched) WHERE is_context = 1 AND tasks = 0;

  CREATE TABLE context_states (context INTEGER PRIMARY KEY, value TEXT NOT NULL) STRICT;

  CREATE TABLE replies (
    context INTEGER NOT NULL,
    place INTEGER NOT NULL,
    time INTEGER NOT NULL,
    json TEXT NOT NULL,
    PRIMARY KEY (context, place)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE tasks (
    number INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    context INTEGER NOT NULL,
    id TEXT NOT NULL,
    state INTEGER NOT NULL,
    status_time INTEGER NOT NULL,
    status_seq INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    holder TEXT,
    lease_until INTEGER,
    run_turn INTEGER,
    run_attempt INTEGER,
    run_input INTEGER,
    has_metadata INTEGER NOT NULL,
    compacted INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE UNIQUE INDEX tasks_id ON tasks (agent, id);
  CREATE INDEX tasks_agent ON tasks (agent, state, status_time);
  CREATE INDEX tasks_owner ON tasks (owner, state, status_time);
  CREATE INDEX tasks_context ON tasks (context, state, status_time);
  CREATE INDEX tasks_runs ON tasks (lease_until) WHERE run_turn IS NOT NULL;
  CREATE INDEX tasks_over ON tasks (compacted, status_time) WHERE state >= 4;

  CREATE TABLE checkpoints (task INTEGER PRIMARY KEY, value TEXT NOT NULL) STRICT;

  CREATE TABLE log (
    key INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    state INTEGER,
    time INTEGER NOT NULL,
    actor INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    context INTEGER,
    place INTEGER,
    has_metadata INTEGER NOT NULL,
    extra TEXT,
    base TEXT,
    json TEXT NOT NULL
  ) STRICT;
  CREATE INDEX log_history ON log (key) WHERE place IS NOT NULL;
  CREATE INDEX log_context ON log (context, place) WHERE place IS NOT NULL;
  CREATE INDEX log_metadata ON log (key) WHERE has_metadata = 1;

  CREATE TABLE keys (
    id INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    task INTEGER,
    context INTEGER,
    seq INTEGER NOT NULL,
    until INTEGER,
    answer TEXT,
    UNIQUE (owner, name)
  ) STRICT;
  CREATE INDEX keys_until ON keys (until) WHERE until IS NOT NULL;
  CREATE INDEX keys_task ON keys (task) WHERE task IS NOT NULL;
  CREATE INDEX keys_context ON keys (context) WHERE context IS NOT NULL;
  `,
  // The size of a log, and runs by agent.
  `
  ALTER TABLE tasks ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
  UPDATE tasks SET bytes = (
    SELECT sum(octet_length(json)) FROM log WHERE key > number << 24 AND key < (number + 1) << 24
  );
  DROP INDEX tasks_runs;
  CREATE INDEX tasks_runs ON tasks (agent, lease_until) WHERE run_turn IS NOT NULL;
  `,
  // Deaths of processes during a run.
  `
  ALTER TABLE tasks ADD COLUMN run_deaths INTEGER;
  ALTER TABLE tasks ADD COLUMN run_alone INTEGER;
  `,
  // Rows that features of the server keep with tasks. Ids increase in the order in which keys were stored.
  `
  CREATE TABLE features (
    id INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL,
    task INTEGER NOT NULL,
    feature TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    due INTEGER,
    UNIQUE (task, feature, key)
  ) STRICT;
  CREATE INDEX features_due ON features (feature, agent, due) WHERE due IS NOT NULL;
  `,
  // The state of a task: a small value, kept until the task is deleted.
  `
  CREATE TABLE task_states (task INTEGER PRIMARY KEY, value TEXT NOT NULL) STRICT;
  `,
  // Full text search (search.ts) is off by default; the index is created when search is first switched on. And notes between processes.
  `
  CREATE TABLE search (id INTEGER PRIMARY KEY, is_on INTEGER NOT NULL, next INTEGER) STRICT;
  INSERT INTO search (id, is_on, next) VALUES (1, 0, NULL);
  CREATE TABLE search_tasks (
    task INTEGER PRIMARY KEY,
    history INTEGER NOT NULL,
    artifacts INTEGER NOT NULL,
    room INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE search_texts (
    key INTEGER PRIMARY KEY,
    words INTEGER NOT NULL,
    message TEXT,
    artifact TEXT,
    text TEXT NOT NULL
  ) STRICT;
  CREATE TABLE search_gone (task INTEGER PRIMARY KEY) STRICT;
  CREATE TRIGGER search_forgets AFTER DELETE ON tasks
  WHEN EXISTS (SELECT 1 FROM search_tasks WHERE task = old.number)
  BEGIN
    DELETE FROM search_texts WHERE key > old.number << 24 AND key < (old.number + 1) << 24;
    DELETE FROM search_tasks WHERE task = old.number;
    INSERT INTO search_gone (task) VALUES (old.number) ON CONFLICT DO NOTHING;
  END;
  CREATE TABLE notes (key TEXT PRIMARY KEY, value TEXT NOT NULL, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX notes_until ON notes (until);
  `,
  // Orders of operators, and the audit of their acts. `whole` is the full text of an indexed name.
  `
  CREATE TABLE orders (name TEXT PRIMARY KEY, whole TEXT NOT NULL, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE acts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    subject TEXT NOT NULL,
    whole TEXT NOT NULL,
    time INTEGER NOT NULL,
    json TEXT NOT NULL
  ) STRICT;
  CREATE INDEX acts_subject ON acts (subject);
  `,
];

/**
 * Upgrades a database in one transaction. Returns the previous version. Tests pass an earlier version `to`, or the `list` of another
 * release.
 */
export function migrate(driver: Driver, to: number = versions.length, list: readonly string[] = versions): number {
  return driver.transaction("write", () => {
    driver.exec("CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY) STRICT");
    const found = versionOf(driver);
    refuseTooNew(found, list.length);
    for (const [index, sql] of list.slice(0, to).entries()) {
      if (index < found) continue;
      driver.exec(sql);
      driver.prepare("INSERT INTO migrations (version) VALUES (?)").run(index + 1);
    }
    return found;
  });
}

/** Throws if `migrate` would change the database. */
export function checkVersion(driver: Driver): void {
  const tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('migrations', 'scopes')";
  if (count(driver.prepare(tables).get()) < 2) throw new UnknownVersion("The file is not a Parley database");
  refuseOthers(versionOf(driver), versions.length, "start its server with this release first");
}

/** Why a running program cannot use the file, or `undefined`. Files of the next version work. */
export function conditionOfVersion(driver: Driver): string | undefined {
  return conditionOf(versionOf(driver), versions.length);
}

/** The newest version that this release makes. */
export const newestVersion: number = versions.length;

function versionOf(driver: Driver): number {
  return count(driver.prepare("SELECT coalesce(max(version), 0) FROM migrations").get());
}
