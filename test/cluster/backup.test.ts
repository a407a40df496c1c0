import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { defineAgent, text, type Store, type Task } from "@parley/server";
import { callContext, inProcess } from "@parley/testing";
import { message } from "@parley/a2a/model";
import { postgresStore } from "@parley/sql/postgres";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { findBinaries } from "../postgres/binaries.ts";
import { useDatabase } from "../postgres/database.ts";

/** Tests backups with PostgreSQL's own tools, taken while a server writes (docs/retention.md). */

const original = useDatabase();
const restored = useDatabase();
let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-backup-"));
});
afterAll(() => rm(folder, { recursive: true }));

const run = promisify(execFile);

/** Returns the path of a tool next to the PostgreSQL server, or the tool's name, for PATH. If neither has the tool, the test fails with the name. */
async function tool(name: string): Promise<string> {
  const beside = join((await findBinaries(join(folder, "binaries"))).folder, name);
  return existsSync(beside) ? beside : name;
}

function worker(store: Store) {
  const agent = defineAgent({
    name: "Worker",
    description: "Works",
    version: "1",
    skills: [],
    async *onMessage(turn) {
      if (turn.text === "ask") return yield turn.inputRequired("Which?");
      yield turn.working("begun");
      for (const part of ["one", "two"])
        yield turn.artifact({ artifactId: part, parts: [text(`${turn.text} ${part}`)] });
      if (turn.text === "run") await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      return yield turn.completed("done");
    },
  });
  const made = inProcess(agent, { store, lease: { ttl: 1_000 }, pollInterval: 50 });
  onTestFinished(() => made.engine.close());
  const ask = async (words: string, more: object = {}): Promise<Task> => {
    const request = { message: message(words, more), configuration: { returnImmediately: words === "run" } };
    const { task } = (await made.service.call("SendMessage", request, callContext())).payload.value;
    return task ?? expect.fail("no task");
  };
  const get = async (id: string) => (await made.service.call("GetTask", { id }, callContext())).payload.value;
  const first = async (id: string, after: number) => {
    const { batches } = await made.service.stream("SubscribeToTask", { id }, callContext({ after }));
    for await (const [event] of batches) return event?.payload.value;
    return undefined;
  };
  return { ...made, ask, get, first };
}

test("a dump that was taken while servers wrote serves every finished task, and everything continues", async () => {
  const store = await postgresStore({ database: original().url, connections: 4 });
  onTestFinished(() => store.close());
  const before = worker(store);
  const messageId = "known before the dump";
  const finished = [await before.ask("first", { messageId })];
  for (let at = 0; at < 20; at += 1) finished.push(await before.ask(`task ${at}`));
  const asking = await before.ask("ask");
  const running = await before.ask("run");
  await expect.poll(async () => (await before.get(running.id)).artifacts?.length).toBe(2);

  let writes = 0;
  let isOver = false;
  const writing = (async (): Promise<void> => {
    for (; !isOver; writes += 1) await before.ask(`meanwhile ${writes}`);
  })();
  await expect.poll(() => writes).toBeGreaterThan(2);
  const file = join(folder, "dump");
  const begun = writes;
  await run(await tool("pg_dump"), ["--format=custom", "--schema=parley", `--file=${file}`, original().url]);
  expect(writes).toBeGreaterThan(begun);
  isOver = true;
  await writing;
  // The task has another turn after the dump, so its readers are ahead of the restored server.
  await before.ask("ask", { taskId: asking.id, contextId: asking.contextId });
  const head = await store.head({ agent: "agent" }, asking.id);

  await run(await tool("pg_restore"), ["--exit-on-error", "--no-owner", `--dbname=${restored().url}`, file]);
  const copy = await postgresStore({ database: restored().url, connections: 4 });
  onTestFinished(() => copy.close());
  const after = worker(copy);
  for (const task of finished) expect(await after.get(task.id)).toEqual(await before.get(task.id));
  expect(await after.engine.round(true)).toBeUndefined();

  // If the server does not have a reader's position, the reader gets the task first. With a known position, the reader continues.
  expect((await copy.head({ agent: "agent" }, asking.id))?.seq).toBeLessThan(head?.seq ?? 0);
  expect((await after.first(asking.id, head?.seq ?? 0))?.task?.id).toBe(asking.id);
  expect((await after.first(finished[1]?.id ?? "", 2))?.artifactUpdate).toBeDefined();
  // The absent process's lease expires, and its task fails, because the agent is not resumable.
  await expect.poll(async () => (await after.get(running.id)).status.state).toBe("TASK_STATE_FAILED");
  // The server deduplicates a message from before the dump, and stores new tasks and answers.
  expect((await after.ask("first", { messageId })).id).toBe(finished[0]?.id);
  expect((await after.ask("new")).status.state).toBe("TASK_STATE_COMPLETED");
  expect((await after.ask("ask", { taskId: asking.id, contextId: asking.contextId })).id).toBe(asking.id);
});
