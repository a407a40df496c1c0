import { NeedsRoom, roomless, unavailable, type OnceRecord, type Room, type Store } from "@parley/a2a/store";
import { defaultBounds, type Bounds } from "./bounds.ts";
import { isBusy, retryWhileBusy, sqliteCode } from "./busy.ts";
import { readClaimable, readStranded } from "./claims.ts";
import { readConversation } from "./conversation.ts";
import { Counts } from "./counts.ts";
import type { Driver } from "./driver.ts";
import { readDue, readFeatures } from "./features.ts";
import { movedCode, type FileWatch } from "./files.ts";
import { KeptTasks } from "./kept-tasks.ts";
import { readHead, readList, readLog, readOnce } from "./read.ts";
import { ScopeIds } from "./scopes.ts";
import { readTask } from "./task.ts";
import type { Writer } from "./writer.ts";

export interface DriverStoreOptions {
  /** Whether the database is on a disk. */
  readonly durable: boolean;
  /** Milliseconds to wait for another process that writes. */
  readonly busyTimeout: number;
  /** Milliseconds between two looks for what other processes wrote. */
  readonly watchInterval: number;
  /** Default: what the library can return without ending the process. */
  readonly bounds?: Bounds;
  /** Of a database on a disk. */
  readonly files?: FileWatch;
}

/**
 * A store on a database that has its tables. `reader` sees what `writer` has acknowledged, and may be the connection that
 * it writes with.
 */
export function driverStore(reader: Driver, writer: Writer, options: DriverStoreOptions): Store {
  const { durable, busyTimeout, watchInterval, files } = options;
  const scopes = new ScopeIds(reader);
  const kept = new KeptTasks();
  const counts = new Counts();
  const { bounds = defaultBounds } = options;
  const listeners = new Set<() => void>();
  let watching: NodeJS.Timeout | undefined;
  let working = 0;
  let closing: (() => void) | undefined;
  let closed = false;

  /** What SQLite threw, in the words of the port. */
  function readable(thrown: unknown): unknown {
    const code = sqliteCode(thrown);
    if (code === movedCode) files?.note(thrown);
    return code === undefined ? thrown : unavailable("The store cannot be reached now", thrown);
  }

  /** `room`: whom to ask before more is read than `body` may without; it throws `NeedsRoom` then. As `withRoom`, without its promise. */
  async function work<T>(body: (most: number) => Promise<T>, room?: Room): Promise<T> {
    if (closed) throw unavailable("The store is closed");
    working += 1;
    try {
      for (let most = room === undefined ? Infinity : roomless; ;) {
        try {
          return await body(most);
        } catch (thrown) {
          if (room === undefined || !(thrown instanceof NeedsRoom)) throw readable(thrown);
          most = thrown.bytes;
        }
        await room.reserve(most);
        if (closed) throw unavailable("The store is closed");
      }
    } finally {
      working -= 1;
      if (working === 0) closing?.();
    }
  }

  /** For what one statement reads, which needs no transaction, and for readers that begin their own. */
  const read = <T>(body: (most: number) => T, room?: Room): Promise<T> =>
    work((most) => {
      files?.check();
      return retryWhileBusy(() => body(most), busyTimeout);
    }, room);
  const readTogether = <T>(body: (most: number) => T, room?: Room): Promise<T> =>
    read((most) => reader.transaction("read", () => body(most)), room);

  async function pollForChanges(): Promise<void> {
    // A file that cannot be asked now has not moved.
    const moved = await work(() => writer.moved()).catch(() => false);
    if (moved) for (const listener of listeners) listener();
  }

  return {
    durable,
    append: (items) => work(() => writer.append(items)),
    sweep: (sweeping) =>
      work(async () => {
        const report = await writer.sweep(sweeping);
        // The ids and numbers of deleted tasks can be given again.
        if (report.deleted > 0) kept.forget();
        return report;
      }),
    head: (scope, taskId) => read(() => readHead(reader, scope, taskId)),
    claimable: (query) => readTogether(() => readClaimable(reader, scopes, query)),
    stranded: (query) => readTogether(() => readStranded(reader, scopes, query)),
    features: (scope, taskId, feature) => read(() => readFeatures(reader, scope, taskId, feature)),
    dueFeatures: (query) => readTogether(() => readDue(reader, scopes, query)),
    load: (scope, taskId, loading) =>
      read((most) => readTask(reader, kept, bounds, scope, taskId, loading, most), loading.room),
    read: (scope, taskId, reading) =>
      readTogether((most) => readLog(reader, bounds, scope, taskId, reading, most), reading.room),
    list: (scope, query) =>
      readTogether((most) => readList(reader, { scopes, kept, counts, bounds }, scope, query, most), query.room),
    conversation: (context, bounds) => readTogether(() => readConversation(reader, scopes, context, bounds)),

    // Every message asks: at once where nobody holds the file up.
    once(owner, key, now) {
      const find = (): OnceRecord | undefined => readOnce(reader, scopes, owner, key, now);
      if (closed) return read(find);
      try {
        files?.check();
        return find();
      } catch (thrown) {
        if (isBusy(sqliteCode(thrown))) return read(find);
        throw readable(thrown);
      }
    },

    watch(listener) {
      const told = (): void => listener();
      listeners.add(told);
      watching ??= setInterval(() => void pollForChanges(), watchInterval);
      watching.unref(); // Polling keeps no process alive.
      return () => {
        listeners.delete(told);
        if (listeners.size > 0) return;
        clearInterval(watching);
        watching = undefined;
      };
    },

    async close() {
      if (closed) return;
      closed = true;
      clearInterval(watching);
      if (working > 0) await new Promise<void>((resolve) => (closing = resolve));
      await writer.close();
      reader.close();
    },
  };
}
