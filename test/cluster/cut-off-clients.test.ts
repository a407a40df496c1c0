import { expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../postgres/database.ts";
import { startProxy } from "../postgres/proxy.ts";
import { Counting, messageOf, startCounter, type Answer } from "./counters.ts";

/*
 * Clients reach a node, but its packets to the database are lost. The node rejects requests instead of guessing (A2A 1.0 §3.1, §11.6). It must not
 * report the runs that are still in its memory, because another node has continued them.
 */

const database = useDatabase();

const refusedForNow = (answer: Answer): void => {
  expect([answer.status, answer.text]).toEqual([503, expect.stringContaining("UNAVAILABLE")]);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
};

test("returns no old answer, message or stream of tasks that run elsewhere, and runs no step; the other node continues, and this one serves that when it is back", async () => {
  const url = new URL(database().url);
  const direct = url.href;
  const proxy = await startProxy(Number(url.port));
  onTestFinished(() => proxy.close());
  url.port = String(proxy.port);
  const counting = new Counting();
  const serve = { lease: { isGone: () => false, ttl: 1_000 } };
  // Node one has no lease when node two takes its tasks, so its runs still exist, but cannot store anything.
  const limits = { statementTimeout: 3_600_000, connectTimeout: 1_000, outageTimeout: 2_500 };
  const one = await startCounter("one", url.href, counting, { store: limits, serve });
  const two = await startCounter("two", direct, counting, { serve });
  const [own, other] = [await one.stream("Steps"), await two.stream("Steps")];
  const elsewhere = await one.subscribe(other.taskId);
  await expect.poll(() => Math.min(own.numbers.length, elsewhere.numbers.length), { interval: 10 }).toBeGreaterThan(3);

  proxy.isSilent = true;
  // The client cancels one task on the other node. The node that is cut off must not answer as if the task were not canceled.
  const calls = [
    one.get(`/tasks/${own.taskId}`),
    one.get(`/tasks/${other.taskId}`),
    one.get("/tasks"),
    one.post("/message:send", messageOf("Steps")),
    one.post("/message:send", {
      ...messageOf("More"),
      message: { ...(messageOf("More") as { message: object }).message, taskId: own.taskId },
    }),
    one.post(`/tasks/${own.taskId}:cancel`, {}),
    one.get(`/tasks/${own.taskId}:subscribe`),
  ];
  expect((await two.post(`/tasks/${other.taskId}:cancel`, {})).status).toBe(200);
  const takenOver = expect.objectContaining({ node: "two", what: "begun", taskId: own.taskId, attempt: 2 }) as unknown;
  await expect.poll(() => counting.happened, { interval: 10 }).toContainEqual(takenOver);
  const after = counting.happened.length;
  for (const call of calls) refusedForNow(await call);
  for (const stream of [own, elsewhere]) {
    await expect.poll(() => stream.isOpen, { interval: 10 }).toBe(false);
    expect(stream.events.at(-1)).toContain("UNAVAILABLE");
    expect(stream.events.join()).not.toContain("CANCELED");
  }
  await expect.poll(async () => (await one.get("/readyz")).status).toBe(503);
  expect((await one.get("/healthz")).status).toBe(200);
  const ofOne = (what: string): unknown =>
    expect.objectContaining({ node: "one", what, taskId: own.taskId }) as unknown;
  await expect.poll(() => counting.happened, { interval: 10 }).toContainEqual(ofOne("ended"));
  // The node that is cut off has not begun a step since the other node took the task.
  expect(counting.happened.slice(after)).not.toContainEqual(ofOne("step"));
  expect(counting.happened).not.toContainEqual(ofOne("late step"));

  proxy.isSilent = false;
  proxy.forget();
  counting.isOver = true;
  const get = async (id: string): Promise<string> => (await one.get(`/tasks/${id}`)).text;
  await expect.poll(() => get(own.taskId)).toContain("TASK_STATE_COMPLETED");
  expect(await get(other.taskId)).toContain("TASK_STATE_CANCELED");
  // Each number occurs once. The numbers of the first node come before those of the other node, and no rejected number is stored.
  const task = JSON.parse(await get(own.taskId)) as {
    artifacts: readonly { artifactId: string; parts: readonly { text: string }[] }[];
    history: readonly unknown[];
  };
  expect(task.artifacts.map(({ artifactId }) => Number(artifactId))).toEqual(task.artifacts.map((_, at) => at));
  const nodes = task.artifacts.map(({ parts }) => parts[0]?.text);
  expect(new Set(nodes)).toEqual(new Set(["one", "two"]));
  expect(nodes.lastIndexOf("one")).toBeLessThan(nodes.indexOf("two"));
  expect(task.history).toHaveLength(1);
  expect((JSON.parse((await two.get("/tasks")).text) as { tasks: readonly unknown[] }).tasks).toHaveLength(2);
});
