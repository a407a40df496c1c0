import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { defineAgent, silentLogger, text, type LogFields, type Task } from "@parley/a2a";
import { isTerminal } from "@parley/a2a/model";
import { connect, serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { expect, it, onTestFinished } from "vitest";

it.each(["JSONRPC", "HTTP+JSON", "GRPC"] as const)(
  "a full disk over %s: an error that says so, no half-written task, and service again once there is space",
  async (binding) => {
    const folder = await mkdtemp(join(tmpdir(), "parley-full-"));
    // With this limit SQLite fails as on a full disk (SQLITE_FULL).
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
    const server = await serve(agent, { port: 0, signals: false, store, logger, lease: { ttl: 1_000 } });
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

    // All answered tasks are complete in the store. The refused one is not there.
    const listed: Task[] = [];
    for await (const task of client.tasks({ includeArtifacts: true })) listed.push(task);
    expect(listed.map(({ id }) => id).sort()).toEqual(kept.map(({ id }) => id).sort());
    for (const task of kept) expect(await client.getTask(task.id)).toEqual(task);
    for (const task of listed) expect(isTerminal(task.status.state)).toBe(true);

    // The deletion of the oldest tasks makes space again.
    await store.sweep({ now: Date.now(), deleteBefore: Date.now() + 1, limit: 100 });
    expect((await client.sendMessage("x")).task?.status.state).toBe("TASK_STATE_COMPLETED");
  },
);
