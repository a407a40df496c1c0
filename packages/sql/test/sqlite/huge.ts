// Requests more text from a store than it returns in one call: tasks of 10 MB on one page, and one task of the same size. Prints the outcome
// of each request as JSON. If a library aborts the process, it prints nothing.
import type { NewRecord } from "@parley/a2a/internal/model/index";
import { sqliteStore } from "@parley/sql/sqlite";
import { openDriver } from "./drivers.ts";

const [path = "", tasks] = process.argv.slice(2);
const owner = { agent: "agent", owner: "alice" };
const [large, many] = [10_000_000, Number(tasks)];
const all = { artifacts: true };

const store = await sqliteStore({ path });
const ids = ["huge", ...Array.from({ length: many }, (_, n) => `t${n}`)];
const outcomes = await store.append(ids.map((taskId) => making(taskId)));
if (!outcomes.every(({ ok }) => ok)) throw new Error("The tasks could not be made");
const driver = openDriver(path);
driver.exec("PRAGMA synchronous = OFF");

const found: Record<string, unknown> = {};
for (const id of ids.slice(1)) fill(id, 2);
found["page"] = await told(async () => {
  const page = await store.list(owner, { limit: 100, ...all, state: "TASK_STATE_WORKING" });
  return [page.tasks.length, page.total, page.next !== undefined];
});
found["bare page"] = await told(async () => (await store.list(owner, { limit: 100, artifacts: false })).tasks.length);
// One task with the size of all others replaces them on disk.
for (const [index, id] of ids.slice(1).entries()) {
  driver.exec(`DELETE FROM log WHERE kind = 3 AND key = ((SELECT number FROM tasks WHERE id = '${id}') << 24) + 2`);
  count(id);
  fill("huge", index + 2);
}
found["page with it"] = await told(() => store.list(owner, { limit: 100, ...all, state: "TASK_STATE_COMPLETED" }));
found["task"] = await told(() => store.load(owner, "huge", all));
found["bare task"] = await told(async () => (await store.load(owner, "huge", { artifacts: false }))?.task.id);
found["log"] = await told(async () => (await store.read(owner, "huge", { after: 0, limit: 256 }))?.records.length);
found["log page"] = await told(
  async () => (await store.read(owner, "huge", { after: 1, limit: 256, bytes: 3 * large }))?.records.length,
);
found["conversation"] = await told(
  async () => (await store.conversation({ ...owner, contextId: "c" }, { limit: 100 })).entries.length,
);
found["claimable"] = await told(
  async () => (await store.claimable({ now: 1, agents: ["agent"], limit: 100 })).heads.length,
);
found["sweep"] = await told(() => store.sweep({ now: 0, compactBefore: 2000, limit: 100 }));
found["sweep again"] = await told(() => store.sweep({ now: 0, compactBefore: 2000, limit: 100 }));
found["deleted"] = await told(() => store.sweep({ now: 0, deleteBefore: 2000, limit: 100 }));
found["gone"] = await told(async () => (await store.head(owner, "huge")) === undefined);
driver.close();
await store.close();
process.stdout.write(JSON.stringify(found));

/** The outcome of a request: its response, or an error code. */
async function told(ask: () => Promise<unknown>): Promise<unknown> {
  try {
    return await ask();
  } catch (thrown) {
    return thrown instanceof Error && "code" in thrown ? thrown.code : String(thrown);
  }
}

function making(taskId: string): Parameters<typeof store.append>[0][number] {
  const state = taskId === "huge" ? "TASK_STATE_COMPLETED" : "TASK_STATE_WORKING";
  const json = JSON.stringify({ id: taskId, contextId: "c", status: { state } });
  const record: NewRecord = { kind: "task", state, json, time: 1000, actor: "user", turn: 1, attempt: 1 };
  return {
    task: { ...owner, taskId },
    create: { contextId: "c" },
    records: [record],
    effects: taskId === "huge" ? [] : [{ effect: "run", run: { turn: 1, attempt: 1, input: 1 } }],
  };
}

/** Adds a large record by a statement, which is faster than an append and results in the same row. */
function fill(id: string, seq: number): void {
  const json = `'{"taskId":"x","contextId":"c","artifact":{"artifactId":"${seq}","parts":[{"text":"' || hex(zeroblob(${large / 2})) || '"}]}}'`;
  driver.exec(`INSERT INTO log (key, kind, time, actor, turn, attempt, has_metadata, json)
    SELECT (number << 24) + ${seq}, 3, 1000, 1, 1, 1, 0, ${json} FROM tasks WHERE id = '${id}'`);
  count(id);
}

function count(id: string): void {
  const own = "key > number << 24 AND key < (number + 1) << 24";
  driver.exec(`UPDATE tasks SET seq = (SELECT max(key) & 16777215 FROM log WHERE ${own}),
    bytes = (SELECT sum(octet_length(json)) FROM log WHERE ${own}) WHERE id = '${id}'`);
}
