import { defineAgent, systemClock } from "@parley/server";
import { callContext, inProcess } from "@parley/testing";
import { sqliteStore } from "@parley/sql/sqlite";

// Tasks that wait, on SQLite: node sleepers.ts FILE COUNT. Half of them wait for a time, the others for an event. Prints its measurements as
// JSON, for a process with a small heap.

const [path = "", count = "0"] = process.argv.slice(2);
const tasks = Number(count);
let later = 0;
const clock = { ...systemClock, now: () => Date.now() + later };
const day = 24 * 3_600_000;
let calls = 0;
let steps = 0;

const agent = defineAgent({
  name: "Sleeper",
  description: "Waits",
  version: "1",
  skills: [],
  async *onMessage(turn) {
    calls += 1;
    await turn.step("book", () => (steps += 1));
    // A suspended function would hold this in memory.
    const load = "x".repeat(20_000 + (calls % 10));
    if (turn.text === "sleep") yield* turn.sleep(30 * day);
    else yield* turn.waitFor("go");
    yield turn.completed(String(load.length > 0));
  },
});

const store = await sqliteStore({ path });
const { engine, service } = inProcess(agent, { store, clock });
const ids: string[] = [];

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20));
}

async function send(at: number): Promise<void> {
  const message = {
    messageId: `m${at}`,
    role: "ROLE_USER",
    parts: [{ text: at % 2 === 0 ? "sleep" : "wait" }],
  } as const;
  const request = { message, configuration: { returnImmediately: true } };
  const { payload } = await service.call("SendMessage", request, callContext({ subject: "ada" }));
  ids.push(payload.value.task?.id ?? "");
}

async function inBatches(of: number, work: (at: number) => Promise<void>): Promise<void> {
  for (let from = 0; from < of; from += 100) {
    await Promise.all(Array.from({ length: Math.min(100, of - from) }, (_, at) => work(from + at)));
  }
}

async function completed(): Promise<number> {
  const request = { status: "TASK_STATE_COMPLETED", pageSize: 1 } as const;
  const { payload } = await service.call("ListTasks", request, callContext({ subject: "ada" }));
  return payload.value.totalSize ?? 0;
}

await inBatches(tasks, send);
await until(() => !engine.isBusy());
(globalThis as { gc?: () => void }).gc?.();
const waiting = {
  calls,
  steps,
  busy: engine.isBusy(),
  completed: await completed(),
  heap: process.memoryUsage().heapUsed,
};

later = 31 * day;
await inBatches(tasks, async (at) => {
  const head = await store.head({ agent: "agent" }, ids[at] ?? "");
  const rows = await store.features({ agent: "agent" }, ids[at] ?? "", "wait");
  if (head !== undefined && rows.some(({ value }) => value.includes("go"))) await engine.signal(head.task.taskId, "go");
});
await until(async () => (await completed()) === tasks);
console.log(JSON.stringify({ waiting, calls, steps, completed: await completed() }));
await engine.close();
await store.close();
