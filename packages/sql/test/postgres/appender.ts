// Appends to the same tasks as other processes, in a different order, and prints the number of stored items.
import type { AppendItem } from "@parley/server/store";
import { postgresStore } from "@parley/sql/postgres";

const [url = "", schema = "", life = "", rounds = "", tasks = ""] = process.argv.slice(2);
const store = await postgresStore({ database: url, schema, connections: 3 });
const owner = { agent: "agent", owner: "alice" };
const record = { time: 1000, actor: "agent", turn: 1, attempt: 1 } as const;
const state = "TASK_STATE_WORKING";
let stored = 0;

for (let round = 0; round < Number(rounds); round += 1) {
  const items: AppendItem[] = [];
  const numbers = Array.from({ length: Number(tasks) }, (_, at) => at).sort(() => Math.random() - 0.5);
  for (const number of numbers) {
    const taskId = `t${number}`;
    const contextId = `c${number % 5}`;
    const json = JSON.stringify({ taskId, contextId, artifact: { artifactId: life, parts: [{ text: "x" }] } });
    const status = JSON.stringify({ taskId, contextId, status: { state } });
    items.push({
      task: { ...owner, taskId },
      records: [
        { ...record, kind: "artifactUpdate", json },
        { ...record, kind: "statusUpdate", state, json: status },
      ],
      effects: [
        { effect: "once", key: `${life}-${round}-${number}`, hash: "h", now: 1 },
        { effect: "contextState", value: JSON.stringify(life) },
        { effect: "feature", op: "set", feature: "f", key: life, value: "1" },
      ],
    });
    // All processes create the same tasks with the same keys.
    const fresh = `new-${round}-${number}`;
    const made = JSON.stringify({ id: fresh, contextId, status: { state }, history: [] });
    items.push({
      task: { ...owner, taskId: fresh },
      create: { contextId: `new-${number % 3}-${round}` },
      records: [{ ...record, kind: "task", state, json: made }],
      effects: [{ effect: "once", key: fresh, hash: "h", now: 1 }],
    });
  }
  const counted = items.length;
  // Tasks that a sweep deletes at the same time, keys that expire and are reused, and states that are set and deleted.
  for (const number of numbers) {
    const contextId = `c${number % 5}`;
    const time = round * 10;
    const again = { effect: "once", key: `again-${number}`, hash: "h", now: time, until: time + 5 } as const;
    const value = (number + round) % 2 === 0 ? null : JSON.stringify(life);
    items.push({ context: { ...owner, contextId }, effects: [{ effect: "contextState", value }] });
    const over = `over-${life}-${round}-${number}`;
    const ended = "TASK_STATE_COMPLETED";
    const json = JSON.stringify({ id: over, contextId: `over-${number % 3}`, status: { state: ended }, history: [] });
    items.push({
      task: { ...owner, taskId: over },
      create: { contextId: `over-${number % 3}` },
      records: [{ ...record, time: 1, kind: "task", state: ended, json }],
      effects: [again],
    });
    const idle = `idle-${number % 4}`;
    items.push({ context: { ...owner, contextId: idle }, effects: [{ ...again, key: `idle-${number}` }] });
  }
  const outcomes = await store.append(items);
  for (const outcome of outcomes.slice(0, counted)) if (outcome.ok) stored += 1;
}
await store.close();
process.stdout.write(String(stored));
