import { connect, type Client, type Part } from "@parley/a2a";
import { memoryStore, serve, type Server } from "@parley/node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { tck03 } from "../agents/tck-0.3.ts";
import { start } from "../serve.ts";

const running: Server[] = [];
afterAll(() => Promise.all(running.map((server) => server.close({ grace: 0 }))));

async function started(server: Server | undefined): Promise<Server> {
  if (server === undefined) throw new Error("There is no such configuration");
  running.push(server);
  return server;
}

async function cardOf({ url }: Server): Promise<Readonly<Record<string, unknown>>> {
  return (await (await fetch(`${url}/.well-known/agent-card.json`)).json()) as Readonly<Record<string, unknown>>;
}

const send = (client: Client, messageId: string, taskId?: string) =>
  client.sendMessage({
    message: { messageId, role: "ROLE_USER", parts: [{ text: "Go" }], ...(taskId === undefined ? {} : { taskId }) },
  });

describe("the agent for the kit of 1.0", () => {
  let server: Server;
  let client: Client;
  beforeAll(async () => {
    server = await started(await start("tck-1.0", "all", 0));
    client = await connect(server.url);
  });

  test("has a card with 1.0 only, and all three bindings", async () => {
    const card = await cardOf(server);
    expect(card).not.toHaveProperty("url");
    expect(card["supportedInterfaces"]).toEqual([
      { url: server.url, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
      { url: server.url, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      { url: server.url.replace("http://", ""), protocolBinding: "GRPC", protocolVersion: "1.0" },
    ]);
  });

  test.each([
    ["tck-artifact-text", { text: "Generated text content" }],
    ["tck-artifact-data", { data: { key: "value", count: 42 } }],
    ["tck-artifact-file", { raw: expect.any(String), filename: "output.txt", mediaType: "text/plain" }],
    ["tck-artifact-file-url", { url: expect.any(String), filename: "output.txt", mediaType: "text/plain" }],
  ] as readonly (readonly [string, Part])[])("returns for %s the specified artifact", async (prefix, part) => {
    const { task } = await send(client, `${prefix}-1`);
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task?.artifacts?.[0]?.parts).toEqual([part]);
  });

  test("answers, asks for input and completes, also for an id that is reused with another message", async () => {
    expect((await send(client, "tck-message-response-1")).message?.parts).toEqual([
      { text: "Direct message response" },
    ]);
    for (let again = 0; again < 2; again++) {
      const { task } = await send(client, "tck-input-required-1");
      expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
      const followUp = await send(client, "tck-complete-task-1", task?.id);
      expect(followUp.task).toMatchObject({ id: task?.id, status: { state: "TASK_STATE_COMPLETED" } });
    }
  });
});

test("the agent for the kit of 0.3 works for a while and then asks for input; the gRPC address on its card has a scheme", async () => {
  const options = { port: 0, store: memoryStore(), dedupe: false, signals: false, logger: false } as const;
  const quick = await started(await serve(tck03({ hold: 1, longHold: 2 }), options));
  const client = await connect(quick.url, { version: "0.3" });
  const seen: unknown[] = [];
  for await (const { task, statusUpdate } of client.sendStreamingMessage("Go"))
    seen.push((task ?? statusUpdate)?.status.state);
  expect(seen).toEqual(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED"]);

  const card = await cardOf(await started(await start("tck-0.3", "all", 0)));
  expect(card["additionalInterfaces"]).toContainEqual({ url: expect.stringMatching(/^http:/), transport: "GRPC" });
});

test.each(["all", "none", "guarded"])("the agent for ACTS exists, %s", async (configuration) => {
  const server = await started(await start("acts", configuration, 0));
  const { capabilities, securityRequirements } = await cardOf(server);
  expect(capabilities).toMatchObject({ streaming: configuration !== "none" });
  expect(securityRequirements !== undefined).toBe(configuration === "guarded");
});

test.each([
  ["tck-1.0", "some"],
  ["tck-0.3", "none"],
  ["acts", "extension"],
] as const)("%s %s does not exist", async (kit, configuration) => {
  expect(await start(kit, configuration, 0)).toBeUndefined();
});
