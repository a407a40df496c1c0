// Appends to a file until it is killed, and prints the acknowledged ids. With a number of batches, it exits after that many, while others are
// in progress.
import { writeSync } from "node:fs";
import type { Message } from "@parley/a2a/model";
import type { NewRecord } from "@parley/a2a/internal/model/index";
import type { AppendItem } from "@parley/server/store";
import { sqliteStore } from "@parley/sql/sqlite";

const [path = "", life, batches] = process.argv.slice(2);
const store = await sqliteStore({ path });
const owner = { agent: "agent", owner: "alice" };
const contextId = `context-${life}`;
const record = { time: 1000, actor: "agent", turn: 1, attempt: 1 } as const;
const submitted = "TASK_STATE_SUBMITTED";
const completed = "TASK_STATE_COMPLETED";

for (let number = 1; ; number += 1) {
  // Each batch has two tasks, which are stored together or not at all.
  const ids = [`${life}-${number}-a`, `${life}-${number}-b`];
  const outcomes = await store.append(ids.flatMap((taskId) => wholeLife(taskId, "x".repeat(number % 5000))));
  if (!outcomes.every((outcome) => outcome.ok)) throw new Error(JSON.stringify(outcomes));
  writeSync(1, `${ids.join("\n")}\n`);
  if (number === Number(batches)) {
    for (let other = 1; other <= 50; other += 1)
      void store.append(wholeLife(`${life}-other-${other}`, "x".repeat(1000)));
    setTimeout(() => process.exit(0), Math.random() * 10);
    break;
  }
}

function wholeLife(taskId: string, text: string): readonly AppendItem[] {
  const task = { ...owner, taskId };
  const made = { id: taskId, contextId, status: { state: submitted }, history: [message(taskId)] };
  const chunk = { taskId, contextId, artifact: { artifactId: "a", parts: [{ text }] } };
  const done = { taskId, contextId, status: { state: completed, message: message(`${taskId}-end`) } };
  const first: NewRecord = { ...record, kind: "task", state: submitted, json: JSON.stringify(made) };
  const rest: readonly NewRecord[] = [
    { ...record, kind: "artifactUpdate", json: JSON.stringify(chunk) },
    { ...record, kind: "statusUpdate", state: completed, json: JSON.stringify(done) },
  ];
  return [
    { task, create: { contextId }, records: [first], effects: [{ effect: "once", key: taskId, hash: "h", now: 1 }] },
    { task, expect: 1, records: rest },
  ];
}

function message(messageId: string): Message {
  return { messageId, role: "ROLE_USER", parts: [{ text: "hello" }] };
}
