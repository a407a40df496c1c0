import { describe, expect, it, onTestFinished, test } from "vitest";
import type { Principal } from "@parley/a2a/protocol";
import { mcpServer, type McpBridge } from "../src/index.ts";
import { bridged, officialClient, textsOf } from "./agent.ts";

/** The members of a result that the tests read. */
interface Shown {
  readonly taskId: string;
  readonly status: string;
  readonly resultType: string;
  readonly isError?: boolean;
  readonly lastUpdatedAt: string;
  readonly _meta: Readonly<Record<string, string>>;
  readonly inputRequests?: Readonly<Record<string, unknown>>;
  readonly result: Parameters<typeof textsOf>[0];
}

interface Asking {
  readonly capabilities?: object;
  readonly caller?: Principal;
}

const tasks = { "io.modelcontextprotocol/tasks": {} };
const name = "io.modelcontextprotocol";

/** Sends a 2026-07-28 request like a client of the tasks extension, which the official client does not support yet. */
async function call(
  bridge: McpBridge,
  method: string,
  params: Readonly<Record<string, unknown>>,
  { capabilities = { extensions: tasks, elicitation: { form: {}, url: {} } }, caller }: Asking = {},
): Promise<{ readonly result: Shown; readonly error: unknown }> {
  const _meta = {
    [`${name}/protocolVersion`]: "2026-07-28",
    [`${name}/clientInfo`]: { name: "test", version: "1" },
    [`${name}/clientCapabilities`]: capabilities,
  };
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": method,
    "mcp-name": String(params["name"] ?? params["taskId"]),
    authorization: "Bearer secret-of-the-mcp-caller",
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } });
  const response = await bridge.fetch(
    new Request("http://bridge.example/mcp", { method: "POST", headers, body }),
    caller,
  );
  return (await response.json()) as { result: Shown; error: unknown };
}

const say = (message: string) => ({ name: "do_it", arguments: { message } });

describe("the tasks extension (SEP-2663)", () => {
  it("returns a handle only after the agent has stored the task, and then its result", async () => {
    const { agent, bridge } = await bridged();
    const { result: begun } = await call(bridge, "tools/call", say("hour"));
    expect(begun).toMatchObject({ resultType: "task", status: "working", ttlMs: null, pollIntervalMs: 2000 });
    expect((await agent.client.getTask(begun.taskId)).id).toBe(begun.taskId);
    expect((await call(bridge, "tasks/get", { taskId: begun.taskId })).result).toMatchObject({
      resultType: "complete",
      status: "working",
    });
    const get = async (): Promise<Shown> => (await call(bridge, "tasks/get", { taskId: begun.taskId })).result;
    await expect.poll(get).toMatchObject({ statusMessage: "This takes an hour" });
    let result = await get();
    for (; result.status !== "completed"; result = await get()) await agent.clock.advance(600_000);
    expect(result.taskId).toBe(begun.taskId);
    expect(textsOf(result.result)).toContain("42");
    expect(Date.parse(result.lastUpdatedAt)).toBeLessThanOrEqual(agent.clock.now());
  });

  it("keeps its state in the agent's task, which outlives the bridge", async () => {
    const key = "secret-of-the-bridge-that-is-long-enough";
    const { agent, bridge } = await bridged({ key });
    const caller = { subject: "ada" };
    const { result: begun } = await call(bridge, "tools/call", say("ask"), { caller });
    const { result: waits } = await call(bridge, "tasks/get", { taskId: begun.taskId }, { caller });
    await bridge.close();
    const next = await mcpServer(agent.client, { clock: agent.clock, key });
    onTestFinished(() => next.close());
    const [question = ""] = Object.keys(waits.inputRequests ?? {});
    const answer = {
      taskId: begun.taskId,
      inputResponses: { [question]: { action: "accept", content: { answer: "blue" } } },
    };
    expect((await call(next, "tasks/update", answer, { caller })).result).toMatchObject({ resultType: "complete" });
    await call(next, "tasks/update", answer, { caller });
    await expect
      .poll(async () => (await call(next, "tasks/get", { taskId: begun.taskId }, { caller })).result)
      .toMatchObject({ status: "completed", result: { content: [{ text: "You like blue" }, {}] } });
  });

  it("asks with forms and links, and ignores answers to other questions", async () => {
    const { bridge } = await bridged({}, { publicUrl: "http://127.0.0.1:4000" });
    const { result: form } = await call(bridge, "tools/call", say("form"));
    const { result: asked } = await call(bridge, "tasks/get", { taskId: form.taskId });
    expect(asked).toMatchObject({ status: "input_required", statusMessage: "Where to, and how long?" });
    const [request] = Object.values(asked.inputRequests ?? {});
    expect(request).toMatchObject({
      method: "elicitation/create",
      params: {
        mode: "form",
        requestedSchema: { properties: { city: { type: "string" }, nights: { type: "integer" } } },
      },
    });
    const wrong = {
      taskId: form.taskId,
      inputResponses: { other: { action: "accept", content: { city: "Bern", nights: 1 } } },
    };
    await call(bridge, "tasks/update", wrong);
    expect((await call(bridge, "tasks/get", { taskId: form.taskId })).result.inputRequests).toEqual(
      asked.inputRequests,
    );
    const { result: approve } = await call(bridge, "tools/call", say("approve"));
    await expect
      .poll(
        async () =>
          Object.values((await call(bridge, "tasks/get", { taskId: approve.taskId })).result.inputRequests ?? {})[0],
      )
      .toMatchObject({ params: { mode: "url", url: expect.stringContaining("http://127.0.0.1:4000/") } });
  });

  it("cancels tasks, reports a failure in the result, and answers immediately without a task", async () => {
    const { bridge } = await bridged();
    const { result: begun } = await call(bridge, "tools/call", say("hour"));
    const cancel = { taskId: begun.taskId };
    expect(await call(bridge, "tasks/cancel", cancel)).toMatchObject({ result: {} });
    expect(await call(bridge, "tasks/cancel", cancel)).toMatchObject({ result: {} });
    expect((await call(bridge, "tasks/get", { taskId: begun.taskId })).result.status).toBe("cancelled");
    const { result: direct } = await call(bridge, "tools/call", say("hello"));
    expect(direct).toMatchObject({ resultType: "complete" });
    const { result: failed } = await call(bridge, "tools/call", say("fail"));
    const task = failed.resultType === "task" ? failed.taskId : failed._meta["a2a.taskId"];
    await expect
      .poll(async () => (await call(bridge, "tasks/get", { taskId: task })).result)
      .toMatchObject({ status: "completed", result: { isError: true } });
  });

  it("requires a client that declares it, and the caller of the task", async () => {
    const { bridge } = await bridged({ key: "secret-of-the-bridge-that-is-long-enough" });
    const [ada, bob] = [{ caller: { subject: "ada" } }, { caller: { subject: "bob" } }];
    const { result: begun } = await call(bridge, "tools/call", say("hour"), ada);
    const { taskId } = begun;
    for (const method of ["tasks/get", "tasks/cancel", "tasks/update"]) {
      const forged = { taskId, inputResponses: {} };
      expect((await call(bridge, method, forged, bob)).error).toMatchObject({
        code: -32602,
        message: "There is no such task",
      });
      expect((await call(bridge, method, forged, { ...ada, capabilities: {} })).error).toMatchObject({ code: -32021 });
    }
    expect((await call(bridge, "tasks/get", { taskId }, ada)).result.status).toBe("working");
  });
});

test("never forwards the caller's token: an exchange has its own credentials", async () => {
  const { agent } = await bridged();
  const seen: (string | null)[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    seen.push(request.headers.get("authorization"));
    if (!request.url.endsWith(".json")) return Response.json({ error: "no" }, { status: 500 });
    return Response.json({
      ...agent.client.card,
      supportedInterfaces: [{ url: "https://agent.example/", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    });
  };
  let exchanges = 0;
  const bridge = await mcpServer("https://agent.example/", {
    clock: agent.clock,
    key: "secret-of-the-bridge-that-is-long-enough",
    connect: { fetch, retry: false },
    credentialsFor: ({ subject }) => {
      exchanges += 1;
      return { headers: { authorization: `Bearer exchanged-for-${subject}` } };
    },
  });
  const { result } = await call(bridge, "tools/call", say("hello"), { caller: { subject: "ada" } });
  expect(result.isError).toBe(true);
  expect(new Set(seen)).toEqual(new Set([null, "Bearer exchanged-for-ada"]));
  await call(bridge, "tools/call", say("hello"), { caller: { subject: "ada" } });
  expect(exchanges).toBe(1);
  // Exchanged tokens expire.
  await agent.clock.advance(61_000);
  await call(bridge, "tools/call", say("hello"), { caller: { subject: "ada" } });
  expect(exchanges).toBe(2);
  await expect(mcpServer(agent.client, { credentialsFor: () => ({}) })).rejects.toThrow("needs the URL of the agent");
});

test("the card, skills, tasks and artifacts are resources with change notifications (2026-07-28)", async () => {
  const { agent, bridge } = await bridged();
  const client = await officialClient(bridge, "2026-07-28");
  const { resources } = await client.listResources();
  expect(resources.map(({ name: each }) => each)).toEqual(["agent-card", "do it", "do/it", "get_task"]);
  const read = async (uri: string) => {
    const [first] = (await client.readResource({ uri })).contents;
    return first !== undefined && "text" in first ? first.text : undefined;
  };
  for (const { uri } of resources) expect(JSON.parse((await read(uri)) ?? "")).toBeTypeOf("object");
  const base = (resources[0]?.uri ?? "").replace("/agent-card", "");
  const { task } = await agent.client.sendMessage({ message: "hour", configuration: { returnImmediately: true } });
  const uri = `${base}/tasks/${task!.id}`;
  expect(JSON.parse((await read(uri)) ?? "")).toMatchObject({
    taskId: task!.id,
    status: { state: expect.any(String) },
  });
  const updated: string[] = [];
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => void updated.push(params.uri));
  await client.listen({ resourceSubscriptions: [uri] });
  await expect.poll(() => read(uri)).toContain("This takes an hour");
  for (const before = Date.now(); updated.length === 0 && Date.now() - before < 60_000;)
    await agent.clock.advance(600_000);
  expect(updated).toContain(uri);
  await expect.poll(() => read(uri)).toContain("COMPLETED");
  expect(await read(`${uri}/artifacts/answer`)).toBe("42");
  for (const wrong of [
    `${base}/tasks/x`,
    `${base}/nothing`,
    "file:///etc/passwd",
    `${base}/tasks/%`,
    `${uri}/artifacts/x`,
    `${uri}/anything/answer`,
    `${uri}/artifacts`,
    `${uri}/artifacts/answer/more`,
    `${resources[1]?.uri}/more`,
  ]) {
    await expect(read(wrong)).rejects.toThrow("not found");
  }
});
