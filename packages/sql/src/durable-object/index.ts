/**
 * A store in the SQLite database of a Durable Object.
 * @packageDocumentation
 */

import { utf8Length } from "@parley/a2a/internal/base/index";
import { unavailable, type Store } from "@parley/server/internal/store/index";
import { UnknownVersion } from "../shared/versions.ts";
import { driverOver, type Driver, type LibraryStatement, type Row, type Value } from "../sqlite/driver.ts";
import { migrate } from "../sqlite/migrations.ts";
import { driverStore } from "../sqlite/store.ts";
import { driverWriter, type Writer } from "../sqlite/writer.ts";

/** Options of `durableObjectStore()`. */
export interface DurableObjectStoreOptions {
  /**
   * Maximum milliseconds after a write until an alarm wakes the object. Each write sets the alarm unless an earlier alarm is set. If the
   * object stops during a task, the alarm wakes the object, which resumes the task. The class needs an `alarm()` that calls `onAlarm()`.
   * With `false`, interrupted tasks wait for the next request. Default 30 s.
   */
  readonly alarm?: number | false;
}

/** The members of a handler that `onAlarm` needs. */
export interface Wakeable {
  /** See `Handler.wake()`. */
  wake(options: { readonly wait: number }): Promise<{ readonly next?: number }>;
}

/** A store in a Durable Object. */
export interface DurableObjectStore extends Store {
  /**
   * Call this in the `alarm()` of the class. It does due work, waits for running work, and sets the next alarm. If the handler rejects, so
   * does this call, and the platform retries.
   */
  onAlarm(this: void, handler: Wakeable): Promise<void>;
}

/** Maximum milliseconds that an alarm waits for running work. The platform ends an alarm after 15 minutes. */
const longest = 10 * 60_000;
/** Interval at which an object with data is woken to delete old data, in milliseconds. */
const day = 24 * 60 * 60_000;

/**
 * Maximum bytes of a record. A row can have 2 MB, and a task's first row contains its metadata twice. Larger tasks are not compacted,
 * because compaction stores an artifact as one row.
 */
const recordBytes = 1_500_000;
/** An object has 128 MB of memory. */
const bounds = { text: 32 << 20, compaction: 1 << 20, join: 1 << 20 };

/**
 * A durable store in the SQLite database of a Cloudflare Durable Object. Create one per object, in the constructor of its class.
 *
 * @param storage - `ctx.storage` of a class in `new_sqlite_classes`.
 * @throws A2AError `Unavailable` if the object contains data of another program or of a newer release.
 *
 * @example
 * ```ts
 * class Agents {
 *   readonly #store: DurableObjectStore;
 *   readonly #handler: Handler;
 *
 *   constructor(ctx: { readonly storage: ObjectStorage }) {
 *     this.#store = durableObjectStore(ctx.storage);
 *     this.#handler = createHandler(agent, { store: this.#store, publicUrl: "https://agents.example.com" });
 *   }
 *
 *   fetch(request: Request): Promise<Response> {
 *     return this.#handler.fetch(request);
 *   }
 *
 *   alarm(): Promise<void> {
 *     return this.#store.onAlarm(this.#handler);
 *   }
 * }
 * ```
 */
export function durableObjectStore(
  storage: ObjectStorage,
  { alarm = 30_000 }: DurableObjectStoreOptions = {},
): DurableObjectStore {
  const alarms = new Alarms(storage);
  let isOpen = false;
  const driver = objectDriver(storage, () => {
    // Creating tables sets no alarm, because a new alarm would replace the one that started the object.
    if (isOpen && alarm !== false) alarms.within(alarm);
  });
  create(driver);
  isOpen = true;
  const writer = driverWriter(driver, { busyTimeout: 0, bounds });
  const synced = {
    ...writer,
    async append(...input: Parameters<Writer["append"]>): ReturnType<Writer["append"]> {
      const outcomes = await writer.append(...input);
      await alarms.pending;
      // The platform confirms writes later, and may let an open stream continue before that.
      await storage.sync();
      return outcomes;
    },
  };
  const store = driverStore(driver, synced, { durable: true, busyTimeout: 0, watchInterval: day, bounds });
  return {
    ...store,
    exclusive: true,
    recordBytes,
    // Nothing to scrub, because the platform keeps the file and can restore it for thirty days.
    ...(store.upkeep !== undefined && { upkeep: { ...store.upkeep, scrub: async () => undefined } }),
    // There are no other writers.
    watch: () => () => undefined,
    async onAlarm(handler) {
      alarms.rang();
      const { next = Infinity } = await handler.wake({ wait: longest });
      const latest = isEmpty(driver) ? Infinity : Date.now() + day;
      await alarms.setFor(Math.max(Math.min(next, latest), Date.now() + 1_000));
    },
  };
}

function create(driver: Driver): void {
  try {
    migrate(driver);
  } catch (thrown) {
    throw unavailable(thrown instanceof UnknownVersion ? thrown.message : "The database cannot be opened", thrown);
  }
}

/** Whether the object has nothing that can expire. */
function isEmpty(driver: Driver): boolean {
  return driver.prepare("SELECT 1 FROM scopes WHERE is_context = 1 LIMIT 1").get() === undefined;
}

/** The only alarm of an object. */
class Alarms {
  readonly #storage: ObjectStorage;
  /** The time of the alarm; unknown after a start. */
  #at = -Infinity;
  /** The last call of `within`. */
  pending: Promise<void> | undefined;

  constructor(storage: ObjectStorage) {
    this.#storage = storage;
  }

  /** Call this in a transaction. The alarm is set if the transaction commits. */
  within(ms: number): void {
    const now = Date.now();
    if (this.#at > now && this.#at <= now + ms) return;
    this.pending = this.setFor(now + ms);
    // Setting an alarm fails if the class has no alarm(). The write reports that error.
    this.pending.catch(() => (this.#at = -Infinity));
  }

  rang(): void {
    this.#at = -Infinity;
  }

  async setFor(time: number): Promise<void> {
    if (time === Infinity) return;
    this.#at = time;
    await this.#storage.setAlarm(Math.ceil(time));
  }
}

/** Maximum parameters of one statement in a Durable Object. */
const maxParameters = 100;

/** Maximum bytes of a text. The platform allows 2 MB for a row; a local workerd allows more. */
const maxBytes = 2_000_000;

/**
 * The driver for the SQLite of a Durable Object. Calls are synchronous and exclusive, so reads need no transaction. The platform caches
 * prepared statements, opens and closes the database, and rejects `BEGIN` and most pragmas.
 *
 * @param onWrite - Called in each write transaction, before the commit.
 */
function objectDriver(storage: ObjectStorage, onWrite: () => void): Driver {
  const { sql } = storage;
  const { prepare, exec } = driverOver({
    prepare: (text) => statementOf(sql, text),
    exec: (text) => void rowsOf(sql, text, []),
    inTransaction: () => false,
    close() {},
  });
  return {
    prepare,
    exec,
    maxParameters,
    isAlone: true,
    transaction(mode, body) {
      if (mode === "read") return body();
      return storage.transactionSync(() => {
        const result = body();
        onWrite();
        return result;
      });
    },
    close() {},
  };
}

/** `changes` and `lastId` are getters, which the caller reads before the next statement. */
function statementOf(sql: SqlStorage, text: string): LibraryStatement {
  const count = (of: string): number => Number(rowsOf(sql, `SELECT ${of}()`, [])[0]?.[0]);
  return {
    run(values) {
      for (const value of values) checkSize(value);
      rowsOf(sql, text, values);
      return {
        get changes() {
          return count("changes");
        },
        get lastId() {
          return count("last_insert_rowid");
        },
      };
    },
    get: (values) => rowsOf(sql, text, values)[0],
    all: (values) => rowsOf(sql, text, values),
  };
}

function checkSize(value: Value): void {
  // A UTF-16 code unit has at most three bytes in UTF-8.
  if (typeof value !== "string" || value.length <= maxBytes / 3) return;
  const bytes = utf8Length(value);
  if (bytes > maxBytes) throw new RangeError(`Text has ${bytes} bytes; a Durable Object stores at most ${maxBytes}`);
}

function rowsOf(sql: SqlStorage, text: string, values: readonly Value[]): readonly Row[] {
  try {
    // Reads all rows, because a cursor that is not exhausted keeps its statement busy.
    return [...sql.exec(text, ...values).raw()] as unknown as readonly Row[];
  } catch (thrown) {
    throw withCode(thrown);
  }
}

/** Platform errors end with the code of SQLite. */
function withCode(thrown: unknown): unknown {
  const code = thrown instanceof Error ? /\bSQLITE_[A-Z_]+/.exec(thrown.message)?.[0] : undefined;
  return code === undefined ? thrown : Object.assign(new Error((thrown as Error).message, { cause: thrown }), { code });
}

/* The members of a Durable Object's `ctx.storage` that are used here, as of compatibility date 2025-01-01. */

/** A value of a column. Columns of Parley have no blobs. */
export type SqlValue = string | number | ArrayBuffer | null;

/** The rows of a statement that has run. */
export interface SqlCursor {
  /** The rows, each an array of values. */
  raw(): Iterable<readonly SqlValue[]>;
}

/** `ctx.storage.sql`. */
export interface SqlStorage {
  /** Runs one statement with parameters, or several statements without parameters. */
  exec(query: string, ...bindings: (string | number | null)[]): SqlCursor;
}

/** `ctx.storage` of a Durable Object whose class stores its data in SQLite. */
export interface ObjectStorage {
  /** The database. */
  readonly sql: SqlStorage;
  /** Runs `body` in a transaction, which is rolled back when it throws. */
  transactionSync<T>(body: () => T): T;
  /** Resolves when all earlier writes are on disk. */
  sync(): Promise<void>;
  /** Sets the alarm of the object, in milliseconds since the Unix epoch. */
  setAlarm(time: number): Promise<void>;
}
