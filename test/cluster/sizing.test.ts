import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { postgresStore } from "@parley/sql/postgres";
import { defineAgent } from "@parley/server/internal/agent/index";
import type { Turn } from "@parley/a2a/internal/protocol/index";
import { callContext, inProcess } from "@parley/testing";
import { liveMemory } from "../heap.ts";
import { useDatabase } from "../postgres/database.ts";
import { figure } from "./node-process.ts";

/* Measures the sizing figures of docs/operate.md. If PARLEY_FIGURES is set, prints those that depend on other work on the machine. */

const database = useDatabase();

/** Starts an engine on a separate schema, with an agent that yields chunks of 100 characters, or waits. */
async function newNode(schema: string) {
  const store = await postgresStore({ database: database().url, schema });
  let release = (): void => {};
  const end = new Promise<void>((resolve) => (release = resolve));
  let waiting = 0;
  async function* onMessage(turn: Turn) {
    const chunks = Number(turn.text);
    if (chunks === 0) {
      yield turn.working();
      waiting += 1;
      await end;
      return;
    }
    for (let chunk = 0; chunk < chunks; chunk += 1) {
      const parts = [{ text: "x".repeat(100) }];
      yield chunk === 0 ? turn.artifact({ artifactId: "a", parts, open: true }) : turn.append("a", parts);
      await sleep(10);
    }
  }
  const agent = defineAgent({ name: "Chunks", description: "Says x", version: "1", skills: [], onMessage });
  const { engine, service } = inProcess(agent, { store, ownerOf: ({ subject }) => subject });
  onTestFinished(async () => {
    release();
    await engine.close();
    await store.close();
  });
  const send = (chunks: number): Promise<unknown> => {
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER" as const, parts: [{ text: `${chunks}` }] };
    const request = { message, configuration: { returnImmediately: chunks === 0 } };
    return service.call("SendMessage", request, callContext({ subject: "ada" }));
  };
  return {
    waiting: () => waiting,
    /** Sends messages in parallel. Resolves when the tasks end or, for 0 chunks, when the tasks exist. */
    sendAll: (count: number, chunks: number) => Promise.all(Array.from({ length: count }, () => send(chunks))),
  };
}

const number = async (sql: string): Promise<number> =>
  Number((await database().run(`SELECT (${sql})::float8 AS value`)).rows[0]?.value);

/** Returns the size of all tables of a schema in bytes, including the indexes. */
const sizeOf = (schema: string): Promise<number> =>
  number(`SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = '${schema}' AND c.relkind = 'r'`);

const writtenAhead = (): Promise<number> => number("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')");

test.each([
  { what: "an event of 100 characters", schema: "events", tasks: 100, chunks: 40, most: 600 },
  { what: "a task with one answer", schema: "answers", tasks: 200, chunks: 1, most: 4_000 },
])("$what takes at most $most bytes of tables and indexes", async ({ what, schema, tasks, chunks, most }) => {
  const { sendAll } = await newNode(schema);
  await sendAll(1, 1);
  const [size, log, cpu, began] = [await sizeOf(schema), await writtenAhead(), process.cpuUsage(), performance.now()];
  await sendAll(tasks, chunks);
  const { user, system } = process.cpuUsage(cpu);
  const rate = (tasks * chunks * 1000) / (performance.now() - began);
  const each = (bytes: number): number => Math.round(bytes / (tasks * chunks));
  const bytes = each((await sizeOf(schema)) - size);
  const wal = each((await writtenAhead()) - log);
  figure(`${what}: ${bytes} bytes, ${wal} of WAL, ${each(user + system)} µs, at ${Math.round(rate)} a second`);
  // If the figure were lower, the table would be empty.
  expect(bytes).toBeGreaterThan(chunks === 1 ? 1_000 : 200);
  expect(bytes).toBeLessThan(most);
});

test("a waiting run takes less than 20 kB of the heap", async () => {
  const { sendAll, waiting } = await newNode("runs");
  await sendAll(20, 0);
  await expect.poll(waiting, { interval: 10 }).toBe(20);
  const before = liveMemory().heapUsed;
  await sendAll(400, 0);
  await expect.poll(waiting, { interval: 10 }).toBe(420);
  const each = Math.round((liveMemory().heapUsed - before) / 400);
  figure(`a run that waits: ${each} bytes of the heap`);
  expect(each).toBeLessThan(20_000);
});
