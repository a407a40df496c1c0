import { connect } from "@parley/a2a";
import { expect, onTestFinished, test } from "vitest";
import { mcpServer, type McpBridge, type McpServerOptions } from "../src/index.ts";
import { eras, handleIn, officialClient, textsOf } from "./agent.ts";

/** A bridge to an agent with the given card and answers. */
async function bridgeTo(
  card: object,
  answer: (method: string, params: { readonly message?: { readonly messageId: string } }) => object,
  options: McpServerOptions = {},
): Promise<McpBridge> {
  const url = "https://agent.example/";
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    if (request.method === "GET") {
      return Response.json({
        name: "Odd",
        description: "Answers oddly",
        version: "1.0.0",
        capabilities: {},
        defaultInputModes: ["text/plain"],
        defaultOutputModes: ["text/plain"],
        skills: [],
        supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
        ...card,
      });
    }
    const { id, method, params } = (await request.json()) as { id: string; method: string; params: object };
    const result = answer(method, params);
    if (!Array.isArray(result)) return Response.json({ jsonrpc: "2.0", id, result });
    const events = result.map((each: unknown) => `data: ${JSON.stringify({ jsonrpc: "2.0", id, result: each })}\n\n`);
    return new Response(events.join(""), { headers: { "content-type": "text/event-stream" } });
  };
  const bridge = await mcpServer(await connect(url, { fetch, cardCache: false }), options);
  onTestFinished(() => bridge.close());
  return bridge;
}

test("answers each question of a task that asks without messages in a separate message", async () => {
  const sent: string[] = [];
  const bridge = await bridgeTo({}, (method, { message }) => {
    if (message !== undefined) sent.push(message.messageId);
    const state = sent.length < 3 ? "TASK_STATE_INPUT_REQUIRED" : "TASK_STATE_COMPLETED";
    const task = { id: "t", contextId: "c", status: { state, timestamp: `2026-01-01T00:00:0${sent.length}Z` } };
    return method === "GetTask" ? task : { task };
  });
  const client = await officialClient(bridge, "2026-07-28", { capabilities: { elicitation: { form: {} } } });
  client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { answer: "yes" } }));
  const result = await client.callTool({ name: "send_message", arguments: { message: "Go" } });
  expect(textsOf(result)).toContain("Task completed.");
  expect(new Set(sent).size).toBe(3);
});

test("serves an agent with control characters in texts, and lone surrogates in ids", async () => {
  const skill = { id: "\ud800", name: "Half", description: "Half", tags: [] };
  const card = { name: "Evil\u001b[2J", version: `1\u202e${"0".repeat(5000)}`, skills: [skill] };
  const bridge = await bridgeTo(card, () => ({
    task: {
      id: "t",
      contextId: "c",
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ artifactId: "\ud800", parts: [{ raw: "AAAA", filename: "\ud800" }] }],
    },
  }));
  const client = await officialClient(bridge, "2026-07-28");
  const { name, version } = client.getServerVersion() ?? { name: "", version: "" };
  // eslint-disable-next-line no-control-regex
  expect(name + version).not.toMatch(/[\u0000-\u001f\u202e]/);
  expect(version.length).toBeLessThan(200);
  expect((await client.listResources()).resources).toHaveLength(2);
  const result = await client.callTool({ name: "skill", arguments: { message: "Go" } });
  expect(textsOf(result)).toMatch(/^\[resource\]\nTask completed\./);
});

test("limits the length of a question, and shows no invisible characters", async () => {
  const properties = { city: { type: "string", title: "t".repeat(100_000) } };
  const form = { data: { type: "object", properties }, mediaType: "application/schema+json" };
  const text = `\u202e${"Q".repeat(3_000_000)}`;
  const message = { messageId: "m", role: "ROLE_AGENT", parts: [{ text }, form] };
  const bridge = await bridgeTo({}, () => ({
    task: { id: "t", contextId: "c", status: { state: "TASK_STATE_INPUT_REQUIRED", message } },
  }));
  const client = await officialClient(bridge, "2026-07-28", { capabilities: { elicitation: { form: {} } } });
  let shown = "";
  client.setRequestHandler("elicitation/create", ({ params }) => {
    shown = JSON.stringify(params);
    return { action: "decline" };
  });
  await client.callTool({ name: "send_message", arguments: { message: "Go" } });
  expect(shown).toMatch(/<U\+202E>QQQ.*more characters.*"answer"/);
  expect(shown).not.toContain("\u202e");
  expect(shown.length).toBeLessThan(6000);
});

test("accepts a file of 6 MB", async () => {
  const status = { state: "TASK_STATE_COMPLETED" };
  const bridge = await bridgeTo({}, () => ({ task: { id: "t", contextId: "c", status } }));
  const call = {
    name: "send_message",
    arguments: { message: "Go", files: [{ name: "a", bytes: "A".repeat(8 << 20) }] },
  };
  for (const era of eras) {
    const client = await officialClient(bridge, era);
    expect(textsOf(await client.callTool(call))).toContain("Task completed.");
  }
});

test("forwards only some progress of an agent that floods", async () => {
  const status = (state: string, at: number) => ({
    taskId: "t",
    contextId: "c",
    status: { state, message: { messageId: `m${at}`, role: "ROLE_AGENT", parts: [{ text: "More" }] } },
  });
  const bridge = await bridgeTo({ capabilities: { streaming: true } }, () => [
    { task: { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } } },
    ...Array.from({ length: 5000 }, (_, at) => ({ statusUpdate: status("TASK_STATE_WORKING", at) })),
    { statusUpdate: status("TASK_STATE_COMPLETED", 5000) },
  ]);
  const client = await officialClient(bridge, "2026-07-28");
  let seen = 0;
  const call = { name: "send_message", arguments: { message: "Go" } };
  const result = await client.callTool(call, { onprogress: () => (seen += 1) });
  expect(textsOf(result)).toContain("Task completed.");
  expect(seen).toBeGreaterThan(0);
  expect(seen).toBeLessThanOrEqual(1000);
});

test("continues tasks whose ids are as long as A2A allows", async () => {
  const id = "t".repeat(1024);
  const answer = (method: string): object => {
    const task = { id, contextId: "c", status: { state: "TASK_STATE_INPUT_REQUIRED" } };
    return method === "GetTask" ? task : { task };
  };
  const bridge = await bridgeTo({}, answer, { key: "secret-of-the-bridge-that-is-long-enough" });
  const client = await officialClient(bridge, "2025-11-25", { caller: { subject: "ada" } });
  const asked = await client.callTool({ name: "send_message", arguments: { message: "Go" } });
  expect(handleIn(asked)).toHaveLength(1024 + 33);
  const again = await client.callTool({ name: "get_task", arguments: { taskId: handleIn(asked) } });
  expect(handleIn(again)).toBe(handleIn(asked));
});
