import { mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { memoryStore, type Logger } from "@parley/a2a";
import type { Store } from "@parley/a2a/store";
import { optional } from "./optional.ts";

/** Below the working directory. */
const file = join(".parley", "parley.db");

const inMemory =
  "Tasks are kept in memory and end with this process: install @parley/sql to keep them on disk, or pass `store: memoryStore()` where that is meant";

/** The store of a server that was given none: on disk where `@parley/sql` is installed, else in memory, which is told. */
export async function defaultStore(tell: (text: string) => void, logger: Logger): Promise<Store> {
  const sqlite = await optional("@parley/sql", () => import("@parley/sql/sqlite"));
  if (sqlite === undefined) {
    tell(inMemory);
    return memoryStore();
  }
  const path = resolve(file);
  await mkdir(dirname(path), { recursive: true });
  return sqlite.sqliteStore({ path, logger });
}
