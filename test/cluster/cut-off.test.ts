import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { postgresStore } from "@parley/sql/postgres";
import { defineAgent } from "@parley/server/internal/agent/index";
import type { AgentEvent, Turn } from "@parley/a2a/internal/protocol/index";
import { callContext, inProcess } from "@parley/testing";
import { useDatabase } from "../postgres/database.ts";
import { startProxy } from "../postgres/proxy.ts";

/* Clients reach a node, but the node does not reach the database. The node rejects requests instead of guessing (A2A 1.0 §3.1). */

const database = useDatabase();
const ada = (): ReturnType<typeof callContext> => callContext({ subject: "ada" });

/** Starts a node whose agent yields numbers with the node's name: endlessly, or five after a takeover. Nodes do not know that others are local. */
async function newNode(
  name: string,
  url: string,
  work?: (turn: Turn, name: string) => AsyncGenerator<AgentEvent, void>,
) {
  const store = await postgresStore({ database: url, outageTimeout: work === undefined ? 1_000 : 10_000 });
  async function* onMessage(turn: Turn) {
    if (work !== undefined) return yield* work(turn, name);
    const begin = Number(turn.checkpoint ?? 0);
    for (let n = begin; begin === 0 || n < begin + 5; n += 1) {
      yield [turn.artifact({ artifactId: `${n}`, parts: [{ text: name }] }), turn.saveCheckpoint(n + 1)];
      await sleep(100);
    }
  }
  const agent = defineAgent({
    name: "Counter",
    description: "Counts",
    version: "1",
    skills: [],
    resumable: true,
    onMessage,
  });
  const lease = { isGone: () => false };
  const { engine, service } = inProcess(agent, { store, ownerOf: ({ subject }) => subject, lease });
  onTestFinished(async () => {
    await engine.close();
    await store.close();
  });
  return { get: async (id: string) => (await service.call("GetTask", { id }, ada())).payload.value, service };
}

test("a node that is cut off refuses calls, ends its streams and runs, and serves again when it is back", async () => {
  const url = new URL(database().url);
  const direct = url.href;
  const proxy = await startProxy(Number(url.port));
  onTestFinished(() => proxy.close());
  url.port = String(proxy.port);
  const [one, two] = [await newNode("one", url.href), await newNode("two", direct)];

  const message = { messageId: crypto.randomUUID(), role: "ROLE_USER" as const, parts: [{ text: "Count" }] };
  const request = { message, configuration: { returnImmediately: true } };
  const { task } = (await one.service.call("SendMessage", request, ada())).payload.value;
  const id = task?.id ?? "";
  const { batches } = await one.service.stream("SubscribeToTask", { id }, ada());
  let events = 0;
  const streamEnd = (async () => {
    for await (const batch of batches) events += batch.length;
  })().catch((error: unknown) => error);
  await expect.poll(() => events, { interval: 10 }).toBeGreaterThan(2);

  proxy.onRequest = () => "cut";
  proxy.cut();
  await expect(one.get(id)).rejects.toMatchObject({ code: "Unavailable" });
  await expect(one.service.call("SendMessage", request, ada())).rejects.toMatchObject({ code: "Unavailable" });
  expect(await streamEnd).toMatchObject({ code: "Unavailable" });
  // The other node takes over the task, and yields each remaining number once.
  const over = expect.objectContaining({
    status: expect.objectContaining({ state: "TASK_STATE_COMPLETED" }) as unknown,
  });
  await expect.poll(() => two.get(id), { interval: 50 }).toEqual(over);
  const artifacts = (await two.get(id)).artifacts ?? [];
  expect(artifacts.map(({ artifactId }) => Number(artifactId))).toEqual(artifacts.map((_, at) => at));
  expect(new Set(artifacts.map(({ parts }) => parts[0]?.text))).toEqual(new Set(["one", "two"]));

  proxy.onRequest = () => undefined;
  await expect.poll(() => one.get(id).catch(() => undefined), { interval: 50 }).toEqual(over);
});

test("a node that is cut off aborts its resumable runs before another one resumes them: no two copies act", async () => {
  const url = new URL(database().url);
  const direct = url.href;
  const proxy = await startProxy(Number(url.port));
  onTestFinished(() => proxy.close());
  url.port = String(proxy.port);
  const actions: string[] = [];
  const aborted: string[] = [];
  let isOver = false;
  /** Acts every ten milliseconds, without any event to store. */
  async function* act(turn: Turn, name: string): AsyncGenerator<AgentEvent, void> {
    yield turn.working();
    await turn.flush();
    while (!turn.signal.aborted && !isOver) {
      actions.push(name);
      await sleep(10);
    }
    if (turn.signal.aborted) aborted.push(`${name} ${turn.signal.reason?.kind}`);
    else yield turn.completed("Done");
  }
  const [one, two] = [await newNode("one", url.href, act), await newNode("two", direct, act)];
  const message = { messageId: crypto.randomUUID(), role: "ROLE_USER" as const, parts: [{ text: "Act" }] };
  const request = { message, configuration: { returnImmediately: true } };
  const { task } = (await one.service.call("SendMessage", request, ada())).payload.value;
  await expect.poll(() => actions.length, { interval: 10 }).toBeGreaterThan(20);

  // Packets are lost silently and no connection is closed, so the store of this node waits for its `outageTimeout`.
  proxy.isSilent = true;
  await expect.poll(() => actions.filter((name) => name === "two").length, { interval: 10 }).toBeGreaterThan(20);
  const both = actions.slice(actions.indexOf("two")).filter((name) => name === "one");
  expect(both).toEqual([]);
  expect(aborted).toEqual(["one leaseLost"]);
  isOver = true;
  const stateOf = async (): Promise<string | undefined> => (await two.get(task?.id ?? "")).status.state;
  await expect.poll(stateOf, { interval: 20 }).toBe("TASK_STATE_COMPLETED");
  proxy.isSilent = false;
  proxy.forget();
});
