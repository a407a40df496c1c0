import { describe, expect, onTestFinished, test } from "vitest";
import { auditLog, type Audit, type AuditRecord } from "../../src/protocol/index.ts";
import { createHandler, type HandlerOptions } from "@parley/server/internal/handler";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import { silentLogger, type LogFields } from "../../src/base/index.ts";
import { bearer, byOrganization } from "../../src/auth/index.ts";
import { LinesLogger } from "../transport/support.ts";

const trace = "0af7651916cd43dd8448eb211c80319c";

const agent = defineAgent({
  name: "Vault",
  description: "Keeps things",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    yield turn.working("looking");
    yield turn.working("looking again");
    if (turn.text === "ask") yield turn.inputRequired("which one?");
  },
});

const authenticator = bearer({
  ada: { subject: "ada", organization: "acme" },
  bob: { subject: "bob", organization: "acme" },
  eve: { subject: "eve" },
});

type Ask = (caller: string | undefined, method: string, path: string, body?: unknown) => Promise<[number, unknown]>;

function serving(options: Partial<HandlerOptions>): { readonly ask: Ask } {
  const handler = createHandler([{ agent, id: "vault" }], {
    publicUrl: "http://localhost:4000",
    store: memoryStore(),
    authenticator,
    facts: () => ({ remoteAddress: "192.0.2.7" }),
    ...options,
  });
  onTestFinished(() => handler.close());
  return {
    async ask(caller, method, path, body) {
      const headers = {
        "content-type": "application/json",
        "a2a-version": "1.0",
        traceparent: `00-${trace}-b7ad6b7169203331-01`,
        ...(caller !== undefined && { authorization: `Bearer ${caller}` }),
      };
      const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
      const answer = await handler.fetch(new Request(`http://localhost:4000${path}`, init));
      return [answer.status, await answer.json()];
    },
  };
}

const send = (text: string, more: object = {}): object => ({
  message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }], ...more },
});

function recorded(options: Partial<HandlerOptions> = {}): { readonly ask: Ask; readonly records: AuditRecord[] } {
  const records: AuditRecord[] = [];
  return { ...serving({ audit: (record) => records.push(record), ...options }), records };
}

const idOf = (answer: unknown): string => (answer as { readonly task: { readonly id: string } }).task.id;

describe("the audit", () => {
  test("records each unknown caller, with its address and trace, and nothing of its token", async () => {
    const { ask, records } = recorded();
    expect((await ask(undefined, "GET", "/tasks"))[0]).toBe(401);
    expect((await ask("stolen-token", "GET", "/tasks"))[0]).toBe(401);
    const refused = {
      event: "authentication",
      outcome: "refused",
      time: expect.any(Number) as number,
      code: "Unauthenticated",
      address: "192.0.2.7",
      traceId: trace,
    };
    expect(records).toEqual([refused, refused]);
  });

  test("records an authenticator that fails, so its callers do not look like intruders", async () => {
    const { ask, records } = recorded({
      authenticator: bearer(() => {
        throw new Error("the directory is down");
      }),
    });
    expect((await ask("any", "GET", "/tasks"))[0]).toBe(500);
    expect(records).toMatchObject([{ event: "authentication", outcome: "failed", code: "InternalError" }]);
    expect(JSON.stringify(records)).not.toContain("directory");
  });

  test.each(["deny", "hide"] as const)("records each call that the authorizer answers with %s", async (access) => {
    const { ask, records } = recorded({ authorizer: () => access });
    expect((await ask("ada", "GET", "/tasks/t-1"))[0]).toBe(access === "deny" ? 403 : 404);
    expect(records).toEqual([
      {
        event: "authorization",
        outcome: "refused",
        time: expect.any(Number) as number,
        agent: "vault",
        operation: "GetTask",
        subject: "ada",
        organization: "acme",
        address: "192.0.2.7",
        taskId: "t-1",
        traceId: trace,
        ...(access === "deny" && { code: "PermissionDenied" }),
      },
    ]);
  });

  test("records a task once it is stored, and who caused each change of its state", async () => {
    const { ask, records } = recorded({ ownerOf: byOrganization });
    const sent = (await ask("ada", "POST", "/message:send", send("ask")))[1];
    const taskId = idOf(sent);
    const { contextId } = (sent as { readonly task: { readonly contextId: string } }).task;
    await ask("bob", "POST", "/message:send", send("ask", { taskId }));
    await ask("ada", "POST", `/tasks/${taskId}:cancel`, {});
    const common = { outcome: "success", agent: "vault", taskId, contextId, traceId: trace, organization: "acme" };
    expect(records.map(({ time: _, ...record }) => record)).toEqual([
      { event: "task-created", state: "TASK_STATE_SUBMITTED", subject: "ada", ...common },
      { event: "task-state", state: "TASK_STATE_WORKING", subject: "ada", ...common },
      { event: "task-state", state: "TASK_STATE_INPUT_REQUIRED", subject: "ada", ...common },
      { event: "task-state", state: "TASK_STATE_WORKING", subject: "bob", ...common },
      { event: "task-state", state: "TASK_STATE_INPUT_REQUIRED", subject: "bob", ...common },
      { event: "task-state", state: "TASK_STATE_CANCELED", subject: "ada", ...common },
    ]);
  });

  test("truncates values whose length the caller chooses", async () => {
    const long = bearer(() => ({ subject: "x".repeat(100_000) }));
    const { ask, records } = recorded({ authenticator: long, authorizer: () => "deny" });
    await ask("any", "GET", "/tasks");
    expect(records[0]?.subject).toHaveLength(256);
  });

  test.each<[string, Audit]>([
    [
      "throws",
      () => {
        throw new Error("no room on the disk");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no room on the disk"))],
  ])("that %s changes nothing, and the server logs it", async (_, audit) => {
    const logger = new LinesLogger();
    const { ask } = serving({ audit, logger });
    expect((await ask("ada", "POST", "/message:send", send("hi")))[0]).toBe(200);
    expect(logger.lines.map(({ message }) => message)).toContain("An audit record could not be written");
  });

  test("is written as one line a record by auditLog()", async () => {
    const lines: (readonly [message: string, fields: LogFields | undefined])[] = [];
    const logger = { ...silentLogger, info: (...line: (typeof lines)[number]) => lines.push(line) };
    const { ask } = serving({ audit: auditLog(logger) });
    await ask("nobody", "GET", "/tasks");
    expect(lines).toEqual([["Audit", expect.objectContaining({ event: "authentication", outcome: "refused" })]]);
  });

  test("must be a function", () => {
    expect(() => serving({ audit: {} as Audit })).toThrow("audit");
  });
});
