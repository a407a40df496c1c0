import { describe, expect, onTestFinished, test } from "vitest";
import { A2AError } from "../../src/model/index.ts";
import { createHandler, type Handler } from "@parley/server/internal/handler";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import { bearer, type Access, type Authorizer, type AuthorizerRequest } from "../../src/auth/index.ts";
import { LinesLogger } from "../transport/support.ts";

const agent = defineAgent({
  name: "Vault",
  description: "Keeps things",
  version: "1.0.0",
  skills: [{ id: "open", name: "Open", description: "Opens it", tags: [] }],
  async *onMessage(turn) {
    yield turn.working("kept");
  },
});

const authenticator = bearer({ ada: { subject: "ada", scopes: ["write"] }, bob: { subject: "bob" } });

interface Serving {
  readonly logger: LinesLogger;
  ask(caller: string, method: string, path: string, body?: unknown): Promise<readonly [status: number, said: string]>;
}

function serving(authorizer: Authorizer): Serving {
  const logger = new LinesLogger();
  const handler: Handler = createHandler([{ agent, id: "vault" }], {
    publicUrl: "http://localhost:4000",
    store: memoryStore(),
    push: { keys: [btoa("k".repeat(32))] },
    authenticator,
    authorizer,
    logger,
  });
  onTestFinished(() => handler.close());
  return {
    logger,
    async ask(caller, method, path, body) {
      const answer = await handler.fetch(
        new Request(`http://localhost:4000${path}`, {
          method,
          headers: { authorization: `Bearer ${caller}`, "content-type": "application/json", "a2a-version": "1.0" },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        }),
      );
      return [answer.status, await answer.text()];
    },
  };
}

const send = (more: object = {}): object => ({
  message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: "hi" }], ...more },
});

/** Lets every caller read. Lets only callers with the scope write. */
const writers: Authorizer = ({ operation, principal }) =>
  operation.startsWith("Get") || operation === "ListTasks" || principal.scopes?.includes("write") ? "allow" : "deny";

describe("an authorizer (A2A 1.0 §7.5)", () => {
  test("allows calls, and denies the others before any work", async () => {
    const { ask } = serving(writers);
    expect((await ask("ada", "POST", "/message:send", send()))[0]).toBe(200);
    const [status, said] = await ask("bob", "POST", "/message:send", send());
    expect([status, JSON.parse(said)]).toEqual([
      403,
      expect.objectContaining({
        error: expect.objectContaining({ status: "PERMISSION_DENIED", message: "Not allowed" }),
      }),
    ]);
    const [streamed] = await ask("bob", "POST", "/message:stream", send());
    expect(streamed).toBe(403);
    expect(JSON.parse((await ask("bob", "GET", "/tasks"))[1])).toMatchObject({ tasks: [], totalSize: 0 });
  });

  test("does not reveal whether a task exists: the answer for a missing task is the same", async () => {
    const { ask } = serving(({ operation }) => (operation === "GetTask" ? "deny" : "allow"));
    const task = (JSON.parse((await ask("ada", "POST", "/message:send", send()))[1]) as { task: { id: string } }).task;
    const known = await ask("ada", "GET", `/tasks/${task.id}`);
    expect(known).toEqual(await ask("ada", "GET", "/tasks/unknown"));
    expect(known[0]).toBe(403);
  });

  test("gets the operation, the caller, the agent, and the ids in the request", async () => {
    const asked: AuthorizerRequest[] = [];
    const { ask } = serving((request) => {
      asked.push(request);
      return "deny";
    });
    const calls: readonly (readonly [string, string, object?])[] = [
      ["POST", "/message:send", send({ taskId: "t", contextId: "c" })],
      ["POST", "/message:stream", send()],
      ["GET", "/tasks/t"],
      ["GET", "/tasks?contextId=c"],
      ["POST", "/tasks/t:cancel", {}],
      ["GET", "/tasks/t:subscribe"],
      ["GET", "/tasks/t/pushNotificationConfigs"],
      ["GET", "/extendedAgentCard"],
    ];
    for (const [method, path, body] of calls) expect((await ask("ada", method, path, body))[0]).toBe(403);
    expect(asked.map(({ operation, taskId, contextId }) => [operation, taskId, contextId])).toEqual([
      ["SendMessage", "t", "c"],
      ["SendStreamingMessage", undefined, undefined],
      ["GetTask", "t", undefined],
      ["ListTasks", undefined, "c"],
      ["CancelTask", "t", undefined],
      ["SubscribeToTask", "t", undefined],
      ["ListTaskPushNotificationConfigs", "t", undefined],
      ["GetExtendedAgentCard", undefined, undefined],
    ]);
    for (const { principal, agent: id, context } of asked) {
      expect([principal.subject, id, context.version]).toEqual(["ada", "vault", "1.0"]);
      expect(context.headers?.("authorization")).toBe("Bearer ada");
    }
  });

  test("gets the webhook, the tasks that a message refers to, and the skill if the card has it", async () => {
    const asked: AuthorizerRequest[] = [];
    const { ask } = serving((request) => {
      asked.push(request);
      return "deny";
    });
    await ask("ada", "GET", "/tasks/t/pushNotificationConfigs/c-1");
    await ask("ada", "DELETE", "/tasks/t/pushNotificationConfigs/c-1");
    await ask("ada", "POST", "/message:send", send({ referenceTaskIds: ["a", "b"], metadata: { skillId: "open" } }));
    await ask("ada", "POST", "/message:send", send({ metadata: { skillId: "not on the card" } }));
    expect(
      asked.map(({ taskId, configId, referenceTaskIds, skill }) => [taskId, configId, referenceTaskIds, skill]),
    ).toEqual([
      ["t", "c-1", undefined, undefined],
      ["t", "c-1", undefined, undefined],
      [undefined, undefined, ["a", "b"], "open"],
      [undefined, undefined, undefined, undefined],
    ]);
  });

  test.each([
    ["GET", "/tasks/{id}"],
    ["POST", "/tasks/{id}:cancel", {}],
    ["GET", "/tasks/{id}:subscribe"],
    ["POST", "/message:send", send({ taskId: "{id}" })],
    ["POST", "/message:stream", send({ taskId: "{id}" })],
    ["GET", "/tasks/{id}/pushNotificationConfigs"],
    ["GET", "/tasks/{id}/pushNotificationConfigs/c"],
    ["DELETE", "/tasks/{id}/pushNotificationConfigs/c"],
    ["POST", "/tasks/{id}/pushNotificationConfigs", { url: "https://example.com/hook" }],
  ] as const)(
    "that hides a task answers %s %s as for a task that does not exist",
    async (method, path, body?: object) => {
      const { ask } = serving(({ taskId }) => (taskId === undefined ? "allow" : "hide"));
      const { id } = (JSON.parse((await ask("ada", "POST", "/message:send", send()))[1]) as { task: { id: string } })
        .task;
      const about = async (taskId: string): Promise<readonly [number, string]> => {
        const filled = body && (JSON.parse(JSON.stringify(body).replaceAll("{id}", taskId)) as object);
        const [status, said] = await ask("ada", method, path.replace("{id}", taskId), filled);
        return [status, said.replaceAll(taskId, "{id}").replaceAll(/"timestamp":"[^"]*"/g, "")];
      };
      const hidden = await about(id);
      expect(hidden).toEqual(await about("0195d6a4-0000-7000-8000-000000000000"));
      expect(hidden[0]).toBe(404);
    },
  );

  test("that hides a call without a task has no side effect", async () => {
    const { ask } = serving(({ operation, contextId }) =>
      operation === "ListTasks" && contextId === undefined ? "allow" : "hide",
    );
    expect((await ask("ada", "POST", "/message:send", send({ contextId: "c" })))[0]).toBe(403);
    expect(JSON.parse((await ask("ada", "GET", "/tasks?contextId=c"))[1])).toMatchObject({ tasks: [], totalSize: 0 });
    expect(JSON.parse((await ask("ada", "GET", "/tasks"))[1])).toMatchObject({ tasks: [], totalSize: 0 });
  });

  test.each<[string, () => unknown]>([
    ["nothing", () => undefined],
    ["true", () => true],
    ["a promise of nothing", () => Promise.resolve()],
    ["another word", () => "Allow"],
  ])("that answers with %s denies", async (_, answer) => {
    const { ask } = serving(() => answer() as Access);
    expect((await ask("ada", "GET", "/tasks"))[0]).toBe(403);
  });

  test("may throw a protocol error, which the caller gets", async () => {
    const { ask } = serving(() => {
      throw new A2AError("PermissionDenied", "Ask the owner of the vault");
    });
    const [status, said] = await ask("ada", "GET", "/tasks");
    expect([status, said]).toEqual([403, expect.stringContaining("Ask the owner of the vault")]);
  });

  test("that fails denies with an internal error; the log has the reason", async () => {
    const { ask, logger } = serving(() => Promise.reject(new Error("ldap://10.0.0.7 is down")));
    const [status, said] = await ask("ada", "GET", "/tasks");
    expect(status).toBe(500);
    expect(said).not.toContain("10.0.0.7");
    expect(String(logger.lines[0]?.fields?.["cause"])).toContain("ldap://10.0.0.7 is down");
  });
});
