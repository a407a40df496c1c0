import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect } from "@parley/a2a";
import { sqliteStore } from "@parley/sql/sqlite";
import type { TaskHead } from "@parley/server/store";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { run } from "../../packages/cli/src/program.ts";
import { recordedIo } from "../../packages/cli/test/support/io.ts";
import { times } from "../counts.ts";
import { diskFolder } from "../temporary.ts";
import { reservePort, Supervisor, type Life } from "./supervisor.ts";

/** A real server on SQLite is killed with -9 while its only task is inside one long step. */

const script = fileURLToPath(new URL("suspects-server.ts", import.meta.url));
const patient = { interval: 20 };
const lives = times(4, 8);

let folder = "";
let path = "";
let supervisor: Supervisor;

beforeEach(async () => {
  folder = await mkdtemp(join(diskFolder(), "parley-suspects-"));
  path = join(folder, "tasks.db");
  supervisor = new Supervisor(path, await reservePort(), script);
});
afterEach(async () => {
  supervisor.stop();
  await rm(folder, { recursive: true });
});

async function send(text: string): Promise<string> {
  const client = await connect(supervisor.url, { retry: false, reconnect: false });
  const { task } = await client.sendMessage({ message: text, configuration: { returnImmediately: true } });
  return task?.id ?? "";
}

async function stateOf(taskId: string): Promise<string> {
  const client = await connect(supervisor.url, { retry: false, reconnect: false });
  return (await client.getTask(taskId)).status.state;
}

async function headOf(taskId: string): Promise<TaskHead | undefined> {
  const store = await sqliteStore({ path, create: false, thread: false });
  try {
    return await store.head({ agent: "/" }, taskId);
  } finally {
    await store.close();
  }
}

/** Waits until the agent was called again, or until it will no longer be called. */
async function called(taskId: string, attempt: number): Promise<void> {
  await vi.waitFor(async () => {
    const { attempt: now = 0, suspended } = (await headOf(taskId))?.run ?? {};
    expect(suspended === true || now >= attempt).toBe(true);
  }, patient);
}

async function killed(life: Life): Promise<void> {
  life.kill("SIGKILL");
  expect(await life.end).toBe("SIGKILL");
}

describe("a resumable task inside one long step", () => {
  test("is suspended, not failed, by kills without a warning, is named once, and completes after `parley ops resume`", async () => {
    let life = await supervisor.start();
    const id = await send("Go");
    await called(id, 1);
    for (let attempt = 2; (await headOf(id))?.run?.suspended !== true; attempt += 1) {
      expect(attempt).toBeLessThanOrEqual(5);
      await killed(life);
      life = await supervisor.start();
      await called(id, attempt);
    }
    expect((await headOf(id))?.run?.suspended).toBe(true);
    expect(await stateOf(id)).toBe("TASK_STATE_WORKING");
    const lines = (): readonly string[] => supervisor.complaints.filter((line) => line.startsWith("Task suspended"));
    // The server stores the report before it logs the line.
    await vi.waitFor(() => expect(lines()).toHaveLength(1), patient);
    expect(lines()[0]).toContain(`"option":"lease.maxDeaths","command":"parley ops resume ${id}"`);

    await writeFile(`${path}.done`, "");
    const { io, out } = recordedIo({ cwd: folder });
    expect(await run(["ops", "list", "--suspended", "--store", path], io)).toBe(0);
    expect(out()).toContain(id);
    expect(await run(["ops", "resume", id, "--store", path], io)).toBe(0);
    await vi.waitFor(async () => expect(await stateOf(id)).toBe("TASK_STATE_COMPLETED"), patient);
    await killed(life);
  });

  test(`continues after ${lives} deployments that kill the server in its grace`, async () => {
    let life = await supervisor.start();
    const id = await send("Go");
    await called(id, 1);
    for (let attempt = 2; attempt <= lives; attempt += 1) {
      // A process that stops before the step has begun releases the task, and ends on its own.
      await vi.waitFor(() => expect(supervisor.lines).toContain(`in step ${attempt - 1}`), patient);
      const before = (await headOf(id))?.run?.deaths ?? 0;
      life.kill("SIGTERM");
      if (before > 0)
        await vi.waitFor(async () => expect((await headOf(id))?.run?.deaths ?? 0).toBeLessThan(before), patient);
      await killed(life);
      life = await supervisor.start();
      await called(id, attempt);
    }
    expect((await headOf(id))?.run?.suspended).toBeUndefined();
    await writeFile(`${path}.done`, "");
    await vi.waitFor(async () => expect(await stateOf(id)).toBe("TASK_STATE_COMPLETED"), patient);
    await killed(life);
  });

  test(`continues after ${lives} crashes that messages beside it cause`, async () => {
    let life = await supervisor.start();
    const id = await send("Go");
    await called(id, 1);
    for (let attempt = 2; attempt <= lives; attempt += 1) {
      await send("crash").catch(() => {});
      expect(await life.end).toBe("SIGKILL");
      life = await supervisor.start();
      await called(id, attempt);
    }
    expect((await headOf(id))?.run?.suspended).toBeUndefined();
    await writeFile(`${path}.done`, "");
    await vi.waitFor(async () => expect(await stateOf(id)).toBe("TASK_STATE_COMPLETED"), patient);
    await killed(life);
  });
});
