/**
 * What the store needs from a library that runs SQLite; `drivers/` has one file for each library. The SQL consists of
 * constants of the source code: every value is passed as a parameter.
 */
export interface Driver {
  /** Prepares a statement once and keeps it: call it again with the same text at any time. */
  prepare(sql: string): Statement;
  /** Runs statements that have no parameters and no result. */
  exec(sql: string): void;
  /**
   * Runs `body` in one transaction, which is rolled back when `body` throws. `write` takes the lock at the start, so that
   * what was read still holds when it is written. `read` sees the database at one moment.
   */
  transaction<T>(mode: "read" | "write", body: () => T): T;
  /** The most parameters of one statement. Absent: more than any statement here has. */
  readonly maxParameters?: number;
  /** Whether nothing else can have the database open, so that no other connection changes it. Default false. */
  readonly isAlone?: boolean;
  /** Copies the write-ahead log into the database file and closes the connection. */
  close(): void;
}

/** A value that is stored: a safe integer, text without NUL, or `null`. */
export type Value = string | number | null;
export type Row = readonly Value[];

export interface Statement {
  run(...values: readonly Value[]): { readonly changes: number; readonly lastId: number };
  get(...values: readonly Value[]): Row | undefined;
  all(...values: readonly Value[]): readonly Row[];
}

/** The code of an error of SQLite, such as `SQLITE_BUSY`. Every driver sets it. */
export function sqliteCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown) || typeof thrown.code !== "string") return undefined;
  return thrown.code.startsWith("SQLITE_") ? thrown.code : undefined;
}

/** SQLite's code for files that were moved. In WAL mode SQLite itself does not detect that. */
export const movedCode = "SQLITE_READONLY_DBMOVED";

export function isBusy(code: string | undefined): boolean {
  return code !== undefined && (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED"));
}

/** Repeats `attempt` while another process holds the lock, for up to `busyTimeout` milliseconds. The event loop runs meanwhile. */
export async function retryWhileBusy<T>(attempt: () => T, busyTimeout: number): Promise<T> {
  const end = performance.now() + busyTimeout;
  for (let pause = 1; ; pause = Math.min(2 * pause, 25)) {
    try {
      return attempt();
    } catch (thrown) {
      if (!isBusy(sqliteCode(thrown)) || performance.now() >= end) throw thrown;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
