/** Tries again while another process holds the lock, up to `busyTimeout` milliseconds; the event loop runs meanwhile. */
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

/** The name of an error of SQLite's own, as every driver gives it. */
export function sqliteCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown) || typeof thrown.code !== "string") return undefined;
  return thrown.code.startsWith("SQLITE_") ? thrown.code : undefined;
}

export function isBusy(code: string | undefined): boolean {
  return code !== undefined && (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_LOCKED"));
}
