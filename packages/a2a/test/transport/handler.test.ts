import { setImmediate } from "node:timers/promises";
import { afterEach, describe, expect, test, vi } from "vitest";
import { A2AError } from "../../src/model/index.ts";
import { createHandler, type AgentMount, type Handler, type HandlerOptions } from "@parley/server/internal/handler";
import { defineAgent, type AgentDefinition } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import {
  idempotentSendExtension,
  resumeExtension,
  type Interceptor,
  type Principal,
} from "../../src/protocol/index.ts";
import { bearer, type Authenticator } from "../../src/auth/index.ts";
import { message } from "./support.ts";

const open: Handler[] = [];
afterEach(async () => {
  for (const handler of open.splice(0)) await handler.close();
});

function agent(definition: Partial<AgentDefinition> = {}) {
  return defineAgent({
    name: "Echo",
    description: "Says it again",
    version: "1.0.0",
    skills: [],
    onMessage: (turn) => turn.reply(`echo: ${turn.text}`),
    ...definition,
  });
}

function serve(agents: Parameters<typeof createHandler>[0], options: Partial<HandlerOptions> = {}): Handler {
  const handler = createHandler(agents, { store: memoryStore(), publicUrl: "https://agents.example", ...options });
  open.push(handler);
  return handler;
}

const json = { "content-type": "application/json" };
let sent = 0;
const sendBody = (more: object = {}) => JSON.stringify({ ...more, message: { ...message, messageId: `m${sent++}` } });
const send = (handler: Handler, url: string, headers: Record<string, string> = {}) =>
  handler.fetch(new Request(url, { method: "POST", headers: { ...json, ...headers }, body: sendBody() }));

describe("createHandler", () => {
  test("explains an invalid store", () => {
    expect(() => serve(agent(), { store: undefined as never })).toThrow("store is required");
    expect(() => serve(agent(), { store: { ...memoryStore() } })).toThrow(
      "store has no method append(). A copy of a store",
    );
  });

  test("does not touch the store if an option is invalid", async () => {
    const store = memoryStore();
    const asked = vi.spyOn(store, "claimable");
    const interceptors = ["log" as unknown as Interceptor];
    expect(() => serve(agent(), { store, interceptors })).toThrow("interceptors[0] must be a function");
    await setImmediate();
    expect(asked).not.toHaveBeenCalled();
    serve(agent(), { store });
    await setImmediate();
    expect(asked).toHaveBeenCalled();
  });

  test("serves an agent over both bindings, and its card", async () => {
    const handler = serve(agent());
    const rest = await send(handler, "https://agents.example/message:send");
    expect(await rest.json()).toMatchObject({ message: { role: "ROLE_AGENT", parts: [{ text: "echo: hi" }] } });
    const body = `{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":${sendBody()}}`;
    const rpc = await handler.fetch(new Request("https://agents.example/", { method: "POST", headers: json, body }));
    expect(await rpc.json()).toMatchObject({ id: 7, result: { message: { parts: [{ text: "echo: hi" }] } } });
    const card = await handler.fetch(
      new Request("https://agents.example/.well-known/agent-card.json", { headers: { "a2a-version": "1.0" } }),
    );
    expect(await card.json()).toEqual(handler.agents[0]?.card);
  });

  test("streams a turn from end to end, with rising ids", async () => {
    const handler = serve(
      agent({
        async *onMessage(turn) {
          yield turn.working("on it");
          yield turn.artifact({ name: "a", parts: [{ text: "done" }] });
        },
      }),
    );
    const response = await send(handler, "https://agents.example/message:stream");
    const text = await response.text();
    const ids = [...text.matchAll(/^id: (\d+)$/gm)].map((match) => Number(match[1]));
    expect(ids.length).toBeGreaterThan(2);
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
    expect(text).toContain("TASK_STATE_COMPLETED");
  });

  test.each(["rest", "jsonrpc"])("continues after Last-Event-ID, even after the task ended: %s", async (binding) => {
    const handler = serve(
      agent({
        async *onMessage(turn) {
          yield turn.working("on it");
          yield turn.artifact({ name: "a", parts: [{ text: "done" }] });
        },
      }),
    );
    const events = (text: string) =>
      text
        .replaceAll(/^:.*\n\n?/gm, "")
        .split("\n\n")
        .filter((event) => event.startsWith("id: "));
    const whole = events(await (await send(handler, "https://agents.example/message:stream")).text());
    const id = /"id":"([^"]+)"/.exec(whole[0] ?? "")?.[1] ?? "";
    const subscribe = (headers: Record<string, string>) =>
      handler.fetch(
        binding === "rest"
          ? new Request(`https://agents.example/tasks/${id}:subscribe`, { headers })
          : new Request("https://agents.example/", {
              method: "POST",
              headers: { ...json, ...headers },
              body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SubscribeToTask", params: { id } }),
            }),
      );
    const seen = Number(/^id: (\d+)/.exec(whole[1] ?? "")?.[1]);
    const rest = events(await (await subscribe({ "last-event-id": String(seen) })).text());
    const idsOf = (list: readonly string[]) => list.map((event) => event.split("\n")[0]);
    expect(idsOf(rest)).toEqual(idsOf(whole.slice(2)));
    expect(rest.length).toBeGreaterThan(0);
    // Without Last-Event-ID, a finished task has no stream (§3.1.6).
    const refused = await subscribe({});
    expect(await refused.text()).toContain("UNSUPPORTED_OPERATION");
  });

  test.each([
    undefined,
    "",
    "agents.example",
    "ftp://agents.example",
    "https://a.example/?x=1",
    "https://a.example/#x",
    "https://u:p@a.example",
  ])("rejects the publicUrl %j, and says what is required", (publicUrl) => {
    expect(() => serve(agent(), { publicUrl: publicUrl as string })).toThrow(
      /publicUrl is (required|not valid)\. .*https:\/\/agents\.example/,
    );
  });

  test.each([
    ["nothing", undefined],
    ["a value that defineAgent() did not return", { name: "Echo", onMessage: () => undefined }],
    ["a list of agents", [agent()]],
    ["a mount without an agent", [{ path: "/echo" }]],
  ])("rejects serving %s, and says what is required", (_, agents) => {
    expect(() => serve(agents as never)).toThrow(
      "agent must be an agent, as defineAgent() returns it, or a list of mounts",
    );
  });

  test.each([
    ["taskBytes", -1],
    ["bodyBytes", Number.NaN],
    ["totalBytes", 0],
    ["pageBytes", "8MB" as never],
  ])("rejects an invalid limit: limits.%s of %s", (name, value) => {
    expect(() => serve(agent(), { limits: { [name]: value } })).toThrow(
      `limits.${name} must be a number of at least 1`,
    );
  });

  test("rejects an unknown limit, which would limit nothing", () => {
    const serving = (limits: object) => () => serve(agent(), { limits });
    expect(serving({ streamPerCaller: 5 })).toThrow(
      /limits\.streamPerCaller is not a limit\. The limits are .*streamsPerCaller/,
    );
    expect(serving({ rate: { principals: { requests: 1, per: 1 } } })).toThrow(
      /limits\.rate\.principals is not a limit/,
    );
    expect(serving({ rate: { principal: 100 } })).toThrow(/limits\.rate\.principal must be \{ requests, per \}/);
    expect(serving({ rate: { principal: { requests: 1 } } })).toThrow(/limits\.rate\.principal\.per must be a number/);
    expect(serving({ rate: { failures: false, address: { requests: 1, per: 1 } }, tasksPerCaller: 1 })).not.toThrow();
  });

  test("puts publicUrl on the card, whatever the headers of a request are", async () => {
    const handler = serve(agent(), { publicUrl: "https://agents.example/a2a/" });
    const headers = { host: "evil.example", "x-forwarded-host": "evil.example", forwarded: "host=evil.example" };
    const response = await handler.fetch(new Request("http://localhost/a2a/.well-known/agent-card.json", { headers }));
    const card = (await response.json()) as { supportedInterfaces: { url: string }[] };
    expect(new Set(card.supportedInterfaces.map(({ url }) => url))).toEqual(new Set(["https://agents.example/a2a"]));
    expect(handler.agents[0]).toMatchObject({
      url: "https://agents.example/a2a",
      cardUrl: "https://agents.example/a2a/.well-known/agent-card.json",
    });
  });

  test("expects the path of publicUrl in requests, or basePath if a proxy changes it", async () => {
    const publicUrl = "https://agents.example/a2a";
    const plain = serve(agent(), { publicUrl });
    expect((await send(plain, "http://inside/a2a/message:send")).status).toBe(200);
    expect((await send(plain, "http://inside/message:send")).status).toBe(404);
    const stripped = serve(agent(), { publicUrl, basePath: "/" });
    expect((await send(stripped, "http://inside/message:send")).status).toBe(200);
    expect((await send(stripped, "http://inside/a2a/message:send")).status).not.toBe(200);
  });

  test("declares the server's extensions on the cards of agents that use them", () => {
    const urisOf = (handler: Handler) => handler.agents[0]?.card.capabilities.extensions?.map(({ uri }) => uri);
    expect(urisOf(serve(agent()))).toEqual([resumeExtension, idempotentSendExtension]);
    expect(urisOf(serve(agent(), { dedupe: false }))).toEqual([resumeExtension]);
    expect(urisOf(serve(agent({ capabilities: { streaming: false } })))).toEqual([idempotentSendExtension]);
    expect(urisOf(serve(agent({ capabilities: { streaming: false } }), { dedupe: false }))).toBeUndefined();
  });

  test("serves callers that the authenticator accepts, and passes them to the card and the agent", async () => {
    const who = agent({ onMessage: (turn) => turn.reply(turn.principal.subject) });
    const handler = serve(who, { authenticator: bearer({ "s3cret-token": { subject: "alice" } }) });
    const url = "https://agents.example/message:send";
    const out = await send(handler, url);
    expect([out.status, out.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    const into = await send(handler, url, { authorization: "Bearer s3cret-token" });
    expect(await into.json()).toMatchObject({ message: { parts: [{ text: "alice" }] } });
    expect(handler.agents[0]?.card).toMatchObject({
      securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
      securityRequirements: [{ schemes: { bearer: {} } }],
    });
  });

  test("has one anonymous caller if there is no authenticator", async () => {
    const handler = serve(agent({ onMessage: (turn) => turn.reply(turn.principal.subject) }));
    const answer = await send(handler, "https://agents.example/message:send", { authorization: "Bearer whatever" });
    expect(await answer.json()).toMatchObject({ message: { parts: [{ text: "anonymous" }] } });
  });

  test("rejects an authenticator that does not return a caller", async () => {
    const nobody: Authenticator = {
      authenticate: () => undefined as unknown as Principal,
      securitySchemes: {},
      securityRequirements: [],
    };
    const answer = await send(serve(agent(), { authenticator: nobody }), "https://agents.example/message:send");
    expect(answer.status).toBe(500);
  });

  test("serves the extended card only to authenticated callers, and not to caches (§3.1.11)", async () => {
    const mount: AgentMount = {
      agent: agent(),
      extendedCard: (card, principal) => ({ ...card, description: `for ${principal.subject}` }),
    };
    expect(() => serve(mount)).toThrow(/extendedCard needs an authenticator/);
    const handler = serve(mount, { authenticator: bearer({ "s3cret-token": { subject: "alice" } }) });
    expect(handler.agents[0]?.card.capabilities.extendedAgentCard).toBe(true);
    const url = "https://agents.example/extendedAgentCard";
    expect((await handler.fetch(new Request(url))).status).toBe(401);
    const into = await handler.fetch(new Request(url, { headers: { authorization: "Bearer s3cret-token" } }));
    expect(await into.json()).toEqual({ ...handler.agents[0]?.card, description: "for alice" });
    expect(into.headers.get("cache-control")).toContain("private");
  });

  test("answers with an error for an extended card that is declared and not configured (§3.3.4)", async () => {
    const handler = serve(agent({ capabilities: { extendedAgentCard: true } }));
    const answer = await handler.fetch(new Request("https://agents.example/extendedAgentCard"));
    expect(await answer.json()).toMatchObject({
      error: { details: [{ reason: "EXTENDED_AGENT_CARD_NOT_CONFIGURED" }] },
    });
  });

  test("accepts bodies of up to 10 MiB, or up to its limit", async () => {
    const body = (length: number) => JSON.stringify({ message: { ...message, parts: [{ text: "x".repeat(length) }] } });
    const post = async (handler: Handler, length: number) => {
      const asked = new Request("https://agents.example/message:send", {
        method: "POST",
        headers: json,
        body: body(length),
      });
      return (await handler.fetch(asked)).status;
    };
    const quiet = agent({ onMessage: (turn) => turn.reply("read") });
    expect([await post(serve(quiet), 9 << 20), await post(serve(quiet), 10 << 20)]).toEqual([200, 413]);
    const small = serve(quiet, { limits: { bodyBytes: 1000 } });
    expect([await post(small, 800), await post(small, 1000)]).toEqual([200, 413]);
  });

  test("wraps the service in interceptors, the first one outermost", async () => {
    const seen: string[] = [];
    const note =
      (name: string): Interceptor =>
      (next) => ({
        call: (operation, request, context) => {
          seen.push(`${name} ${operation}`);
          return next.call(operation, request, { ...context, principal: { subject: name } });
        },
        stream: (operation, request, context) => next.stream(operation, request, context),
      });
    const handler = serve(agent({ onMessage: (turn) => turn.reply(turn.principal.subject) }), {
      interceptors: [note("a"), note("b")],
    });
    const answer = await send(handler, "https://agents.example/message:send");
    expect(seen).toEqual(["a SendMessage", "b SendMessage"]);
    expect(await answer.json()).toMatchObject({ message: { parts: [{ text: "b" }] } });
  });

  test("serves several agents by path and by tenant, and lists their addresses", async () => {
    const named = (name: string) => agent({ name, onMessage: (turn) => turn.reply(name) });
    const handler = serve(
      [
        { agent: named("weather"), path: "/weather/" },
        { agent: named("acme"), path: "/shop", tenant: "acme" },
        { agent: named("other"), path: "/shop", tenant: "other one" },
      ],
      { publicUrl: "https://agents.example/base" },
    );
    expect(handler.agents.map(({ id, url, tenant, cardUrl }) => [id, url, tenant, cardUrl])).toEqual([
      [
        "/weather",
        "https://agents.example/base/weather",
        undefined,
        "https://agents.example/base/weather/.well-known/agent-card.json",
      ],
      [
        "/shop/acme",
        "https://agents.example/base/shop",
        "acme",
        "https://agents.example/base/shop/acme/.well-known/agent-card.json",
      ],
      [
        "/shop/other%20one",
        "https://agents.example/base/shop",
        "other one",
        "https://agents.example/base/shop/other%20one/.well-known/agent-card.json",
      ],
    ]);
    const said = async (path: string) => {
      const answer = await send(handler, `https://agents.example/base${path}/message:send`);
      return ((await answer.json()) as { message: { parts: { text: string }[] } }).message.parts[0]?.text;
    };
    expect([await said("/weather"), await said("/shop/acme"), await said("/shop/other%20one")]).toEqual([
      "weather",
      "acme",
      "other",
    ]);
    for (const { cardUrl, card } of handler.agents) {
      const asked = new Request(cardUrl, { headers: { "a2a-version": "1.0" } });
      expect(await (await handler.fetch(asked)).json()).toEqual(card);
    }
  });

  test("rejects two agents at one address, and two with one id", () => {
    const one = agent();
    expect(() =>
      serve([
        { agent: one, path: "/a" },
        { agent: one, path: "/a/" },
      ]),
    ).toThrow(A2AError);
    expect(() =>
      serve([
        { agent: one, path: "/a", id: "x" },
        { agent: one, path: "/b", id: "x" },
      ]),
    ).toThrow(/two agents/);
  });

  test("rejects an agent that declares webhooks, which are not supported", () => {
    // @ts-expect-error The types also reject this capability.
    const declared: NonNullable<AgentDefinition["capabilities"]> = { pushNotifications: true };
    expect(() => serve(agent({ capabilities: declared }))).toThrow(/pushNotifications/);
    const allowed: NonNullable<AgentDefinition["capabilities"]> = { streaming: true, pushNotifications: false };
    expect(serve(agent({ capabilities: allowed })).agents).toHaveLength(1);
  });

  test("checks capabilities and media types of the card on both bindings (§3.3.4)", async () => {
    const handler = serve(agent({ capabilities: { streaming: false } }));
    const stream = await send(handler, "https://agents.example/message:stream");
    expect([stream.status, await stream.json()]).toMatchObject([
      400,
      { error: { details: [{ reason: "UNSUPPORTED_OPERATION" }] } },
    ]);
    const body = `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":${sendBody()}}`;
    const rpc = await handler.fetch(new Request("https://agents.example", { method: "POST", headers: json, body }));
    expect(await rpc.json()).toMatchObject({ error: { code: -32004 } });
    const card = await handler.fetch(new Request("https://agents.example/extendedAgentCard"));
    expect(await card.json()).toMatchObject({ error: { details: [{ reason: "UNSUPPORTED_OPERATION" }] } });
  });

  test("answers requests after close() with Unavailable and Retry-After", async () => {
    const handler = serve(agent());
    await handler.close({ grace: 0 });
    const late = await send(handler, "https://agents.example/message:send");
    expect(late.status).toBe(503);
    await handler.close();
  });
});
