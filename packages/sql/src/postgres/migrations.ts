import { count } from "../shared/rows.ts";
import { refuseOthers, refuseTooNew, UnknownVersion } from "../shared/versions.ts";
import type { Queries } from "./driver.ts";
import { quoted } from "./pool.ts";
import type { Schema } from "./schema.ts";

/**
 * The tables by version. A published version never changes: append a new one (`shared/versions.ts`).
 *
 * - `scopes`: agents and their owners. `counts`: the number of their tasks by state, split over several rows, so that nodes do not block each other.
 * `contexts`: contexts of owners, with their counts.
 * - `tasks`: the head of a task, a small row that each append rewrites. Large values are in other tables. `runs`: claimed runs, separate,
 * so that a lease renewal changes no index of tasks.
 * - `log`: one row per record, partitioned by the number of the task, which begins with its day of creation.
 * - `features`: rows that server features keep with tasks, with a partial index of due ones.
 * - `search_texts`: searched texts with their words. `search_tasks`: how far a log is indexed.
 * - `nodes`: processes that use the store. `rates`: budgets of callers. `notes`: notes between nodes.
 * - `orders`: standing orders of operators. `acts`: the audit of operators.
 * - `witnesses`: a row per open transaction, which proves its commit.
 *
 * Reasons: `docs/decisions/postgres.md`.
 */
export const versions: readonly string[] = [
  `
  CREATE SEQUENCE parley.numbers;
  CREATE SEQUENCE parley.places;

  CREATE TABLE parley.scopes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    parent bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    UNIQUE (parent, name)
  );

  CREATE TABLE parley.counts (
    scope bigint NOT NULL,
    shard smallint NOT NULL,
    n0 bigint NOT NULL, n1 bigint NOT NULL, n2 bigint NOT NULL, n3 bigint NOT NULL,
    n4 bigint NOT NULL, n5 bigint NOT NULL, n6 bigint NOT NULL, n7 bigint NOT NULL,
    PRIMARY KEY (scope, shard)
  ) WITH (fillfactor = 50);

  CREATE TABLE parley.contexts (
    id bigint PRIMARY KEY,
    owner bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    long_name text,
    tasks bigint NOT NULL,
    touched bigint NOT NULL,
    n0 bigint NOT NULL, n1 bigint NOT NULL, n2 bigint NOT NULL, n3 bigint NOT NULL,
    n4 bigint NOT NULL, n5 bigint NOT NULL, n6 bigint NOT NULL, n7 bigint NOT NULL,
    UNIQUE (owner, name)
  ) WITH (fillfactor = 70);
  CREATE INDEX contexts_idle ON parley.contexts (touched) WHERE tasks = 0;

  CREATE TABLE parley.context_states (context bigint PRIMARY KEY, value text NOT NULL);

  CREATE TABLE parley.replies (
    context bigint NOT NULL,
    place bigint NOT NULL,
    time bigint NOT NULL,
    json text NOT NULL,
    PRIMARY KEY (context, place)
  );

  CREATE TABLE parley.tasks (
    number bigint PRIMARY KEY,
    agent bigint NOT NULL,
    owner bigint NOT NULL,
    context bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    state smallint NOT NULL,
    status_time bigint NOT NULL,
    status_seq integer NOT NULL,
    seq integer NOT NULL,
    first_seq integer NOT NULL,
    generation bigint NOT NULL,
    bytes bigint NOT NULL,
    fence bigint NOT NULL,
    holder text,
    lease_until bigint,
    run_turn integer,
    run_attempt integer,
    run_input integer,
    run_deaths integer,
    run_alone smallint,
    has_metadata smallint NOT NULL,
    has_features smallint NOT NULL,
    touched bigint NOT NULL,
    compacted smallint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 70);
  CREATE UNIQUE INDEX tasks_id ON parley.tasks (agent, id);
  CREATE INDEX tasks_agent ON parley.tasks (agent, state, status_time, number);
  CREATE INDEX tasks_owner ON parley.tasks (owner, state, status_time, number);
  CREATE INDEX tasks_context ON parley.tasks (context, state, status_time, number);
  CREATE INDEX tasks_over ON parley.tasks (compacted, status_time, number) WHERE state >= 4;

  CREATE TABLE parley.runs (task bigint PRIMARY KEY, agent bigint NOT NULL, free_at bigint NOT NULL);
  CREATE INDEX runs_free ON parley.runs (agent, free_at, task);

  CREATE TABLE parley.checkpoints (task bigint PRIMARY KEY, value text NOT NULL);
  CREATE TABLE parley.task_states (task bigint PRIMARY KEY, value text NOT NULL);

  CREATE TABLE parley.log (
    task bigint NOT NULL,
    seq integer NOT NULL,
    kind smallint NOT NULL,
    state smallint,
    time bigint NOT NULL,
    actor smallint NOT NULL,
    turn integer NOT NULL,
    attempt integer NOT NULL,
    context bigint,
    place bigint,
    has_metadata smallint NOT NULL,
    extra text,
    base text,
    json text NOT NULL,
    PRIMARY KEY (task, seq)
  ) PARTITION BY RANGE (task);
  CREATE INDEX log_history ON parley.log (task, seq) WHERE place IS NOT NULL;
  CREATE INDEX log_context ON parley.log (context, place) WHERE place IS NOT NULL;
  CREATE INDEX log_metadata ON parley.log (task, seq) WHERE has_metadata = 1;

  CREATE TABLE parley.keys (
    owner bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    hash text NOT NULL,
    task bigint,
    context bigint,
    seq integer NOT NULL,
    until bigint,
    answer text,
    PRIMARY KEY (owner, name)
  );
  CREATE INDEX keys_until ON parley.keys (until) WHERE until IS NOT NULL;
  CREATE INDEX keys_task ON parley.keys (task) WHERE task IS NOT NULL;
  CREATE INDEX keys_context ON parley.keys (context) WHERE context IS NOT NULL;

  CREATE TABLE parley.features (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent bigint NOT NULL,
    task bigint NOT NULL,
    feature text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    value text NOT NULL,
    due bigint,
    UNIQUE (task, feature, key)
  );
  CREATE INDEX features_due ON parley.features (feature, agent, due, id) WHERE due IS NOT NULL;

  CREATE TABLE parley.search (id smallint PRIMARY KEY, is_on smallint NOT NULL, next bigint);
  INSERT INTO parley.search (id, is_on, next) VALUES (1, 0, NULL);
  CREATE TABLE parley.search_tasks (
    task bigint PRIMARY KEY,
    history integer NOT NULL,
    artifacts integer NOT NULL,
    room integer NOT NULL
  );
  CREATE TABLE parley.search_texts (
    task bigint NOT NULL,
    seq integer NOT NULL,
    message text,
    artifact text,
    text text NOT NULL,
    count integer NOT NULL,
    words text NOT NULL,
    main text NOT NULL,
    lexemes tsvector NOT NULL,
    PRIMARY KEY (task, seq)
  );
  CREATE INDEX search_lexemes ON parley.search_texts USING gin (lexemes);
  `,
  `
  CREATE TABLE parley.witnesses (
    id uuid PRIMARY KEY,
    token bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
  ) WITH (fillfactor = 10);
  `,
  // The `long_` columns have names of more than 500 characters; their beginning and a hash are indexed. `scopes.id` is drawn at random, so
  // that it is never reused, not even after a failover or restore that loses rows. `said` numbers the places of messages, in blocks of 1,024.
  // Places of version 1, from the sequence `places`, sort before them. New objects copy the grants of old ones.
  `
  ALTER TABLE parley.scopes ADD COLUMN long_name text COLLATE "C";
  ALTER TABLE parley.scopes ALTER COLUMN id SET GENERATED BY DEFAULT;
  ALTER TABLE parley.tasks ADD COLUMN long_id text COLLATE "C";
  ALTER TABLE parley.features ADD COLUMN long_key text COLLATE "C";
  CREATE SEQUENCE parley.said;
  SELECT setval('parley.said', (last_value + 2147483648) * 64) FROM parley.places WHERE is_called;
  DO $migration$
    DECLARE granted record;
    BEGIN
      FOR granted IN
        SELECT a.privilege_type, v.kind, v.made,
          CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
        FROM (VALUES ('SEQUENCE', 'parley.places'::regclass, 'parley.said'::regclass),
            ('TABLE', 'parley.tasks'::regclass, 'parley.witnesses'::regclass)) v (kind, old, made)
          JOIN pg_class c ON c.oid = v.old CROSS JOIN LATERAL aclexplode(c.relacl) a WHERE a.grantee <> c.relowner
      LOOP
        EXECUTE format('GRANT %s ON %s %s TO %s', granted.privilege_type, granted.kind, granted.made, granted.grantee);
      END LOOP;
    END
  $migration$;
  `,
  // The processes that use the store, with their heartbeats.
  `
  CREATE UNLOGGED TABLE parley.nodes (
    name text COLLATE "C" PRIMARY KEY,
    beats bigint NOT NULL,
    at timestamptz NOT NULL
  ) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
  ${grantAs("tasks", "nodes")}
  `,
  // Budgets of callers, by the hash of their name.
  `
  CREATE UNLOGGED TABLE parley.rates (
    key uuid PRIMARY KEY,
    at double precision NOT NULL,
    back_at double precision NOT NULL,
    per double precision NOT NULL,
    pace double precision NOT NULL,
    used integer NOT NULL,
    wanted integer NOT NULL,
    taken integer NOT NULL
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);
  ${grantAs("tasks", "rates")}
  `,
  // Finds the tasks that a process holds.
  `CREATE INDEX tasks_holder ON parley.tasks (holder) WHERE holder IS NOT NULL;`,
  // Notes between nodes.
  `
  CREATE UNLOGGED TABLE parley.notes (
    key text COLLATE "C" PRIMARY KEY,
    value text NOT NULL,
    until bigint NOT NULL
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000);
  CREATE INDEX notes_until ON parley.notes (until);
  ${grantAs("tasks", "notes")}
  `,
  // Orders of operators, and the audit of their acts. `whole` is the full text of an indexed name.
  `
  CREATE TABLE parley.orders (name text COLLATE "C" PRIMARY KEY, whole text NOT NULL, value text NOT NULL);
  CREATE TABLE parley.acts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subject text COLLATE "C" NOT NULL,
    whole text NOT NULL,
    time bigint NOT NULL,
    json text NOT NULL
  );
  CREATE INDEX acts_subject ON parley.acts (subject, id);
  ${grantAs("tasks", "orders")}
  ${grantAs("tasks", "acts")}
  `,
];

/** Copies the grants of one table to another. */
function grantAs(like: string, table: string): string {
  return `DO $migration$ BEGIN
    EXECUTE coalesce((
      SELECT string_agg(format('GRANT %s ON TABLE %s TO %s', a.privilege_type, 'parley.${table}'::regclass,
        CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END), '; ')
      FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
      WHERE c.oid = 'parley.${like}'::regclass AND a.grantee <> c.relowner
    ), 'SELECT 1');
  END $migration$;`;
}

/** The newest version of the tables that this release knows. */
export const newestVersion: number = versions.length;

/** SQLSTATE of a lock that was not acquired in time. */
export const lockNotAvailable = "55P03";
/** Milliseconds that a migration waits for a table lock. Readers and writers queue behind the migration, so it gives up soon and retries. */
const tableTimeout = 500;

/** Locks of migrations: two numbers, the second from the name of the schema. */
const lockClass = 0x70_61_72_6c;

/**
 * Upgrades the tables in the transaction of `queries`. Nodes that start together wait for the first node. The lock belongs to the transaction,
 * because a session lock would be lost behind a pooler. Rejects with `lockNotAvailable` if a table is in use for long.
 */
export async function migrate(
  queries: Queries,
  schema: Schema,
  to: number = newestVersion,
  list: readonly string[] = versions,
): Promise<number> {
  const sql = schema.over(queries);
  await sql(`SELECT pg_advisory_xact_lock(${lockClass}, hashtext($1))`, schema.name);
  const found = await versionOf(queries, schema);
  refuseTooNew(found, list.length);
  if (found >= to) return found;
  await queries.query(`SET LOCAL lock_timeout = ${tableTimeout}`);
  // A user without the right to create schemas may still own this schema.
  const [exists] = await sql("SELECT (to_regnamespace($1) IS NOT NULL)::int", quoted(schema.name));
  if (count(exists) === 0) await queries.query(`CREATE SCHEMA IF NOT EXISTS ${quoted(schema.name)}`);
  if (found === 0)
    await queries.query(
      schema.text(
        "CREATE TABLE parley.migrations (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())",
      ),
    );
  for (const [index, statements] of list.slice(0, to).entries()) {
    if (index < found) continue;
    await queries.query(schema.text(statements));
    await sql("INSERT INTO parley.migrations (version) VALUES ($1)", index + 1);
  }
  return found;
}

/** The statements that `migrate` would run. */
export function pending(found: number, schema: Schema): readonly string[] {
  return versions.slice(found).map((statements) => schema.text(statements));
}

/** Throws if `migrate` would change the tables. Returns their version. */
export async function checkVersion(queries: Queries, schema: Schema): Promise<number> {
  const found = await versionOf(queries, schema);
  if (found === 0)
    throw new UnknownVersion(`The database has no Parley schema ${quoted(schema.name)}: run \`parley db migrate\``);
  refuseOthers(found, newestVersion, "run `parley db migrate`");
  return found;
}

/** The version of the tables; 0 without tables. */
export async function versionOf(queries: Queries, schema: Schema): Promise<number> {
  const sql = schema.over(queries);
  const table = `${quoted(schema.name)}.migrations`;
  const [exists] = await sql("SELECT (to_regclass($1) IS NOT NULL)::int", table);
  if (count(exists) === 0) return 0;
  const [row] = await sql("SELECT coalesce(max(version), 0) FROM parley.migrations");
  return count(row);
}
