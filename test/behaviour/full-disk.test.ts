import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { connect, defineAgent, serve, silentLogger } from "@parley/node";
import { isTerminal, text, type Task } from "@parley/a2a/model";
import type { LogFields } from "@parley/a2a/internal/base/index";
import { sqliteStore } from "@parley/sql/sqlite";
import type { Store, TaskAppend } from "@parley/server/store";
import { expect, it, onTestFinished } from "vitest";
import { smallDisk } from "../small-disk.ts";

it.each(["JSONRPC", "HTTP+JSON", "GRPC"] as const)(
  "a full disk over %s: an error that says so, no half-written task, and normal service again once there is space",
  async (binding) => {
    const folder = await mkdtemp(join(tmpdir(), "parley-full-"));
    // With this limit, SQLite fails as if the disk were full (SQLITE_FULL).
    const store = await sqliteStore({ path: join(folder, "tasks.db"), maxPages: 200 });
    const agent = defineAgent({
      name: "Hoarder",
      description: "Keeps everything",
      version: "1.0.0",
      skills: [],
      async *onMessage(turn) {
        for (let n = 0; n < 5; n += 1) yield turn.artifact({ parts: [text(turn.text.repeat(4_000))] });
      },
    });
    const log: LogFields[] = [];
    const note = (message: string, fields: LogFields = {}): void => void log.push({ message, ...fields });
    const logger = { ...silentLogger, warn: note, error: note };
    const server = await serve(agent, { port: 0, grpc: true, signals: false, store, logger, lease: { ttl: 1_000 } });
    onTestFinished(async () => {
      await server.close({ grace: 0 });
      await store.close();
      await rm(folder, { recursive: true });
    });
    const client = await connect(server.url, { binding, retry: false });

    const kept: Task[] = [];
    let refused: unknown;
    for (let n = 0; n < 500 && refused === undefined; n += 1) {
      const answer = await client.sendMessage("x").catch((error: unknown) => void (refused = error));
      if (typeof answer === "object" && answer.task !== undefined) kept.push(answer.task);
    }
    expect(refused).toMatchObject({ code: "Unavailable" });
    expect((refused as Error).message).not.toContain(folder);
    expect(kept.length).toBeGreaterThan(3);
    expect(inspect(log, { depth: 8 })).toContain("SQLITE_FULL");

    // Every task with a response is complete in the store. The rejected task is absent.
    const listed: Task[] = [];
    for await (const task of client.tasks({ includeArtifacts: true })) listed.push(task);
    expect(listed.map(({ id }) => id).sort()).toEqual(kept.map(({ id }) => id).sort());
    for (const task of kept) expect(await client.getTask(task.id)).toEqual(task);
    for (const task of listed) expect(isTerminal(task.status.state)).toBe(true);

    // Deleting the oldest tasks frees space.
    await store.sweep({ now: Date.now(), deleteBefore: Date.now() + 1, limit: 100 });
    expect((await client.sendMessage("x")).task?.status.state).toBe("TASK_STATE_COMPLETED");
  },
);

/** Fills a database that has a page limit with another agent's tasks. This simulates a full disk, because the test cannot mount a small disk. */
function fillPages(store: Store): { fill(): Promise<void>; empty(): Promise<void> } {
  const owner = { agent: "others", owner: "them" };
  const done = "TASK_STATE_COMPLETED";
  const junk = (taskId: string, size: number): TaskAppend => {
    const status = {
      state: done,
      message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "x".repeat(size) }] },
    };
    const json = JSON.stringify({ id: taskId, contextId: "c", status });
    const record = { kind: "task", state: done, time: 1, actor: "system", turn: 1, attempt: 1, json } as const;
    return { task: { ...owner, taskId }, create: { contextId: "c" }, records: [record] };
  };
  return {
    async fill() {
      for (let size = 50_000, n = 0; size > 10; n += 1) {
        await store.append([junk(`${size}-${n}`, size)]).catch(() => (size >>= 1));
      }
    },
    empty: async () => void (await store.sweep({ now: Date.now(), deleteBefore: 2, limit: 1_000 })),
  };
}

it("runs without disk space are suspended with one log line, and resumed by the same process as soon as there is space", async () => {
  const folder = await mkdtemp(join(tmpdir(), "parley-full-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const disk = smallDisk(join(folder, "disk"));
  const path = join(folder, disk === undefined ? "." : "disk", "tasks.db");
  const store = await sqliteStore({ path, ...(disk === undefined && { maxPages: 300 }) });
  const room: { fill(): void | Promise<void>; empty(): void | Promise<void> } = disk ?? fillPages(store);
  const active = new Map<string, number>();
  const attempts = new Map<string, number>();
  let most = 0;
  let isOver = false;
  const agent = defineAgent<{ checkpoint: number }>({
    name: "Counter",
    description: "Counts until it is stopped",
    version: "1.0.0",
    skills: [],
    resumable: true,
    async *onMessage(turn) {
      const now = (active.get(turn.taskId) ?? 0) + 1;
      active.set(turn.taskId, now);
      attempts.set(turn.taskId, turn.attempt);
      most = Math.max(most, now);
      try {
        for (let n = (turn.checkpoint ?? 0) + 1; !isOver || n < 3; n += 1) {
          const artifact = turn.artifact({ artifactId: `${n}`, parts: [text("x".repeat(500))] });
          yield [artifact, turn.saveCheckpoint(n)];
          await turn.flush();
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      } finally {
        active.set(turn.taskId, now - 1);
      }
    },
  });
  const log: { level: string; message: string; fields: LogFields }[] = [];
  const note =
    (level: string) =>
    (message: string, fields: LogFields = {}): void =>
      void log.push({ level, message, fields });
  const logger = { debug: () => undefined, info: note("info"), warn: note("warn"), error: note("error") };
  // No lease expires during the test.
  const lease = { ttl: 3_600_000 };
  const server = await serve(agent, { port: 0, signals: false, store, logger, lease });
  onTestFinished(async () => {
    await server.close({ grace: 0 });
    await store.close();
  });
  const client = await connect(server.url, { retry: false });
  const ids: string[] = [];
  for (let n = 0; n < 20; n += 1) {
    const { task } = await client.sendMessage({ message: "Count", configuration: { returnImmediately: true } });
    ids.push(task?.id ?? "");
  }
  await expect.poll(() => attempts.size).toBe(20);

  await room.fill();
  const idle = (): boolean => [...active.values()].every((count) => count === 0);
  await expect.poll(idle).toBe(true);
  const lines = (): readonly string[] =>
    log.filter(({ level }) => level === "error" || level === "warn").map(({ message }) => message);
  const outage = "Database unavailable; resumable runs resume when it is back, tasks of other agents fail";
  await expect.poll(lines).toEqual([outage]);
  const [line] = log.filter(({ message }) => message === outage);
  expect(line?.fields).toMatchObject({ runs: 20, resumable: 20, cause: { cause: { code: "SQLITE_FULL" } } });
  expect((await fetch(new URL("/readyz", server.url))).status).toBe(503);

  await room.empty();
  isOver = true;
  const states = async (): Promise<readonly string[]> =>
    Promise.all(ids.map(async (id) => (await client.getTask(id)).status.state));
  await expect.poll(states).toEqual(ids.map(() => "TASK_STATE_COMPLETED"));
  expect([...attempts.values()]).toEqual(ids.map(() => 2));
  expect(most).toBe(1);
  expect((await fetch(new URL("/readyz", server.url))).status).toBe(200);
  // Each event exists once, and the events are in order.
  for (const id of ids) {
    const { artifacts = [] } = await client.getTask(id);
    expect(artifacts.map(({ artifactId }) => Number(artifactId))).toEqual(artifacts.map((_, at) => at + 1));
  }
  expect(lines().filter((each) => each === outage)).toHaveLength(1);
});
