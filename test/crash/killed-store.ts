import { writeSync } from "node:fs";
import type { LogFields } from "@parley/a2a/internal/base/index";
import type { Store } from "@parley/server";
import { sqliteStore } from "@parley/sql/sqlite";

/** A store whose process kills itself just `before` or just `after` the append with this number, or not at all without a moment. */
export async function killedStore(path: string, moment?: string, count?: string): Promise<Store> {
  const store = await sqliteStore({ path });
  const append = store.append.bind(store);
  let appends = 0;
  store.append = async (items) => {
    const last = ++appends === Number(count);
    if (last && moment === "before") process.kill(process.pid, "SIGKILL");
    const outcomes = await append(items);
    if (last) process.kill(process.pid, "SIGKILL");
    return outcomes;
  };
  return store;
}

/** Writes an error of a server to stderr synchronously, because a kill would lose anything queued. */
export function say(message: string, fields?: LogFields): void {
  const detail = JSON.stringify(fields, (_name, value: unknown) => (value instanceof Error ? value.stack : value));
  writeSync(2, `${message} ${detail}\n`);
}
