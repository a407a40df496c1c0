import { mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { memoryStore, type Logger } from "@parley/a2a";
import type { Store } from "@parley/a2a/store";

/** Below the working directory. */
const file = join(".parley", "parley.db");

/** The store of a server that was given none: on disk where `@parley/sql` is installed, else in memory. */
export async function defaultStore(logger: Logger): Promise<Store> {
  const sqlite = await import("@parley/sql/sqlite").catch((cause: unknown) => {
    if (!isNotInstalled(cause)) throw cause;
    return undefined;
  });
  if (sqlite === undefined) {
    logger.warn("Tasks are kept in memory and end with this process: install @parley/sql to keep them on disk");
    return memoryStore();
  }
  const path = resolve(file);
  await mkdir(dirname(path), { recursive: true });
  return sqlite.sqliteStore({ path });
}

/** A package that is there but cannot be loaded is a fault to be told, not a reason to forget tasks. */
function isNotInstalled(cause: unknown): boolean {
  return (
    cause instanceof Error &&
    "code" in cause &&
    cause.code === "ERR_MODULE_NOT_FOUND" &&
    cause.message.includes("@parley/sql")
  );
}
