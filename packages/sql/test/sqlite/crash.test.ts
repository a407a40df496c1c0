import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import type { ListPosition, Store } from "@parley/server/store";
import { sqliteStore } from "@parley/sql/sqlite";
import { compiled } from "../../../../test/programs.ts";
import { diskFolder } from "../../../../test/temporary.ts";

const folder = await mkdtemp(join(diskFolder(), "parley-"));
afterAll(() => rm(folder, { recursive: true }));

const alice = { agent: "agent", owner: "alice" };
const appender = compiled(fileURLToPath(new URL("appender.ts", import.meta.url)));

/** Kills a process after it has acknowledged this many tasks. Returns all printed ids. */
async function killedAfter(path: string, life: number, tasks: number): Promise<readonly string[]> {
  const child = spawn(process.execPath, [appender, path, String(life)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exit = once(child, "exit");
  const acknowledged: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    acknowledged.push(line);
    if (acknowledged.length === tasks) child.kill("SIGKILL");
  }
  const [, signal] = (await exit) as [number | null, string | null];
  expect(signal).toBe("SIGKILL");
  return acknowledged;
}

async function everything(store: Store): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>();
  let after: ListPosition | undefined;
  do {
    const page = await store.list(alice, { limit: 100, artifacts: true, ...(after && { after }) });
    for (const { task } of page.tasks) found.set(task.id, task);
    expect(page.total).toBeGreaterThanOrEqual(found.size);
    after = page.next;
    if (after === undefined) expect(page.total).toBe(found.size);
  } while (after !== undefined);
  return found;
}

describe("a process that is killed while it appends", () => {
  it("loses no acknowledged task, and leaves no partial batch", async () => {
    const path = join(folder, "crash.db");
    const acknowledged: string[] = [];
    for (let life = 1; life <= 5; life += 1) {
      acknowledged.push(...(await killedAfter(path, life, 1 + Math.floor(Math.random() * 400))));
      const store = await sqliteStore({ path });
      const found = await everything(store);
      for (const id of acknowledged) expect(found.has(id), id).toBe(true);
      for (const [id, value] of found) {
        // Unacknowledged tasks may be stored too, but only completely, and with the other task of their batch.
        expect(found.has(id.endsWith("a") ? id.replace(/a$/, "b") : id.replace(/b$/, "a")), id).toBe(true);
        expect(value).toMatchObject({
          id,
          status: { state: "TASK_STATE_COMPLETED" },
          artifacts: [{}],
          history: [{ messageId: id }, {}],
        });
        expect((await store.head(alice, id))?.seq).toBe(3);
        expect(await store.once(alice, id, 1)).toMatchObject({ taskId: id });
      }
      await store.close();
    }
  });
});
