import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { times } from "../counts.ts";
import { compiled } from "../programs.ts";
import { diskFolder } from "../temporary.ts";

const folder = await mkdtemp(join(diskFolder(), "parley-sleepers-"));
afterAll(() => rm(folder, { recursive: true }));

const tasks = times(500, 10_000);
/** Maximum heap of the process in MiB. */
const heap = 256;

test(`${tasks} tasks that wait for a time or an event are rows: they need no run, nor the heap of ${heap} MiB`, async () => {
  const script = compiled(fileURLToPath(new URL("sleepers.ts", import.meta.url)));
  const args = [`--max-old-space-size=${heap}`, "--expose-gc", script, join(folder, "tasks.db"), String(tasks)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const seen = JSON.parse(stdout) as {
    readonly waiting: { readonly heap: number };
    readonly calls: number;
    readonly steps: number;
    readonly completed: number;
  };
  expect(seen.waiting).toMatchObject({ calls: tasks, steps: tasks, busy: false, completed: 0 });
  // Suspended functions would hold 20 kB each.
  expect(seen.waiting.heap).toBeLessThan(64 << 20);
  expect(seen).toMatchObject({ calls: 2 * tasks, steps: tasks, completed: tasks });
}, 1_800_000);
