/**
 * The store of a Durable Object, in its SQLite.
 * @packageDocumentation
 */

import { unavailable, type Store } from "@parley/server/internal/store/index";
import type { Driver } from "../sqlite/driver.ts";
import { UnknownVersion } from "../shared/versions.ts";
import { migrate } from "../sqlite/migrations.ts";
import { driverStore } from "../sqlite/store.ts";
import { driverWriter, type Writer } from "../sqlite/writer.ts";
import { objectDriver, type ObjectStorage } from "./driver.ts";

export type { ObjectStorage, SqlCursor, SqlStorage, SqlValue } from "./driver.ts";

/** Options of `durableObjectStore()`. */
export interface DurableObjectStoreOptions {
  /**
   * Maximum milliseconds after a write until the object is woken: each write sets its alarm, unless an earlier one is set. An object
   * that ends during a task is then woken and takes it over. The class must have an `alarm()` that calls `onAlarm()`. `false`: lost
   * runs wait for the next request. Default 30 s.
   */
  readonly alarm?: number | false;
}

/** The handler of `createHandler()`, as `onAlarm` needs it. */
export interface Wakeable {
  /** See `Handler.wake()`. */
  wake(options: { readonly wait: number }): Promise<{ readonly next?: number }>;
}

/** A store in a Durable Object. */
export interface DurableObjectStore extends Store {
  /**
   * For `alarm()` of the class: does what is due, waits for running work, and sets the next alarm. Rejects if the handler does; the
   * platform then retries.
   */
  onAlarm(this: void, handler: Wakeable): Promise<void>;
}

/** How long an alarm waits for running work. The platform ends it after 15 minutes. */
const longest = 10 * 60_000;
/** How often an object with data is woken to delete old data. */
const day = 24 * 60 * 60_000;

/**
 * Maximum bytes of a record: a row has 2 MB, and the first row of a task has its metadata twice. Larger tasks are not compacted, since
 * an artifact is then one row.
 */
const recordBytes = 1_500_000;
/** An object has 128 MB of memory. */
const bounds = { text: 32 << 20, compaction: 1 << 20, join: 1 << 20 };

/**
 * A durable store in the SQLite of a Durable Object of Cloudflare. Make one for each object, in the constructor of its class.
 *
 * @param storage - `ctx.storage` of a class in `new_sqlite_classes`.
 * @throws A2AError `Unavailable` where the object has other data, or data of a newer release.
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
    // Creating tables needs no alarm, which would replace the one that starts the object.
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
    // The platform keeps the file, and can restore it for thirty days.
    ...(store.upkeep !== undefined && { upkeep: { ...store.upkeep, scrub: async () => undefined } }),
    // Nothing else writes.
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

/** Whether there is nothing to expire. */
function isEmpty(driver: Driver): boolean {
  return driver.prepare("SELECT 1 FROM scopes WHERE is_context = 1 LIMIT 1").get() === undefined;
}

/** The only alarm of an object. */
class Alarms {
  readonly #storage: ObjectStorage;
  /** When it is set for; unknown after a start. */
  #at = -Infinity;
  /** The last call of `within`. */
  pending: Promise<void> | undefined;

  constructor(storage: ObjectStorage) {
    this.#storage = storage;
  }

  /** Call it in a transaction: the alarm is set if it commits. */
  within(ms: number): void {
    const now = Date.now();
    if (this.#at > now && this.#at <= now + ms) return;
    this.pending = this.setFor(now + ms);
    // The write reports the error: a class without alarm() cannot have one.
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
