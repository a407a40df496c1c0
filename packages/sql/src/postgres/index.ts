/**
 * The PostgreSQL store, for many nodes.
 * @packageDocumentation
 */

import { unavailable, type Store } from "@parley/server/internal/store/index";
import type { Wakeup } from "@parley/server/internal/store/wakeup";
import { A2AError } from "@parley/a2a/internal/model/index";
import { DatabaseClock } from "./clock.ts";
import { connect, type PostgresConnectOptions } from "./connect.ts";
import type { Database } from "./database.ts";
import { sqlState, type Queries } from "./driver.ts";
import { readable } from "./errors.ts";
import { isTooNew, UnknownVersion } from "../shared/versions.ts";
import { checkVersion, lockNotAvailable, migrate, newestVersion, pending, versionOf } from "./migrations.ts";
import { Heartbeats } from "./nodes.ts";
import { ensurePartitions, Retention } from "./retention.ts";
import { quickQueries } from "./patience.ts";
import { Schema } from "./schema.ts";
import { databaseStore } from "./store.ts";
import { noWakeup, notifyWakeup, NotifyWakeup } from "./wakeup.ts";
import { Watch } from "./watch.ts";

export type { PostgresConnectOptions } from "./connect.ts";
export type { PoolClientLike, PoolLike } from "./pool.ts";
export type { ChannelListener, Connection, Listening, PostgresDriver, Queries, Result, Row, Value } from "./driver.ts";

/** Options of `postgresStore()`. */
export interface PostgresStoreOptions extends PostgresConnectOptions {
  /** The schema of the tables. A database can have several stores, each in its own schema. Default `parley`. */
  readonly schema?: string;
  /**
   * Whether opening the store creates or upgrades the tables. With `false`, the tables must already have this version, such as after
   * `parley db migrate`. Default true.
   */
  readonly migrate?: boolean;
  /**
   * Wakes the readers of other nodes, such as over NATS. Closing the store does not close the wake-up. With `false`, each node polls.
   * Default: LISTEN and NOTIFY, on a separate connection.
   */
  readonly wakeup?: Wakeup | false;
  /**
   * Milliseconds between two polls for changes by other nodes while wake-ups do not arrive. While wake-ups arrive, polls are ten times
   * rarer. Default 500.
   */
  readonly pollInterval?: number;
}

/** A store in PostgreSQL. */
export interface PostgresStore extends Store {
  /** Wakes the readers of other nodes. `isConnected` reports whether this works now. */
  readonly wakeup: Wakeup;
}

/**
 * A durable store in PostgreSQL 15 or newer, for any number of nodes.
 *
 * Rejects with an `A2AError` of code `Unavailable` if the database cannot be reached, has tables of a newer release, or `pg` is not
 * installed. The error says what to do.
 *
 * @example
 * ```ts
 * const store = await postgresStore({ database: "postgres://parley@localhost/parley" });
 * ```
 */
export async function postgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const schema = new Schema(options.schema ?? "parley");
  const database = await connect(options);
  const opened: { close(): unknown }[] = [];
  const close = async (): Promise<void> => {
    for (const each of opened.splice(0).reverse()) await each.close();
  };
  return closedOnFailure(database, async () => {
    const found =
      options.migrate === false ? await checkVersion(database, schema) : (await upgrade(database, schema)).found;
    if (found > newestVersion) {
      const versions = { schema: schema.name, found, newest: newestVersion };
      options.logger?.info("PostgreSQL: the tables are one version newer; this release works with them", versions);
    }
    await useWitnesses(database, schema);
    try {
      const wakeup = await wakeupOf(options, database, schema);
      if (wakeup !== options.wakeup) opened.push(wakeup);
      const interval = options.pollInterval ?? 500;
      const quick = quickQueries(database.driver);
      const watch = new Watch(quick, schema, { wakeup, interval, ...logging(options) });
      // Rejects if polling is impossible, because the node would silently miss appends of other nodes.
      await watch.open(database);
      const clock = new DatabaseClock(schema.over(quick));
      opened.push(clock);
      await clock.open();
      const listening = (): Queries | undefined => (wakeup instanceof NotifyWakeup ? wakeup.listening : undefined);
      const heartbeats = new Heartbeats(database, schema, listening);
      opened.push(heartbeats);
      const store = databaseStore(database, schema, { ...options, clock, wakeup, watch, heartbeats, onClose: close });
      return Object.assign(store, { wakeup });
    } catch (thrown) {
      // Otherwise the wake-up and the heartbeats would keep reconnecting.
      await close();
      throw readable(thrown);
    }
  });
}

/** The wake-ups of the options. Default: LISTEN and NOTIFY. */
async function wakeupOf(options: PostgresStoreOptions, database: Database, schema: Schema): Promise<Wakeup> {
  if (options.wakeup === false) return noWakeup;
  if (options.wakeup !== undefined) return options.wakeup;
  return notifyWakeup(database.driver, database.server.pooled, { channel: schema.name, ...logging(options) });
}

/** From now on, unanswered commits can be looked up. Deletes rows of processes that have ended. */
async function useWitnesses(database: Database, schema: Schema): Promise<void> {
  database.useWitnesses(schema.text("parley.witnesses"));
  if (!database.server.readOnly) {
    await database.query(schema.text("DELETE FROM parley.witnesses WHERE at < now() - interval '1 day'"));
  }
}

function logging({ logger }: PostgresStoreOptions): { readonly logger?: NonNullable<PostgresStoreOptions["logger"]> } {
  return logger === undefined ? {} : { logger };
}

/** The tables of a database. */
export interface PostgresVersion {
  /** The version of the tables. 0: no tables. */
  readonly found: number;
  /** The version of this release. */
  readonly newest: number;
}

/** The plan of `migratePostgres()`. */
export interface PostgresPlan extends PostgresVersion {
  /** Whether this release works with the current tables, which must have its version or the next version. */
  readonly usable: boolean;
  /** The statements that `migratePostgres()` would run, one text per version. */
  readonly statements: readonly string[];
}

/**
 * Creates or upgrades the tables before the programs that use them start. Resolves to the previous version. Several processes may
 * migrate concurrently.
 */
export function migratePostgres(options: PostgresStoreOptions): Promise<PostgresVersion> {
  return withDatabase(options, async (database, schema) => {
    const version = await upgrade(database, schema);
    // Nodes without the right to drop tables leave expired partitions to this call.
    await new Retention(database, schema, options).drop();
    return version;
  });
}

/** Reads the version of the tables, and returns what `migratePostgres()` would do, without changing anything. */
export function postgresPlan(options: PostgresStoreOptions): Promise<PostgresPlan> {
  return withDatabase(options, async (database, schema) => {
    const found = await versionOf(database, schema);
    const usable = found >= newestVersion && !isTooNew(found, newestVersion);
    return { found, newest: newestVersion, usable, statements: pending(found, schema) };
  });
}

/** A migration may rewrite large tables, and waits for other nodes that migrate. */
const withoutLimits = { mode: "write", statementTimeout: 0, lockTimeout: 0 } as const;
/** Milliseconds to retry while a table is in use, and milliseconds between two attempts. */
const [patience, pause] = [60_000, 200];

async function upgrade(database: Database, schema: Schema): Promise<PostgresVersion> {
  const end = performance.now() + patience;
  for (;;) {
    try {
      const found = await database.transaction(withoutLimits, (queries) => migrate(queries, schema));
      await database.transaction({ mode: "write" }, (queries) => ensurePartitions(queries, schema));
      return { found, newest: newestVersion };
    } catch (thrown) {
      const isBusy = thrown instanceof A2AError && sqlState(thrown.cause) === lockNotAvailable;
      if (!isBusy || performance.now() > end) throw thrown;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Opens a database for `body`, and closes it. */
async function withDatabase<T>(
  options: PostgresStoreOptions,
  body: (database: Database, schema: Schema) => Promise<T>,
): Promise<T> {
  const schema = new Schema(options.schema ?? "parley");
  const database = await connect(options);
  return closedOnFailure(database, async () => {
    const result = await body(database, schema);
    await database.close();
    return result;
  });
}

async function closedOnFailure<T>(database: Database, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (thrown) {
    await database.close().catch(() => undefined);
    if (thrown instanceof A2AError) throw thrown;
    const sentence = thrown instanceof UnknownVersion ? thrown.message : "The tables cannot be created";
    throw unavailable(sentence, thrown);
  }
}
