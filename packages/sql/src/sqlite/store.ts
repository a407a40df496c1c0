import {
  lazyOperators,
  lazyUpkeep,
  unavailable,
  type OnceRecord,
  type Room,
  type Store,
  type StoreCondition,
} from "@parley/server/internal/store/index";
import { OpenCalls } from "../shared/calls.ts";
import type { Bounds, Steps } from "../shared/dialect.ts";
import {
  defaultBounds,
  KeptTasks,
  readFeatures,
  readHead,
  readKept,
  readLog,
  readPage,
  readTask,
} from "../shared/tasks.ts";
import { dialect, run } from "./dialect.ts";
import { isBusy, movedCode, retryWhileBusy, sqliteCode, type Driver } from "./driver.ts";
import type { FileWatch } from "./files.ts";
import { Counts, findListed } from "./list.ts";
import { conditionOfVersion } from "./migrations.ts";
import { readClaimable, readConversation, readDue, readNotes, readOnce, readStranded } from "./queries.ts";
import { ScopeIds } from "./scopes.ts";
import { findTasks, isIndexed } from "./search.ts";
import type { Writer } from "./writer.ts";

export interface DriverStoreOptions {
  /** Whether the database is on disk. */
  readonly durable: boolean;
  /** Milliseconds to wait while another process writes. */
  readonly busyTimeout: number;
  /** Milliseconds between two checks for changes by other processes. */
  readonly watchInterval: number;
  /** Default: the maximum sizes that the library can return without crashing the process. */
  readonly bounds?: Bounds;
  /** The files of a database on a disk. */
  readonly files?: FileWatch;
}

/** A store on a database with tables. `reader` sees what `writer` has acknowledged, and may be the same connection. */
export function driverStore(reader: Driver, writer: Writer, options: DriverStoreOptions): Store {
  const { durable, bounds = defaultBounds, watchInterval } = options;
  const scopes = new ScopeIds(reader);
  const kept = new KeptTasks();
  const reads = { dialect, kept, bounds };
  const memory = { scopes, counts: new Counts() };
  const calls = new Calls(reader, options);
  const watch = new Watch(watchInterval, () => calls.run(() => writer.moved()));

  return {
    durable,
    append: (items) => calls.write(() => writer.append(items)),
    sweep: (sweeping) =>
      calls.write(async () => {
        const report = await writer.sweep(sweeping);
        // New tasks can reuse the ids and numbers of deleted ones.
        if (report.deleted > 0) kept.forget();
        return report;
      }),
    upkeep: lazyUpkeep(async () => (await import("./upkeep.ts")).upkeepOf(reader, writer, calls, kept)),
    operators: lazyOperators(async () => (await import("./operators.ts")).operatorsOf(writer, calls)),
    search: {
      use: (on) =>
        calls.run(async () => {
          // Most stores never had an index, and a write would wake other processes.
          if (!on && !isIndexed(reader)) return;
          for (let more = await writer.index(on ? "on" : "off"); more;) {
            // Closing waits for this call, so stop here. The next process continues.
            calls.checkOpen();
            more = await writer.index("more");
          }
        }),
      find: (owner, query) => calls.readTogether(() => findTasks(reader, scopes, owner, query)),
    },
    head: (scope, taskId) => calls.read(() => run(reader, readHead(dialect, scope, taskId))),
    features: (scope, taskId, feature) => calls.read(() => run(reader, readFeatures(dialect, scope, taskId, feature))),
    dueFeatures: (query) => calls.readTogether(() => readDue(reader, scopes, query)),
    notes: {
      read: (keys, now) => calls.readTogether(() => readNotes(reader, keys, now)),
      write: (notes, now) => calls.run(() => writer.note(notes, now)),
    },
    claimable: (query) => calls.readTogether(() => readClaimable(reader, scopes, query)),
    stranded: (query) => calls.readTogether(() => readStranded(reader, scopes, query)),
    load: (scope, taskId, loading) =>
      calls.read((most) => {
        // A cached task costs one statement and no transaction.
        const { task, snapshot } = run(reader, readKept(reads, scope, taskId, loading, most));
        if (task === undefined) return snapshot;
        return reader.transaction("read", () => run(reader, readTask(reads, scope, taskId, loading, most)));
      }, loading.room),
    read: (scope, taskId, reading) => calls.steps((most) => readLog(reads, scope, taskId, reading, most), reading.room),
    list: (scope, query) =>
      calls.readTogether(
        (most) => run(reader, readPage(reads, findListed(reader, memory, scope, query), query, most)),
        query.room,
      ),
    conversation: (context, wanted) => calls.readTogether(() => readConversation(reader, scopes, context, wanted)),
    // Without a promise, because this is called for every message.
    once: (owner, key, now): OnceRecord | undefined | Promise<OnceRecord | undefined> =>
      calls.readAtOnce(() => readOnce(reader, scopes, owner, key, now)),
    watch: (listener) => watch.add(listener),
    async check(): Promise<StoreCondition> {
      const reason =
        (await calls.read(() => conditionOfVersion(reader))) ?? (await calls.whyFull(() => writer.probe()));
      return { writable: reason === undefined, ...(reason !== undefined && { reason }) };
    },
    async close() {
      if (!calls.end()) return;
      watch.end();
      await calls.ended();
      await writer.close();
      reader.close();
    },
  };
}

const fullDisk = "The disk of the database is full";

function sentenceOf(code: string): string {
  if (code === "SQLITE_FULL") return fullDisk;
  const isReadOnly = code.startsWith("SQLITE_READONLY") && code !== movedCode;
  return isReadOnly ? "The file of the database is read-only" : "The store cannot be reached now";
}

/** Retries calls while the file is busy, and rejects with the errors of the port. */
export class Calls extends OpenCalls {
  readonly #reader: Driver;
  readonly #busyTimeout: number;
  readonly #files: FileWatch | undefined;
  /** Whether the last write found the disk full. */
  #isFull = false;
  #probing: Promise<void> | undefined;

  constructor(reader: Driver, { busyTimeout, files }: DriverStoreOptions) {
    super();
    this.#reader = reader;
    this.#busyTimeout = busyTimeout;
    this.#files = files;
  }

  /** Writes, and notes whether the disk is full. */
  async write<T>(body: () => Promise<T>): Promise<T> {
    const written = await this.run(body);
    this.#isFull = false;
    return written;
  }

  /** If the last write found the disk full, probes whether it still is. Only one probe runs at a time. */
  async whyFull(probe: () => Promise<void>): Promise<string | undefined> {
    if (!this.#isFull) return undefined;
    this.#probing ??= this.write(probe)
      .catch(() => {})
      .finally(() => (this.#probing = undefined));
    await this.#probing;
    return this.#isFull ? fullDisk : undefined;
  }

  /** Runs a read with one statement, which needs no transaction, or a read that begins its own transactions. */
  read<T>(body: (most: number) => T, room?: Room): Promise<T> {
    return this.run((most) => {
      this.#files?.check();
      return retryWhileBusy(() => body(most), this.#busyTimeout);
    }, room);
  }

  /** Reads with several statements in one transaction. */
  readTogether<T>(body: (most: number) => T, room?: Room): Promise<T> {
    return this.read((most) => this.#reader.transaction("read", () => body(most)), room);
  }

  /** Like `readTogether`, for generators. */
  steps<T>(body: (most: number) => Steps<T>, room?: Room): Promise<T> {
    return this.readTogether((most) => run(this.#reader, body(most)), room);
  }

  /** Reads with one statement, without a promise unless the file is busy. */
  readAtOnce<T>(body: () => T): T | Promise<T> {
    if (this.isClosed) return this.read(body);
    try {
      this.#files?.check();
      return body();
    } catch (thrown) {
      if (isBusy(sqliteCode(thrown))) return this.read(body);
      throw this.readable(thrown);
    }
  }

  protected override readable(thrown: unknown): unknown {
    const code = sqliteCode(thrown);
    if (code === movedCode) this.#files?.note(thrown);
    if (code === undefined) return thrown;
    if (code === "SQLITE_FULL") this.#isFull = true;
    return unavailable(sentenceOf(code), thrown);
  }
}

/** Calls listeners after other processes have written. */
class Watch {
  readonly #interval: number;
  readonly #moved: () => Promise<boolean>;
  readonly #listeners = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;

  constructor(interval: number, moved: () => Promise<boolean>) {
    this.#interval = interval;
    this.#moved = moved;
  }

  /** Returns a function that removes the listener. */
  add(listener: () => void): () => void {
    // The same function may be added twice.
    const entry = (): void => listener();
    this.#listeners.add(entry);
    this.#timer ??= setInterval(() => void this.#poll(), this.#interval);
    this.#timer.unref(); // Polling must not keep the process alive.
    return () => {
      this.#listeners.delete(entry);
      if (this.#listeners.size === 0) this.end();
    };
  }

  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #poll(): Promise<void> {
    // If the database cannot be read now, there are no changes to report.
    const moved = await this.#moved().catch(() => false);
    if (moved) for (const listener of this.#listeners) listener();
  }
}
