import { silentLogger, type Clock, type Logger } from "@parley/a2a/internal/base/index";
import {
  lazyOperators,
  lazyUpkeep,
  unavailable,
  type Room,
  type Store,
  type StoreCondition,
  type StoreRates,
} from "@parley/server/internal/store/index";
import type { Wakeup } from "@parley/server/internal/store/wakeup";
import { OpenCalls } from "../shared/calls.ts";
import type { Bounds, Steps } from "../shared/dialect.ts";
import { stateOfIndex, stepIndex } from "../shared/search.ts";
import { defaultBounds, KeptTasks, readFeatures, readHead, readLog, readPage, readTask } from "../shared/tasks.ts";
import { conditionOf } from "../shared/versions.ts";
import type { Database } from "./database.ts";
import { dialect, run } from "./dialect.ts";
import type { Connection } from "./driver.ts";
import { readable } from "./errors.ts";
import { LogReads } from "./log-reads.ts";
import { newestVersion } from "./migrations.ts";
import { forget, Rates, type Heartbeats } from "./nodes.ts";
import {
  findListed,
  readClaimable,
  readConversation,
  readDue,
  readNotes,
  readOnce,
  readStranded,
  writeNotes,
} from "./queries.ts";
import { hasPartition, Retention } from "./retention.ts";
import { int, type Schema, type Sql } from "./schema.ts";
import { findTasks, search, switchIndex } from "./search.ts";
import { sweep, type Write } from "./sweep.ts";
import type { Watch } from "./watch.ts";
import { Writer } from "./writer.ts";

export interface DatabaseStoreOptions {
  /** Default: `defaultBounds`. */
  readonly bounds?: Bounds;
  /** Default: silent. */
  readonly logger?: Logger;
  /** The clock of the database. */
  readonly clock: Clock;
  /** Wakes the readers of other nodes. */
  readonly wakeup: Wakeup;
  /** Called when the last call has ended, before the database is closed. */
  readonly onClose?: () => Promise<void>;
  /** Reports changes by other nodes. Ended by the store. */
  readonly watch: Watch;
  /** Sends heartbeats to the database. */
  readonly heartbeats: Heartbeats;
}

/** A store on a database that has its tables. */
export function databaseStore(database: Database, schema: Schema, options: DatabaseStoreOptions): Store {
  const { bounds = defaultBounds, logger = silentLogger, clock, wakeup, watch, heartbeats } = options;
  const reads = { dialect, kept: new KeptTasks(), bounds };
  const writer = new Writer(database, schema, { logger, wakeup, onPlaces: (places) => watch.took(places) });
  const calls = new Calls(database, schema);
  const logReads = new LogReads(database, schema);
  const retention = new Retention(database, schema, { logger });

  const write: Write = (body) => database.transaction({ mode: "write" }, (queries) => body(schema.over(queries)));

  return {
    durable: true,
    clock,
    ...(database.driver.use && { connections: database.driver.use }),
    append: (items) => calls.run(() => writer.append(items)),
    sweep: (sweeping) =>
      calls.run(async () => {
        await writer.settled();
        return sweep(write, { ...sweeping, bounds, retention });
      }),
    upkeep: lazyUpkeep(async () => (await import("./upkeep.ts")).upkeepOf(calls, write, retention)),
    operators: lazyOperators(async () => (await import("./operators.ts")).operatorsOf(calls, write)),
    search: {
      use: (on) =>
        calls.run(async () => {
          await writer.settled();
          const { isOn, next } = await run(schema.over(database), stateOfIndex());
          // Most stores never had an index.
          if (on !== isOn) await write((sql) => switchIndex(sql, on));
          if (!on || (isOn && next === undefined)) return;
          // Closing waits for this call, so stop here. The next process continues.
          while (await write((sql) => run(sql, stepIndex(search)))) calls.checkOpen();
        }),
      find: (owner, query) => calls.readTogether((sql) => findTasks(sql, owner, query)),
    },
    head: (scope, taskId) => calls.read((sql) => run(sql, readHead(dialect, scope, taskId))),
    features: (scope, taskId, feature) => calls.read((sql) => run(sql, readFeatures(dialect, scope, taskId, feature))),
    dueFeatures: (query) => calls.read((sql) => readDue(sql, query)),
    nodes: {
      beat: (node, within) => calls.run(() => heartbeats.beat(node, within)),
      forget: (nodes) => calls.read((sql) => forget(sql, nodes)),
    },
    rates: ratesOf(new Rates(database, schema), calls, logger),
    notes: {
      read: (keys, now) => calls.read((sql) => readNotes(sql, keys, now)),
      write: (notes, now) => calls.read((sql) => writeNotes(sql, notes, now)),
    },
    claimable: (query) => calls.read((sql) => readClaimable(sql, query)),
    stranded: (query) => calls.read((sql) => readStranded(sql, query)),
    load: (scope, taskId, loading) =>
      calls.steps((most) => readTask(reads, scope, taskId, loading, most), loading.room),
    async read(scope, taskId, reading) {
      const found = await calls.run(() => logReads.read(scope, taskId, reading));
      if (found !== "alone") return found;
      return calls.steps((most) => readLog(reads, scope, taskId, reading, most), reading.room);
    },
    list: (scope, query) =>
      calls.readTogether(
        async (sql, most) => run(sql, readPage(reads, await findListed(sql, scope, query), query, most)),
        query.room,
      ),
    conversation: (context, wanted) => calls.readTogether((sql) => readConversation(sql, context, wanted)),
    once: (owner, key, now) => calls.read((sql) => readOnce(sql, owner, key, now)),
    watch: (listener) => watch.add(listener),
    check: (signal) => calls.run(() => checkDatabase(database, schema, watch, signal)),
    async close() {
      if (!calls.end()) return;
      watch.end();
      await calls.ended();
      await options.onClose?.();
      await database.close();
    },
  };
}

function ratesOf(rates: Rates, calls: Calls, logger: Logger): StoreRates {
  return {
    async take(uses) {
      const answers = await calls.run(() => rates.take(uses));
      if (rates.isUntidy) {
        const failed = (cause: unknown): void =>
          logger.debug("PostgreSQL: failed to delete expired rate budgets", { cause });
        void calls.run(() => rates.tidy()).catch(failed);
      }
      return answers;
    },
  };
}

/** The database retries calls, and rejects with the errors of the port. */
export class Calls extends OpenCalls {
  readonly #database: Database;
  readonly #schema: Schema;

  constructor(database: Database, schema: Schema) {
    super();
    this.#database = database;
    this.#schema = schema;
  }

  /** Reads with one statement, or with several that may see different snapshots. */
  read<T>(body: (sql: Sql) => Promise<T>): Promise<T> {
    return this.run(() => body(this.#schema.over(this.#database)));
  }

  /** Reads with several statements in one snapshot. `body` gets the number of bytes that it may read. */
  readTogether<T>(body: (sql: Sql, most: number) => Promise<T>, room?: Room): Promise<T> {
    return this.run(
      (most) => this.#database.transaction({ mode: "read" }, (queries) => body(this.#schema.over(queries), most)),
      room,
    );
  }

  /** Like `readTogether`, for generators. */
  steps<T>(body: (most: number) => Steps<T>, room?: Room): Promise<T> {
    return this.readTogether((sql, most) => run(sql, body(most)), room);
  }
}

/** The server-side timeout of a check, in milliseconds. Its connection counts as lost after twice that time. */
const limit = 1000;

/** One message contains the statement and its timeout, which applies to the implicit transaction of that message. */
const read = `SET LOCAL statement_timeout = ${limit};
  SELECT pg_is_in_recovery()::int, (current_setting('transaction_read_only') = 'on')::int,
    (SELECT coalesce(max(version), 0) FROM parley.migrations),
    (has_table_privilege('parley.tasks', 'INSERT') AND has_table_privilege('parley.tasks', 'UPDATE')
      AND has_table_privilege('parley.log', 'INSERT'))::int`;

/** Checks the database on a connection of the pool, without retries. */
async function checkDatabase(
  database: Database,
  schema: Schema,
  watch: Watch,
  signal?: AbortSignal,
): Promise<StoreCondition> {
  try {
    const reason = await database.driver.hold(async (connection) => {
      // A busy pool may lend a connection after the caller has given up.
      if (signal?.aborted === true) throw unavailable("The check has ended");
      return whyReadOnly(connection, schema, database);
    }, 2 * limit);
    return { writable: reason === undefined, ...(reason !== undefined && { reason }), changes: watch.hearing };
  } catch (thrown) {
    throw readable(thrown);
  }
}

/** The reason why nothing can be stored. */
async function whyReadOnly(connection: Connection, schema: Schema, database: Database): Promise<string | undefined> {
  const [row] = (await connection.query(schema.text(read))).rows;
  if (int(row, 0) === 1) return "The database is read-only: the server is a replica";
  if (int(row, 1) === 1) return "The database is read-only: default_transaction_read_only is on";
  const version = conditionOf(int(row, 2), newestVersion);
  if (version !== undefined) return version;
  if (int(row, 3) === 0) return "The database user may not write to the tables";
  if (!(await hasPartition(connection, schema))) {
    return "The log has no partition for this week, and the database user may not create one: run `parley db migrate`";
  }
  return database.disk.isFull ? "The disk of the database is full" : undefined;
}
