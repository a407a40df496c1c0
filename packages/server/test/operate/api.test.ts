import { Validator } from "@seriousme/openapi-schema-validator";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { Principal } from "@parley/a2a/internal/protocol/index";
import { createHandler } from "../../src/handler.ts";
import { defineAgent } from "../../src/agent/index.ts";
import { cursorOf, positionOf } from "../../src/operate/cursor.ts";
import type { Act, TaskList } from "../../src/operate/port.ts";
import { operatorRoutes, type OperatorRequest } from "../../src/operate/routes.ts";
import { memoryStore } from "../../src/store/index.ts";
import { bound } from "../engine/support.ts";
import { document, serve, until } from "./support.ts";

/** Tests the operators' REST API: its callers, its rejections and its OpenAPI document. */

const done: Parameters<typeof serve>[0] = async function* (turn) {
  yield turn.completed("Done");
};
const agent = defineAgent({ name: "test", description: "a test", version: "1", skills: [], onMessage: done });
const publicUrl = "https://agents.example.com";

/** Authenticates Ada and Bob by name. */
const byName = {
  securitySchemes: { name: { apiKeySecurityScheme: { location: "header", name: "x-name" } } },
  securityRequirements: [{ schemes: { name: { list: [] } } }],
  authenticate(request: { header(name: string): string | undefined }): Principal {
    const subject = request.header("x-name");
    if (subject === undefined) throw new A2AError("Unauthenticated", "Who are you?");
    return { subject };
  },
};

describe("who may operate", () => {
  it("is nobody if the option is off", async () => {
    const on = serve(done, { operators: false });
    const response = await on.handler.fetch(new Request("http://127.0.0.1:4000/ops/v1/counts"));
    expect(response.status).toBe(404);
  });

  it("is rejected at the start beyond loopback without an authenticator, and with an authenticator but no authorization", () => {
    const make = (operators: object | boolean) => () =>
      createHandler(agent, { publicUrl, store: memoryStore(), operators });
    expect(make(true)).toThrow("operators.authenticator is required where publicUrl is not a loopback address");
    expect(make({ authenticator: byName })).toThrow("operators.authorize is required with operators.authenticator");
    expect(make({ path: "ops" })).toThrow("operators.path");
    const poor = bound(memoryStore());
    expect(() => createHandler(agent, { publicUrl, store: poor, operators: true })).toThrow("it has no `operators`");
  });

  it.each([
    ["another machine", { remoteAddress: "192.0.2.7" }, {}],
    ["an unknown address", {}, {}],
    ["a proxy on this machine", { remoteAddress: "127.0.0.1" }, { "x-forwarded-for": "192.0.2.7" }],
    ["a page of another origin", { remoteAddress: "127.0.0.1" }, { origin: "https://evil.example" }],
  ])("is not %s, without an authenticator", async (_who, facts, headers) => {
    const refused: string[] = [];
    const audit = ({ event, outcome }: { event: string; outcome: string }): void =>
      void refused.push(`${event} ${outcome}`);
    const on = serve(done, { facts: () => facts, audit });
    for (const { method, path } of [...operatorRoutes, { method: "GET", path: "/openapi.json" }]) {
      const body = method === "POST" ? { agent: "/", taskId: "t", node: "n", step: "s", wait: "w" } : undefined;
      expect((await on.ops(path, body, headers)).status).toBe(403);
    }
    expect(await on.store.operators?.acts({ limit: 9 })).toEqual([]);
    if (!("origin" in headers)) expect(new Set(refused)).toEqual(new Set(["authorization refused"]));
  });

  it("is anyone whom `authorize` permits, and no caller of agents", async () => {
    const asked: OperatorRequest[] = [];
    const on = serve(done, {
      operators: {
        authenticator: byName,
        authorize: (request) => {
          asked.push(request);
          return request.principal.subject === "ada" || (request.principal.subject === "bob" && request.act === "read");
        },
      },
    });
    const ada = { "x-name": "ada" };
    const pause = { agent: "/", reason: "ä \u0000" };
    expect((await on.ops("/v1/counts")).status).toBe(401);
    expect((await on.ops("/v1/counts", undefined, { "x-name": "eve" })).status).toBe(403);
    expect((await on.ops("/v1/counts", undefined, { "x-name": "bob" })).status).toBe(200);
    expect((await on.ops("/v1/acts/pause", pause, { "x-name": "bob" })).status).toBe(403);
    expect((await on.ops("/v1/acts/pause", pause, ada)).status).toBe(200);
    expect(asked.at(-1)).toMatchObject({ act: "pause", agent: "/", principal: { subject: "ada" } });
    const { body } = await on.ops<{ acts: readonly Act[] }>("/v1/acts", undefined, ada);
    expect(body.acts.map(({ by, act, reason }) => [by, act, reason])).toEqual([["ada", "pause", pause.reason]]);
  });
});

describe("the API rejects", () => {
  it("an unknown, missing or invalid input, with its name", async () => {
    const on = serve(done);
    const wrong: readonly (readonly [path: string, body: object | undefined, field: string])[] = [
      ["/v1/tasks?limit=0", undefined, "limit"],
      ["/v1/tasks?limit=501", undefined, "limit"],
      ["/v1/tasks?limit=1e1", undefined, "limit"],
      ["/v1/tasks?states=WORKING", undefined, "states"],
      ["/v1/tasks?order=up", undefined, "order"],
      ["/v1/tasks?since=yesterday", undefined, "since"],
      ["/v1/tasks?suspended=1", undefined, "suspended"],
      ["/v1/tasks?limit=1&limit=2", undefined, "limit"],
      ["/v1/tasks?color=red", undefined, "color"],
      ["/v1/task?agent=%2F", undefined, "taskId"],
      ["/v1/acts/cancel", { agent: "/" }, "taskId"],
      ["/v1/acts/cancel", { agent: "/", taskId: 7 }, "taskId"],
      ["/v1/acts/cancel", { agent: "/", taskId: "t", seq: 1.5 }, "seq"],
      ["/v1/acts/cancel", { agent: "/", taskId: "t", reason: "x".repeat(1_001) }, "reason"],
      ["/v1/acts/cancel", { agent: "/", taskId: "t", __proto__x: 1 }, "__proto__x"],
      ["/v1/acts/pause", { agent: "x".repeat(4_097) }, "agent"],
    ];
    for (const [path, body, field] of wrong) {
      const answer = await on.ops(path, body);
      expect([path, answer.status, JSON.stringify(answer.body).includes(field)]).toEqual([path, 400, true]);
    }
    const fetched = (init: RequestInit) =>
      on.handler.fetch(new Request("http://127.0.0.1:4000/ops/v1/acts/cancel", { method: "POST", ...init }));
    const json = { "content-type": "application/json" };
    expect((await fetched({ body: "{}" })).status).toBe(400);
    expect((await fetched({ body: "[]", headers: json })).status).toBe(400);
    expect((await fetched({ body: "{", headers: json })).status).toBe(400);
    expect((await fetched({ body: `{"agent":"${"x".repeat(70_000)}"}`, headers: json })).status).toBe(413);
    expect((await fetched({ method: "PUT", body: "{}", headers: json })).status).toBe(405);
  });

  it("a cursor with a changed byte, and a cursor of another filter", () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(fc.option(fc.maxSafeInteger())),
        fc.nat(),
        fc.string({ minLength: 1, maxLength: 1 }),
        (filter, position, at, char) => {
          const cursor = cursorOf(filter, position);
          expect(positionOf(filter, cursor)).toEqual(position);
          const place = at % cursor.length;
          const altered = cursor.slice(0, place) + char + cursor.slice(place + 1);
          if (altered !== cursor) expect(() => positionOf(filter, altered)).toThrow("cursor");
          expect(() => positionOf(`${filter}x`, cursor)).toThrow("cursor");
          expect(() => positionOf(filter, cursor.slice(0, -1))).toThrow("cursor");
        },
      ),
    );
  });
});

describe("the list", () => {
  it("has all tasks in pages, whatever the ids of agents and tasks are", async () => {
    const on = serve(done);
    const ids = ["a/b", "ä\u0000", "'; DROP TABLE", "%2F", "\ud800", "..", "x".repeat(300)];
    for (const taskId of ids) {
      const task = { agent: `agent ${taskId}`, owner: "o", taskId };
      const status = { state: "TASK_STATE_WORKING" } as const;
      const json = JSON.stringify({ id: taskId, contextId: "c", status, history: [] });
      const record = { kind: "task", json, state: status.state, time: 1, actor: "user", turn: 1, attempt: 1 } as const;
      await on.store.append([{ task, create: { contextId: "c" }, records: [record] }]);
    }
    const found: string[] = [];
    for (let next: string | undefined = ""; next !== undefined;) {
      const page: { body: TaskList } = await on.ops<TaskList>(`/v1/tasks?limit=2${next && `&cursor=${next}`}`);
      found.push(...page.body.tasks.map(({ taskId }) => taskId));
      next = page.body.next;
    }
    expect(found.sort()).toEqual([...ids].sort());
    for (const taskId of ids.filter((id) => id !== "\ud800")) {
      const query = new URLSearchParams({ agent: `agent ${taskId}`, taskId });
      expect((await on.ops(`/v1/task?${query.toString()}`)).status).toBe(200);
    }
  });
});

describe("concurrent acts", () => {
  it("succeed for one operator; the others get a rejection with the current task", async () => {
    const on = serve(async function* (turn) {
      yield turn.inputRequired("Which one?");
    });
    const taskId = await on.send("Go");
    await until(async () => (await on.stateOf(taskId)) === "TASK_STATE_INPUT_REQUIRED");
    const seq = (await on.store.head({ agent: "/" }, taskId))?.seq;
    const all = await Promise.all(
      Array.from({ length: 20 }, () =>
        on.ops<{ ok: boolean; task?: object }>("/v1/acts/cancel", { agent: "/", taskId, seq }),
      ),
    );
    expect(all.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const { status, body } of all)
      expect([200, 409].includes(status) && body.task).toMatchObject({ state: "TASK_STATE_CANCELED" });
    const acts = await on.store.operators?.acts({ limit: 99 });
    expect(acts).toHaveLength(20);
  });
});

describe("the OpenAPI document", () => {
  it("is valid: version 3.1", async () => {
    const validator = new Validator();
    expect(await validator.validate(structuredClone(document))).toEqual({ valid: true });
    expect(validator.version).toBe("3.1");
    const broken = { ...structuredClone(document), paths: { "/x": { get: { responses: 7 } } } };
    expect((await new Validator().validate(broken)).valid).toBe(false);
  });

  it("says for each act when it is rejected, and 404 only for acts on tasks", () => {
    const acts = Object.entries(document.paths).flatMap(([path, { post }]) => {
      const responses = post?.responses;
      return responses === undefined
        ? []
        : [[path.split("/").at(-1), responses["409"]?.description, "404" in responses]];
    });
    expect(acts).toContainEqual(["cancel", "Refused: The task has changed, or does not allow this", true]);
    const conflict = "Refused: The agent is paused already, or no node serves it and it has no tasks";
    expect(acts).toContainEqual(["pause", conflict, false]);
    expect(acts).toHaveLength(8);
    expect(acts.every(([, description]) => typeof description === "string")).toBe(true);
  });

  it("is served, and has every route with its inputs", async () => {
    const on = serve(done);
    const { body } = await on.ops<typeof document>("/openapi.json");
    expect(body).toEqual(JSON.parse(JSON.stringify(document)));
    expect(Object.keys(body.paths).length).toBe(new Set(operatorRoutes.map(({ path }) => path)).size);
  });
});
