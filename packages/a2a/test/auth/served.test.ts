import { describe, expect, onTestFinished, test } from "vitest";
import {
  anyOf,
  anyone,
  bearer,
  challenge,
  defineScheme,
  type AuthenticationPlace,
  type Authenticator,
} from "../../src/auth/index.ts";
import { createHandler, type AgentMount, type HandlerOptions } from "@parley/server/internal/handler";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import type { AgentSkill } from "../../src/model/index.ts";

/* Tests authenticators on a server: requirements of cards and skills, audiences, and resource metadata. */

const skill = (id: string, ...scopes: readonly string[]): AgentSkill => ({
  id,
  name: id,
  description: id,
  tags: [],
  ...(scopes.length > 0 && { securityRequirements: [{ schemes: { bearer: { list: scopes } } }] }),
});

const agent = defineAgent({
  name: "Bank",
  description: "Tells and pays",
  version: "1.0.0",
  documentationUrl: "https://example.com/docs",
  skills: [skill("tell"), skill("pay", "write")],
  async *onMessage(turn) {
    if (turn.text === "ask") return yield turn.inputRequired("What?");
    yield turn.working(["tell", "pay", "nothing"].map((id) => `${id}: ${turn.allows(id)}`).join(", "), { keep: true });
    return undefined;
  },
});

const tokens = bearer({ reader: { subject: "ada", scopes: ["read"] }, writer: { subject: "bob", scopes: ["write"] } });

interface Answer {
  readonly status: number;
  readonly challenge: string | null;
  readonly text: string;
}

interface Request {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly method?: string;
}

function serving(authenticator: Authenticator, mounts: readonly AgentMount[], options: Partial<HandlerOptions> = {}) {
  const handler = createHandler(mounts, {
    publicUrl: "https://agents.example.com",
    store: memoryStore(),
    authenticator,
    ...options,
  });
  onTestFinished(() => handler.close());
  return async (path: string, { token, headers, body, method = body === undefined ? "GET" : "POST" }: Request = {}) => {
    const answer = await handler.fetch(
      new Request(`https://agents.example.com${path}`, {
        method,
        headers: {
          "a2a-version": "1.0",
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );
    const { status } = answer;
    return { status, challenge: answer.headers.get("www-authenticate"), text: await answer.text() } satisfies Answer;
  };
}

const send = (more: object = {}, text = "hi") => ({
  message: { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text }], ...more },
});

describe("the requirements of a skill (A2A 1.0 §4.4.5)", () => {
  test("are checked for the skill that a message names in its metadata, for streams too", async () => {
    const ask = serving(tokens, [{ agent }]);
    const pay = send({ metadata: { skillId: "pay" } });
    const refused = { status: 403, challenge: 'Bearer error="insufficient_scope", scope="write"' };
    expect(await ask("/message:send", { token: "reader", body: pay })).toMatchObject(refused);
    expect(await ask("/message:stream", { token: "reader", body: pay })).toMatchObject(refused);
    expect((await ask("/message:send", { token: "reader", body: pay })).text).toContain("lack a scope: write");
    expect(await ask("/message:send", { token: "writer", body: pay })).toMatchObject({ status: 200 });
    for (const skillId of ["tell", "unknown", 7, null]) {
      const body = send({ metadata: { skillId } });
      expect(await ask("/message:send", { token: "reader", body })).toMatchObject({ status: 200 });
    }
  });

  test("are checked in 0.3 as well", async () => {
    const ask = serving(tokens, [{ agent }]);
    const message = { kind: "message", messageId: "1", role: "user", parts: [{ kind: "text", text: "hi" }] };
    const params = { message: { ...message, metadata: { skillId: "pay" } } };
    const body = { jsonrpc: "2.0", id: 1, method: "message/send", params };
    expect(await ask("", { token: "reader", body, headers: { "a2a-version": "0.3" } })).toMatchObject({ status: 403 });
    expect(await ask("", { token: "writer", body, headers: { "a2a-version": "0.3" } })).toMatchObject({ status: 200 });
  });

  test("are the skill's, if the server's `skillOf` finds one", async () => {
    const ask = serving(tokens, [{ agent }], { skillOf: ({ message }) => message.parts[0]?.text });
    expect(await ask("/message:send", { token: "reader", body: send({}, "pay") })).toMatchObject({ status: 403 });
    expect(await ask("/message:send", { token: "reader", body: send({}, "tell") })).toMatchObject({ status: 200 });
  });

  test("can be read by the agent, also in a turn whose caller comes from the store", async () => {
    const ask = serving(tokens, [{ agent }]);
    for (const [token, pays] of [
      ["reader", false],
      ["writer", true],
    ] as const) {
      const said = `tell: true, pay: ${pays}, nothing: false`;
      expect((await ask("/message:send", { token, body: send() })).text).toContain(said);
      const { task } = JSON.parse((await ask("/message:send", { token, body: send({}, "ask") })).text) as {
        task: { id: string };
      };
      expect((await ask("/message:send", { token, body: send({ taskId: task.id }) })).text).toContain(said);
    }
  });

  test("apply to known callers only, while anyone may use the other skills", async () => {
    const ask = serving(anyOf(tokens, anyone()), [{ agent }]);
    const pay = send({ metadata: { skillId: "pay" } });
    expect(await ask("/message:send", { body: send() })).toMatchObject({ status: 200 });
    expect(await ask("/message:send", { body: pay })).toMatchObject({ status: 401, challenge: "Bearer" });
    expect(await ask("/message:send", { token: "writer", body: pay })).toMatchObject({ status: 200 });
    expect(await ask("/message:send", { token: "wrong", body: send() })).toMatchObject({
      status: 401,
      challenge: 'Bearer error="invalid_token"',
    });
  });
});

describe("the requirements of a card (A2A 1.0 §4.4.1)", () => {
  const strict = defineAgent({
    name: "Strict",
    description: "Wants more than its server",
    version: "1",
    skills: [],
    securityRequirements: [{ schemes: { bearer: { list: ["write"] } } }],
    onMessage: (turn) => turn.reply("yes"),
  });

  test("are the agent's, if it has its own", async () => {
    const ask = serving(tokens, [{ agent: strict, path: "/strict" }, { agent }]);
    expect(await ask("/strict/message:send", { token: "reader", body: send() })).toMatchObject({ status: 403 });
    expect(await ask("/strict/tasks", { token: "reader" })).toMatchObject({ status: 403 });
    expect(await ask("/strict/tasks", { token: "writer" })).toMatchObject({ status: 200 });
    expect(await ask("/tasks", { token: "reader" })).toMatchObject({ status: 200 });
  });

  test("name the missing scheme if the caller used another one", async () => {
    const guest = defineScheme({
      name: "guest",
      scheme: { httpAuthSecurityScheme: { scheme: "Guest" } },
      credentials: (request) => request.header("x-guest"),
      verify: (subject) => ({ subject }),
      challenge: () => challenge("Guest"),
    });
    const ask = serving(anyOf(tokens, guest), [{ agent: strict }]);
    const refused = await ask("/tasks", { headers: { "x-guest": "eve" } });
    expect(refused).toMatchObject({ status: 401, challenge: "Bearer" });
  });

  test("are met by an authenticator that names no schemes and declares one requirement", async () => {
    const own: Authenticator = {
      securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
      securityRequirements: [{ schemes: { bearer: {} } }],
      authenticate: (request) => ({ subject: "ada", scopes: [request.header("x-scope") ?? ""] }),
    };
    const ask = serving(own, [{ agent: strict }]);
    expect(await ask("/tasks", { headers: { "x-scope": "read" } })).toMatchObject({ status: 403, challenge: null });
    expect(await ask("/tasks", { headers: { "x-scope": "write" } })).toMatchObject({ status: 200 });
  });

  test("are rejected at startup if no authenticator checks them", () => {
    const serve = (given: Partial<HandlerOptions>, one = strict) =>
      createHandler(one, { publicUrl: "http://localhost", store: memoryStore(), ...given });
    expect(() => serve({})).toThrow(/securityRequirements has the scheme "bearer", which the authenticator/);
    expect(() => serve({}, agent)).toThrow(/skills\[pay\]\.securityRequirements has the scheme "bearer"/);
    const other = bearer({}, { name: "other" });
    expect(() => serve({ authenticator: other })).toThrow(/which the authenticator of this server does not check/);
  });

  test("are rejected at startup in an invalid form, which would require nothing (A2A 1.0 §4.5.2)", () => {
    const serve = (of: "agent" | "skill", member: object) => () =>
      createHandler(
        {
          ...agent,
          skills: [{ ...skill("tell"), ...(of === "skill" && member) }],
          ...(of === "agent" && member),
        },
        { publicUrl: "http://localhost", store: memoryStore(), authenticator: tokens },
      );
    for (const of of ["agent", "skill"] as const) {
      const of0_3 = [{ bearer: ["write"] }];
      expect(serve(of, { securityRequirements: of0_3 })).toThrow(
        /securityRequirements\[0\] must have the member schemes/,
      );
      expect(serve(of, { security: of0_3 })).toThrow(/security is the field of A2A 0\.3\. In 1\.0 it is securityReq/);
      const list = [{ schemes: { bearer: ["write"] } }];
      expect(serve(of, { securityRequirements: list })).toThrow(/\[0\]\.schemes\.bearer must have a list of scopes/);
      const text = [{ schemes: { bearer: { list: "write" } } }];
      expect(serve(of, { securityRequirements: text })).toThrow(/\[0\]\.schemes\.bearer must have a list of scopes/);
      expect(serve(of, { securityRequirements: {} })).toThrow(/securityRequirements must be a list/);
      expect(serve(of, { securityRequirements: [null] })).toThrow(/\[0\] must have the member schemes/);
      expect(serve(of, { securityRequirements: [{}, { schemes: { bearer: {} } }] })).not.toThrow();
    }
  });
});

test("options about callers of another type are rejected at startup, not at each call", () => {
  const serve = (given: object) => () =>
    createHandler(agent, { publicUrl: "http://localhost", store: memoryStore(), authenticator: tokens, ...given });
  expect(serve({ authenticator: [tokens] })).toThrow(
    /authenticator must be an authenticator.* go together by anyOf\(\)/,
  );
  expect(serve({ authenticator: bearer })).toThrow(/authenticator must be an authenticator, such as apiKey\(keys\)/);
  expect(serve({ authenticator: null })).toThrow(/authenticator must be/);
  for (const name of ["authorizer", "ownerOf", "skillOf"]) {
    expect(serve({ [name]: {} })).toThrow(`${name} must be a function`);
  }
});

describe("the extended card (A2A 1.0 §3.1.11)", () => {
  test("is for authenticated callers, even if anyone may call", async () => {
    const extendedCard: AgentMount["extendedCard"] = (card, { subject }) => ({ ...card, name: `For ${subject}` });
    const ask = serving(anyOf(tokens, anyone()), [{ agent, extendedCard }]);
    expect(await ask("/extendedAgentCard")).toMatchObject({ status: 401, challenge: "Bearer" });
    expect((await ask("/extendedAgentCard", { token: "reader" })).text).toContain("For ada");
  });
});

/** Creates an authenticator whose tokens are the names of their audience. */
function forAudience(seen: AuthenticationPlace[] = []): Authenticator {
  return defineScheme({
    name: "bearer",
    scheme: { httpAuthSecurityScheme: { scheme: "Bearer" } },
    resource: { authorizationServers: ["https://login.example.com"], scopes: ["write"] },
    credentials: (request) => request.header("authorization")?.replace("Bearer ", ""),
    verify: (audience, _request, place) => {
      seen.push(place);
      return { subject: "ada", scopes: ["write"], audience: [audience] };
    },
    challenge: ({ metadataUrl }, problem) =>
      challenge("Bearer", { error: problem?.error, resource_metadata: metadataUrl }),
  });
}

describe("agents as resources (RFC 8707, RFC 9728)", () => {
  const other = defineAgent({
    name: "Other",
    description: "-",
    version: "1",
    skills: [],
    onMessage: (turn) => turn.reply(""),
  });
  const mounts: readonly AgentMount[] = [{ agent }, { agent: other, path: "/other" }];
  const server = "https://agents.example.com";

  test("a token for one agent does not open another; a token for the server opens all", async () => {
    const ask = serving(forAudience(), mounts);
    expect(await ask("/other/tasks", { token: `${server}/other` })).toMatchObject({ status: 200 });
    expect(await ask("/other/tasks", { token: `${server}/other/` })).toMatchObject({ status: 200 });
    expect(await ask("/tasks", { token: `${server}/other` })).toMatchObject({
      status: 401,
      challenge: `Bearer error="invalid_token", resource_metadata="${server}/.well-known/oauth-protected-resource"`,
    });
    expect(await ask("/other/tasks", { token: server })).toMatchObject({ status: 200 });
    expect(await ask("/tasks", { token: server })).toMatchObject({ status: 200 });
    expect(await ask("/other/tasks", { token: "https://evil.example" })).toMatchObject({ status: 401 });
  });

  test("agents that share an address by tenant share tokens with each other only", async () => {
    const ask = serving(forAudience(), [
      { agent, tenant: "a", path: "/x" },
      { agent: other, tenant: "b", path: "/x" },
    ]);
    expect(await ask("/x/b/tasks", { token: `${server}/x` })).toMatchObject({ status: 200 });
    expect(await ask("/x/b/tasks", { token: `${server}/y` })).toMatchObject({ status: 401 });
  });

  test("the resource of a request has the agents at its path, and the URL that the client sees", async () => {
    const seen: AuthenticationPlace[] = [];
    const ask = serving(forAudience(seen), mounts);
    await ask("/other/tasks?pageSize=1", { token: server });
    await ask("/tasks", { token: server });
    expect(seen).toEqual([
      {
        resources: [`${server}/other`, server],
        metadataUrl: `${server}/.well-known/oauth-protected-resource/other`,
        demanded: ["bearer"],
        url: `${server}/other/tasks?pageSize=1`,
      },
      {
        resources: [server, `${server}/other`],
        metadataUrl: `${server}/.well-known/oauth-protected-resource`,
        demanded: ["bearer"],
        url: `${server}/tasks`,
      },
    ]);
  });

  test("the challenge names the well-known path of the metadata (RFC 9728 §3, §5.1)", async () => {
    const ask = serving(forAudience(), mounts);
    const refused = await ask("/other/tasks");
    const [, url = ""] = /resource_metadata="([^"]+)"/.exec(refused.challenge ?? "") ?? [];
    expect([refused.status, url]).toEqual([401, `${server}/.well-known/oauth-protected-resource/other`]);
    const found = await ask(new URL(url).pathname);
    expect([found.status, JSON.parse(found.text)]).toEqual([
      200,
      {
        resource: `${server}/other`,
        authorization_servers: ["https://login.example.com"],
        scopes_supported: ["write"],
        bearer_methods_supported: ["header"],
        resource_name: "Other",
      },
    ]);
    const root = await ask("/.well-known/oauth-protected-resource");
    expect(JSON.parse(root.text)).toMatchObject({
      resource: server,
      resource_name: "Bank",
      resource_documentation: "https://example.com/docs",
    });
    expect(await ask("/.well-known/oauth-protected-resource", { method: "POST", body: {} })).toMatchObject({
      status: 405,
    });
  });

  test("have no metadata if no scheme has tokens of a known issuer", async () => {
    const ask = serving(tokens, mounts);
    expect(await ask("/.well-known/oauth-protected-resource", { token: "reader" })).toMatchObject({ status: 404 });
    expect((await ask("/tasks")).challenge).toBe("Bearer");
  });

  test("below a path: the well-known path comes between host and path, and works behind a proxy that changes paths", async () => {
    const publicUrl = `${server}/api`;
    const straight = serving(forAudience(), mounts, { publicUrl });
    expect((await straight("/api/other/tasks")).challenge).toContain(
      `"${server}/.well-known/oauth-protected-resource/api/other"`,
    );
    const found = await straight("/.well-known/oauth-protected-resource/api/other");
    expect(JSON.parse(found.text)).toMatchObject({ resource: `${publicUrl}/other` });

    const seen: AuthenticationPlace[] = [];
    const proxied = serving(forAudience(seen), mounts, { publicUrl, basePath: "" });
    expect((await proxied("/other/tasks")).challenge).toContain(
      `"${publicUrl}/.well-known/oauth-protected-resource/other"`,
    );
    const below = await proxied("/.well-known/oauth-protected-resource/other");
    expect(JSON.parse(below.text)).toMatchObject({ resource: `${publicUrl}/other` });
    await proxied("/other/tasks", { token: publicUrl });
    expect(seen[0]?.url).toBe(`${publicUrl}/other/tasks`);
  });
});
