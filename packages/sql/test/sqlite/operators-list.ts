// Stores tasks of three agents and a hundred owners in a file, and lists all of them like an operator.

import { sqliteStore } from "@parley/sql/sqlite";
import type { OperatorQuery } from "@parley/server/store";

const [path = "", count = "0"] = process.argv.slice(2);
const tasks = Number(count);
const store = await sqliteStore({ path, synchronous: "NORMAL", thread: false });
const states = ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"] as const;
for (let from = 0; from < tasks; from += 500) {
  const items = Array.from({ length: Math.min(500, tasks - from) }, (_, n) => {
    const at = from + n;
    const taskId = `'"/%\u0000 ${at}`;
    const state = states[at % 3] ?? "TASK_STATE_WORKING";
    const json = JSON.stringify({ id: taskId, contextId: `${at % 1_000}`, status: { state }, history: [] });
    const record = { kind: "task", state, json, time: at % 7, actor: "user", turn: 1, attempt: 1 } as const;
    const task = { agent: `agent ${at % 3}`, owner: `owner ${at % 100}`, taskId };
    return { task, create: { contextId: `${at % 1_000}` }, records: [record] };
  });
  await store.append(items);
}
const seen = new Set<string>();
let listed = 0;
for (let after: OperatorQuery["after"], more = true; more;) {
  const page = await store.operators?.tasks({ order: "newest", limit: 500, ...(after !== undefined && { after }) });
  for (const { task } of page?.heads ?? []) seen.add(task.taskId);
  listed += page?.heads.length ?? 0;
  after = page?.next;
  more = after !== undefined;
}
const counts = (await store.operators?.counts(10)) ?? [];
const counted = counts.flatMap((each) => Object.values(each.states)).reduce((sum, each) => sum + each, 0);
process.stdout.write(JSON.stringify({ listed, unique: seen.size, counted }));
await store.close();
