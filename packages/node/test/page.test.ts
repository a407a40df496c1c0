import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import { createHandler, defineAgent, memoryStore, restBinding, type Agent, type AgentMount } from "@parley/server";
import { allOf, apiKey, basic, bearer, type Authenticator } from "@parley/a2a/auth";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { expressMount } from "../src/express.ts";
import { serve, type ServeOptions, type Server } from "../src/index.ts";

/* Tests the page that browsers get at agents' URLs, over HTTP. test/browser shows the page in a browser. */

const running: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close({ grace: 0 })));
});

async function start(agents: Agent | readonly AgentMount[], options: ServeOptions = {}): Promise<Server> {
  const server = await serve(agents, { port: 0, signals: false, logger: false, store: memoryStore(), ...options });
  running.push(server);
  return server;
}

const named = (name: string, more: Partial<Agent> = {}): Agent => ({
  ...defineAgent({
    name,
    description: `${name} is described here.`,
    version: "1.2.3",
    skills: [{ id: "s", name: "Skill one", description: "Does one", tags: ["tag-one"], examples: ["Example one"] }],
    onMessage: (turn) => turn.reply(name),
  }),
  ...more,
});

/** The `Accept` header that browsers send. */
const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";

const get = (url: string, accept?: string, method = "GET"): Promise<Response> =>
  fetch(url, { method, headers: accept === undefined ? {} : { accept } });

describe("the page of an agent", () => {
  it("shows the public card, and how to call the agent at its public address", async () => {
    const server = await start(
      named("Oracle", { provider: { organization: "Delphi", url: "https://delphi.example" } }),
      {
        publicUrl: "https://agents.example.com/all",
      },
    );
    const answer = await get(`http://127.0.0.1:${server.port}/all`, browser);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    const text = await answer.text();
    for (const part of [
      '<h1 dir="auto">Oracle</h1>',
      "Oracle is described here.",
      "1.2.3",
      '<a href="https://delphi.example/" rel="noreferrer nofollow">Delphi</a>',
      "Skill one",
      "Example one",
      "tag-one",
      "curl https://agents.example.com/all/message:send",
      "connect(&quot;https://agents.example.com/all&quot;)",
      "npx @parley/cli send https://agents.example.com/all",
      '<a href="https://agents.example.com/all/.well-known/agent-card.json"',
    ])
      expect(text).toContain(part);
    expect(text).not.toContain("127.0.0.1");
  });

  it("runs nothing, loads nothing, cannot be framed, and differs for other clients (CSP, RFC 9110 §12.5.5)", async () => {
    const server = await start(named("Oracle", { iconUrl: "https://icons.example/icon.png" }));
    const answer = await get(server.url, browser);
    const text = await answer.text();
    expect(answer.headers.get("content-security-policy")).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
    );
    expect(answer.headers.get("vary")).toBe("Accept");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    expect(text).not.toMatch(
      /<(?:script|img|link|iframe|form|object|embed|meta http-equiv)|\bsrc=|\bon\w+=|icons\.example/,
    );
    expect(text.length).toBeLessThan(10_000);
  });

  it("answers HEAD, and 304 to a browser that has it", async () => {
    const server = await start(named("Oracle"));
    const head = await get(server.url, browser, "HEAD");
    expect([head.status, await head.text(), head.headers.get("vary")]).toEqual([200, "", "Accept"]);
    const etag = head.headers.get("etag") ?? "";
    const known = await fetch(server.url, { headers: { accept: browser, "if-none-match": etag } });
    expect(known.status).toBe(304);
  });

  it("is selected by its media type in any case (RFC 9110 §8.3.1)", async () => {
    const server = await start(named("Oracle"));
    expect((await get(server.url, "TEXT/HTML;Q=0.9")).status).toBe(200);
  });

  it.each([
    ["nothing", undefined],
    ["anything", "*/*"],
    ["JSON", "application/json"],
    ["events", "text/event-stream"],
    ["JSON rather than HTML", "application/json, text/html;q=0.5"],
    ["everything but HTML", "text/html;q=0, */*"],
  ])("is not for a client that accepts %s: it gets 405 with Allow", async (_name, accept) => {
    const server = await start(named("Oracle"));
    const answer = await get(server.url, accept);
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "POST"]);
    expect(answer.headers.get("content-type")).toBe("application/json");
  });

  it("does not answer POST, which calls the agent, whatever the request accepts", async () => {
    const server = await start(named("Oracle"));
    const answer = await fetch(server.url, {
      method: "POST",
      headers: { accept: browser, "content-type": "application/json" },
      body: '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"text":"x"}]}}}',
    });
    expect(await answer.json()).toMatchObject({ result: { message: { parts: [{ text: "Oracle" }] } } });
  });

  it("is at no other address: tasks, cards and unknown paths answer browsers like other clients", async () => {
    const server = await start(named("Oracle"));
    const card = await get(`${server.url}/.well-known/agent-card.json`, browser);
    expect(card.headers.get("content-type")).toBe("application/json");
    expect((await get(`${server.url}/tasks`, browser)).headers.get("content-type")).toContain("json");
    expect((await get(`${server.url}/unknown`, browser)).status).toBe(404);
  });

  it("can be switched off", async () => {
    const server = await start(named("Oracle"), { page: false });
    expect((await get(server.url, browser)).status).toBe(405);
  });

  it("shows nothing of an extended card", async () => {
    const server = await start(
      [{ agent: named("Oracle"), extendedCard: (card) => ({ ...card, description: "MARK-for-known-callers" }) }],
      { authenticator: bearer({ "token-of-ada-0123456789": { subject: "ada" } }) },
    );
    const answer = await fetch(server.url, {
      headers: { accept: browser, authorization: "Bearer token-of-ada-0123456789" },
    });
    expect(await answer.text()).not.toContain("MARK-for-known-callers");
  });

  it("is at the path of JSON-RPC, and at the base unless something else is there", async () => {
    const server = await start([{ agent: named("Oracle"), interfaces: { JSONRPC: "/rpc" } }]);
    for (const path of ["", "/", "/rpc", "/rpc/"]) expect((await get(server.url + path, browser)).status).toBe(200);
    const rest = await start(named("Oracle"), { bindings: [restBinding()] });
    expect((await get(rest.url, browser)).status).toBe(200);
    expect((await get(rest.url)).status).toBe(404);
  });
});

describe("the page of several agents", () => {
  it("is at the root without an agent, and links to each of them", async () => {
    const server = await start([
      { agent: named("Weather"), path: "/weather" },
      { agent: named("Travel"), path: "/travel", tenant: "acme" },
      { agent: named("Flights"), path: "/travel", tenant: "globex" },
    ]);
    const root = await (await get(server.url, browser)).text();
    expect(root).toContain(`<a href="${server.url}/weather"`);
    for (const name of ["Weather", "Travel", "Flights"]) expect(root).toContain(name);
    expect(root).toContain(`${server.url}/travel/acme/.well-known/agent-card.json`);
    expect(await (await get(`${server.url}/weather`, browser)).text()).toContain('<h1 dir="auto">Weather</h1>');
    // The page distinguishes agents that share a path. In 0.3, each agent has its own path.
    const shared = await (await get(`${server.url}/travel/`, browser)).text();
    expect([shared.includes("Travel"), shared.includes("Flights"), shared.includes("Weather")]).toEqual([
      true,
      true,
      false,
    ]);
    const own = await (await get(`${server.url}/travel/acme`, browser)).text();
    expect(own).toContain('<h1 dir="auto">Travel</h1>');
    expect(own).toContain(`${server.url}/travel/acme/message:send`);
    expect((await get(server.url)).status).toBe(404);
  });

  it("is the root agent's, if any", async () => {
    const server = await start([{ agent: named("Root") }, { agent: named("Weather"), path: "/weather" }]);
    expect(await (await get(server.url, browser)).text()).toContain('<h1 dir="auto">Root</h1>');
  });

  it("leaves the root of an application to the application", async () => {
    const handler = createHandler([{ agent: named("Weather"), path: "/weather" }], {
      publicUrl: "http://127.0.0.1",
      store: memoryStore(),
    });
    onTestFinished(() => handler.close());
    const app = express().use(expressMount(handler));
    app.get("/", (_request, response) => void response.send("the application"));
    const listening = createServer(app as RequestListener);
    onTestFinished(() => void listening.close());
    await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
    expect(await (await get(url, browser)).text()).toBe("the application");
    expect((await get(`${url}/weather`, browser)).headers.get("content-type")).toBe("text/html; charset=utf-8");
  });
});

describe("the command for curl", () => {
  it.each<readonly [string, Authenticator, readonly string[]]>([
    [
      "a bearer token",
      bearer({ "token-of-ada-0123456789": { subject: "ada" } }),
      ["-H &quot;Authorization: Bearer $TOKEN&quot;"],
    ],
    ["an API key", apiKey({ "key-of-ada-0123456789": { subject: "ada" } }), ["-H &quot;x-api-key: $API_KEY&quot;"]],
    ["a password", basic(() => undefined), ["-u &quot;$NAME:$PASSWORD&quot;"]],
    [
      "two together",
      allOf(
        bearer({ "token-of-ada-0123456789": { subject: "ada" } }),
        apiKey({ "key-of-ada-0123456789": { subject: "ada" } }, { cookie: "sid" }),
      ),
      ["Bearer $TOKEN", "--cookie &quot;sid=$API_KEY&quot;"],
    ],
  ])("shows how to send %s as the card requires", async (_name, authenticator, parts) => {
    const server = await start(named("Oracle"), { authenticator });
    const text = await (await get(server.url, browser)).text();
    for (const part of parts) expect(text).toContain(part);
  });
});
