import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  ElicitRequestSchema,
  ResourceUpdatedNotificationSchema,
  type CallToolResult,
} from "@modelcontextprotocol/sdk/types.js";
import { testAgent } from "@parley/testing";
import { expect, onTestFinished, test } from "vitest";
import { mcpServer } from "../src/index.ts";
import { advancing, bridged, clientOfVersion1, handleIn, textsOf } from "./agent.ts";
import { conforming } from "./conformance-agent.ts";

/* Version 1 of the SDK over HTTP. The tests of `parley mcp` cover it over stdio. */

const say = (message: string) => ({ name: "do_it", arguments: { message } });

async function call(client: Client, message: string, options: object = {}): Promise<CallToolResult> {
  return (await client.callTool(say(message), undefined, options)) as CallToolResult;
}

test.each([true, false])("lists, calls, continues and cancels, with sessions: %s", async (sessions) => {
  const { agent, bridge } = await bridged({ sessions });
  const client = await clientOfVersion1(bridge);
  expect(client.getServerVersion()).toMatchObject({ name: "Scripted" });
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain("answer_task");
  expect(textsOf(await call(client, "hello"))).toContain("You said hello");
  const taskId = handleIn(await call(client, "ask"));
  const answered = await client.callTool({ name: "answer_task", arguments: { taskId, message: "blue" } });
  expect(textsOf(answered as CallToolResult)).toContain("You like blue");
  await expect(client.callTool({ name: "nothing", arguments: {} })).rejects.toThrow("Unknown tool: nothing");
  const { resources } = await client.listResources();
  const uri = resources[0]?.uri ?? "";
  expect((await client.readResource({ uri })).contents[0]).toMatchObject({ uri, mimeType: "application/json" });
  expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(2);
  const working = handleIn(await advancing(agent, call(client, "hour")));
  const canceled = await client.callTool({ name: "cancel_task", arguments: { taskId: working } });
  expect(textsOf(canceled as CallToolResult)).toContain("Task canceled.");
});

test("shows forms and links within a call", async () => {
  const { agent, bridge } = await bridged({}, { publicUrl: "http://127.0.0.1:4000" });
  const client = await clientOfVersion1(bridge, { elicitation: { form: {}, url: {} } });
  const asked: unknown[] = [];
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params);
    return params.mode === "url" ? { action: "accept" } : { action: "accept", content: { city: "Basel", nights: 3 } };
  });
  expect(textsOf(await call(client, "form"))).toMatch(/^3 nights in Basel\n/);
  expect(asked).toMatchObject([
    { message: "Where to, and how long?", requestedSchema: { required: ["city", "nights"] } },
  ]);
  const opened = call(client, "approve");
  await expect.poll(() => asked).toHaveLength(2);
  expect(asked[1]).toMatchObject({ mode: "url", url: expect.stringContaining("http://127.0.0.1:4000/") });
  expect(textsOf(await advancing(agent, opened))).toMatch(/Task auth required\..*call get_task/s);
});

test("notifies of changes, and cancels the task of a call if its client cancels or disconnects", async () => {
  const { agent, bridge } = await bridged();
  const client = await clientOfVersion1(bridge);
  const updated: string[] = [];
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void updated.push(params.uri));
  for (const end of [async (controller: AbortController) => controller.abort(), () => client.close()]) {
    const controller = new AbortController();
    const progress: unknown[] = [];
    const onprogress = (each: unknown) => void progress.push(each);
    const hour = call(client, "hour", { signal: controller.signal, onprogress });
    hour.catch(() => undefined);
    await expect.poll(() => progress).toMatchObject([{ message: "This takes an hour" }]);
    const { tasks } = await agent.client.listTasks();
    const [task] = tasks;
    const { resources } = await client.listResources();
    const uri = `${resources[0]?.uri.replace("/agent-card", "")}/tasks/${task?.id}`;
    await client.subscribeResource({ uri });
    await end(controller);
    await expect(hour).rejects.toThrow(/abort|closed/i);
    await expect
      .poll(async () => (await agent.client.getTask(task?.id ?? "")).status.state)
      .toBe("TASK_STATE_CANCELED");
    if (updated.length === 0) await expect.poll(() => updated).toEqual([uri]);
  }
});

test("asks with the choices and defaults of the agent's form", async () => {
  const agent = await testAgent(conforming);
  const bridge = await mcpServer(agent.client);
  onTestFinished(() => bridge.close());
  onTestFinished(() => agent.close());
  const client = await clientOfVersion1(bridge, { elicitation: {} });
  const content = { untitledSingle: "option1", titledSingle: "value2", untitledMulti: ["option1", "option2"], age: 3 };
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content }));
  const result = await client.callTool({ name: "test_elicitation_sep1330_enums", arguments: { message: "Go" } });
  expect(textsOf(result as CallToolResult)).toContain(`Thank you: ${JSON.stringify(content)}`);
});

test("includes the questions of a call in its time limit", async () => {
  const { agent, bridge } = await bridged();
  const client = await clientOfVersion1(bridge, { elicitation: {} });
  client.setRequestHandler(ElicitRequestSchema, async () => {
    await agent.clock.advance(45_000);
    return { action: "accept", content: { answer: "hour" } };
  });
  const before = agent.clock.elapsed();
  expect(textsOf(await advancing(agent, call(client, "ask")))).toContain("Task working.");
  // 50 s, and one step of the clock.
  expect(agent.clock.elapsed() - before).toBeLessThanOrEqual(75_000);
});

test("does not wait for an answer beyond the time limit of the call", async () => {
  const { agent, bridge } = await bridged();
  const client = await clientOfVersion1(bridge, { elicitation: {} });
  let asked = 0;
  client.setRequestHandler(ElicitRequestSchema, () => {
    asked += 1;
    return new Promise<never>(() => undefined);
  });
  const result = await advancing(agent, call(client, "ask"));
  expect(textsOf(result)).toContain("Task input required.");
  expect(asked).toBe(1);
  const answer = { taskId: handleIn(result), message: "blue" };
  const answered = await client.callTool({ name: "answer_task", arguments: answer });
  expect(textsOf(answered as CallToolResult)).toContain("You like blue");
});

test.each(["while its question is shown", "after its question"])(
  "ends the task of a call canceled %s",
  async (when) => {
    const { agent, bridge } = await bridged();
    const client = await clientOfVersion1(bridge, { elicitation: {} });
    const controller = new AbortController();
    let asked = false;
    client.setRequestHandler(ElicitRequestSchema, () => {
      asked = true;
      const content = { answer: "hour" };
      return when === "after its question" ? { action: "accept", content } : new Promise<never>(() => undefined);
    });
    const asking = call(client, "ask", { signal: controller.signal });
    asking.catch(() => undefined);
    await expect.poll(() => asked).toBe(true);
    const stateOf = async () => (await agent.client.listTasks()).tasks[0]?.status.state;
    if (when === "after its question") await expect.poll(stateOf).toBe("TASK_STATE_WORKING");
    controller.abort();
    await expect(asking).rejects.toThrow(/abort/i);
    await expect.poll(stateOf).toBe("TASK_STATE_CANCELED");
  },
);

test("binds sessions to their callers, and limits their number", async () => {
  const { bridge } = await bridged({ key: "secret-of-the-bridge-that-is-long-enough" });
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } };
  const send = async (body: object, headers: Record<string, string> = {}, subject = "ada"): Promise<Response> => {
    const accept = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const init = {
      method: "POST",
      headers: { ...accept, ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", ...body }),
    };
    return bridge.fetch(new Request("http://bridge.example/mcp", init), { subject });
  };
  const begin = async (): Promise<string> => {
    const response = await send({ id: 1, method: "initialize", params });
    await response.text();
    return response.headers.get("mcp-session-id") ?? "none";
  };
  const first = await begin();
  const session = { "mcp-session-id": first, "mcp-protocol-version": "2025-11-25" };
  const list = { id: 2, method: "tools/list" };
  expect((await send(list, session, "bob")).status).toBe(404);
  expect((await send(list, session)).headers.get("mcp-session-id")).toBe(first);
  const ids = new Set<string>();
  for (let at = 0; at < 100; at += 1) ids.add(await begin());
  expect(ids.size).toBe(100);
  const crowd = new Set([...(await Promise.all(Array.from({ length: 250 }, begin))), ...ids]);
  let open = 0;
  for (const id of crowd) {
    const response = await send(list, { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" });
    await response.text();
    if (response.headers.get("mcp-session-id") === id) open += 1;
  }
  expect(open).toBeGreaterThan(0);
  expect(open).toBeLessThanOrEqual(100);
  // The oldest session was closed: its requests are answered without it.
  const late = await send(list, session);
  expect(late.headers.get("mcp-session-id")).toBeNull();
  expect(await late.text()).toContain("cancel_task");
});
