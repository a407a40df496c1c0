import { memoryStore, serve } from "@parley/node";
import { testAgent } from "@parley/testing";
import { expect, it, onTestFinished } from "vitest";
import agent from "../agent.ts";
import { countPrimes } from "../primes.ts";

async function given() {
  const tested = await testAgent(agent);
  onTestFinished(() => tested.close());
  return tested;
}

it.each([
  [2, 11, 4],
  [2, 100, 25],
  [2, 1_000_000, 78_498],
  [9_000_000, 10_000_001, 62_090],
])("counts the primes from %i to %i, as in published tables", (from, to, count) => {
  expect(countPrimes(from, to)).toBe(count);
});

it("counts with progress, and asks for a number if there is none", async () => {
  const { client } = await given();
  const { task } = await client.sendMessage("primes up to 10000000");
  expect(task?.artifacts?.[0]?.parts).toEqual([{ text: "664579" }, { data: { limit: 10_000_000, count: 664_579 } }]);
  const { message } = await client.sendMessage("primes up to 1000000000000");
  expect(message?.parts[0]?.text).toContain("Up to which number?");
});

/* The requests of the guide to the types of 0.2.5, as its Python SDK writes them. */
it("answers 你好,你能如何帮助我?, a poll with historyLength, and a webhook with a bearer token (0.2.5, usage examples 1, 3, 4)", async () => {
  const server = await serve(agent, { port: 0, store: memoryStore(), logger: false, push: true });
  onTestFinished(() => server.close());
  const call = async (id: string, method: string, params: object) => {
    const headers = { "Content-Type": "application/json" };
    const body = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    const answer = await fetch(server.url, { method: "POST", headers, body });
    return (await answer.json()) as { readonly result: Record<string, unknown> };
  };
  const parts = (text: string) => [{ kind: "text", text }];
  const say = (messageId: string, text: string) => ({
    message: { kind: "message", messageId, role: "user", parts: parts(text) },
  });
  const help = await call("req-001", "message/send", say("msg-001", "你好,你能如何帮助我?"));
  expect(help.result).toMatchObject({ kind: "message", role: "agent", parts: [{ kind: "text" }] });
  expect(JSON.stringify(help.result)).toContain("Up to which number?");
  const { result } = await call("req-001", "message/send", say("msg-003", "primes up to 100"));
  const polled = await call("req-002", "tasks/get", { id: result["id"], historyLength: 10 });
  expect(polled.result).toMatchObject({ kind: "task", status: { state: "completed" } });
  const pushNotificationConfig = {
    url: "https://my-app.com/webhook/task-updates",
    authentication: { schemes: ["Bearer"], credentials: "secret-of-my-app-0123456789" },
  };
  const set = await call("req-003", "tasks/pushNotificationConfig/set", {
    taskId: result["id"],
    pushNotificationConfig,
  });
  expect(set.result).toMatchObject({
    taskId: result["id"],
    pushNotificationConfig: { url: pushNotificationConfig.url, authentication: { schemes: ["Bearer"] } },
  });
});

it("counts each piece once, however often its process is killed", async () => {
  const { client, crash, restart, problems } = await given();
  const said: string[] = [];
  for await (const { statusUpdate } of client.sendStreamingMessage("primes up to 10000000")) {
    const text = statusUpdate?.status.message?.parts[0]?.text;
    if (text === undefined) continue;
    said.push(text);
    if (said.length % 3 === 0) {
      await crash();
      await restart();
    }
  }
  expect(said.map((text) => / below (\d+)$/.exec(text)?.[1])).toEqual([
    ...Array.from({ length: 9 }, (_, n) => String((n + 1) * 1_000_000 + 2)),
    "10000001",
  ]);
  expect(said.at(-1)).toMatch(/^664579 /);
  expect(problems).toEqual([]);
});
