import { unavailable, type Store } from "@parley/a2a/store";
import { applyItems, readItems } from "./append.ts";
import type { Driver } from "./driver.ts";
import { Pages } from "./pages.ts";
import { readClaimable, readConversation, readHead, readList, readLog, readOnce, readTask } from "./read.ts";
import { count } from "./rows.ts";
import { ScopeIds } from "./scopes.ts";
import { sweep } from "./sweep.ts";

export interface DriverStoreOptions {
  /** Milliseconds to wait for another process that writes. */
  readonly busyTimeout: number;
  /** Milliseconds between two looks for what other processes wrote. */
  readonly watchInterval: number;
}

/** A store on a database that has its tables. */
export function driverStore(driver: Driver, { busyTimeout, watchInterval }: DriverStoreOptions): Store {
  const scopes = new ScopeIds(driver);
  const pages = new Pages();
  const watchers = new Set<() => void>();
  let working = 0;
  let closing: (() => void) | undefined;
  let closed = false;

  function attempt<T>(mode: "read" | "write", body: () => T): T {
    try {
      return driver.transaction(mode, body);
    } catch (thrown) {
      scopes.forget();
      throw thrown;
    }
  }

  async function work<T>(mode: "read" | "write", body: () => T): Promise<T> {
    if (closed) throw unavailable("The store is closed");
    working += 1;
    try {
      return await patiently(() => attempt(mode, body), busyTimeout);
    } finally {
      working -= 1;
      if (working === 0) closing?.();
    }
  }

  return {
    async append(items) {
      if (closed) throw unavailable("The store is closed");
      const read = readItems(items);
      return work("write", () => applyItems(driver, scopes, read));
    },
    head: (scope, taskId) => work("read", () => readHead(driver, scope, taskId)),
    load: (scope, taskId, options) => work("read", () => readTask(driver, scope, taskId, options)),
    read: (scope, taskId, options) => work("read", () => readLog(driver, scope, taskId, options)),
    list: (scope, query) => work("read", () => readList(driver, scopes, pages, scope, query)),
    once: (owner, key, now) => work("read", () => readOnce(driver, scopes, owner, key, now)),
    conversation: (context, limit) => work("read", () => readConversation(driver, scopes, context, limit)),
    claimable: (now, limit) => work("read", () => readClaimable(driver, now, limit)),
    sweep: (options) => work("write", () => sweep(driver, options)),

    watch(listener) {
      let seen = dataVersion(driver);
      const timer = setInterval(() => {
        const now = dataVersion(driver);
        if (now === undefined || now === seen) return;
        seen = now;
        listener();
      }, watchInterval);
      timer.unref(); // Looking out keeps no process alive.
      const stop = (): void => {
        clearInterval(timer);
        watchers.delete(stop);
      };
      watchers.add(stop);
      return stop;
    },

    async close() {
      if (closed) return;
      closed = true;
      for (const stop of watchers) stop();
      if (working > 0) await new Promise<void>((resolve) => (closing = resolve));
      driver.close();
    },
  };
}

/** Moves with each commit of another connection; a file that cannot be asked now has not moved. */
function dataVersion(driver: Driver): number | undefined {
  try {
    return count(driver.prepare("PRAGMA data_version").get());
  } catch {
    return undefined;
  }
}

/** Tries again while another process holds the lock, for a while, and lets the event loop run meanwhile. */
export async function patiently<T>(attempt: () => T, busyTimeout: number): Promise<T> {
  const end = performance.now() + busyTimeout;
  for (let pause = 1; ; pause = Math.min(2 * pause, 25)) {
    try {
      return attempt();
    } catch (thrown) {
      const code = sqliteCode(thrown);
      if (code === undefined) throw thrown;
      if (!isBusy(code) || performance.now() >= end) throw unavailable("The store cannot be reached now", thrown);
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** The name of an error of SQLite's own, as every driver gives it. */
function sqliteCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown) || typeof thrown.code !== "string") return undefined;
  return thrown.code.startsWith("SQLITE_") ? thrown.code : undefined;
}

function isBusy(code: string): boolean {
  return code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED");
}
