import type { Artifact, Task, TaskSnapshot } from "@parley/a2a";
import { fakeClock } from "@parley/testing";
import { expect, test } from "vitest";
import { Watches } from "../src/server/resources.ts";
import { taskResult, type ResultLimits } from "../src/server/results.ts";

const limits: ResultLimits = {
  maxBytes: 10_000,
  uriOf: (task, id) => `a2a://host/tasks/${task}/artifacts/${id}`,
};

function taskWith(...artifacts: readonly Artifact[]): Task {
  return { id: "t", contextId: "c", status: { state: "TASK_STATE_COMPLETED" }, artifacts };
}

const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));

test.each<[string, Artifact]>([
  ["links", { artifactId: "a", parts: many(5000, (at) => ({ url: `https://files.example.com/${at}` })) }],
  ["texts", { artifactId: "a", parts: many(5000, () => ({ text: "x" })) }],
  ["files", { artifactId: "a", parts: many(5000, () => ({ raw: "AAAA" })) }],
  ["addresses", { artifactId: "a", parts: many(5000, () => ({ url: "file:///etc/passwd" })) }],
  ["data", { artifactId: "a", parts: many(3000, () => ({ data: "ü" })) }],
  ["a name", { artifactId: "a", name: "n".repeat(1_000_000), parts: many(100, () => ({ raw: "A".repeat(20_000) })) }],
  ["a file name", { artifactId: "a", parts: [{ raw: "AAAA", filename: "n".repeat(1_000_000) }] }],
  ["a media type", { artifactId: "a", parts: [{ raw: "AAAA", mediaType: `image/${"n".repeat(1_000_000)}` }] }],
  ["an id", { artifactId: "i".repeat(1_000_000), parts: [{ raw: "A".repeat(20_000) }] }],
])("an agent cannot exceed the limit of an answer with many or large %s", (_, artifact) => {
  const { content } = taskResult(taskWith(artifact), { taskId: "t" }, limits);
  expect(JSON.stringify(content).length).toBeLessThan(2 * limits.maxBytes);
  expect(content.at(-1)).toEqual({ type: "text", text: "Task completed.\ntaskId: t" });
});

test("notifies of a task that changes constantly once per second, and of its end immediately", async () => {
  const clock = fakeClock();
  let snapshot: TaskSnapshot = { task: undefined, ended: false };
  const listeners = new Set<() => void>();
  const watched = {
    getSnapshot: () => snapshot,
    subscribe(listener: () => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const change = (ended = false): void => {
    const state = ended ? "TASK_STATE_COMPLETED" : "TASK_STATE_WORKING";
    snapshot = { task: { id: "t", contextId: "c", status: { state } }, ended };
    for (const listener of listeners) listener();
  };
  const told: string[] = [];
  const watches = new Watches((uri) => told.push(uri), clock);
  watches.begin(
    { watch: () => watched },
    { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } },
    "a2a://host/tasks/t",
  );
  for (let at = 0; at < 1000; at += 1) change();
  expect(told).toHaveLength(1);
  clock.advance(1000);
  expect(told).toHaveLength(2);
  change();
  change(true);
  expect(told).toHaveLength(3);
  expect(listeners.size).toBe(0);
  clock.advance(10_000);
  expect(told).toHaveLength(3);
});
