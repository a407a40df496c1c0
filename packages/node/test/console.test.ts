import { memoryStore } from "@parley/server";
import { bearer } from "@parley/a2a/auth";
import { afterEach, describe, expect, it } from "vitest";
import { serve, type ServeOptions, type Server } from "../src/index.ts";
import { echoAgent } from "./support/agents.ts";

/* Tests `serve(agent, { console })`. The tests of the console page are in test/browser. */

const running: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close({ grace: 0 })));
});

async function start(options: ServeOptions): Promise<Server> {
  const common = { port: 0, signals: false, logger: false, store: memoryStore() } as const;
  const server = await serve(echoAgent(), { ...common, ...options });
  running.push(server);
  return server;
}

const authenticator = bearer({ "token-of-ada": { subject: "ada" } });

async function session(server: Server, path = "/console", headers: Record<string, string> = {}) {
  const answer = await fetch(`${server.url}${path}/api/session`, { headers });
  return {
    status: answer.status,
    body: (await answer.json()) as { mode?: string; agents?: readonly { id: string }[] },
  };
}

describe("the option console", () => {
  it("is off by default", async () => {
    const server = await start({});
    expect((await fetch(`${server.url}/console/`)).status).toBe(404);
    expect(await (await fetch(server.url, { headers: { accept: "text/html" } })).text()).not.toContain(
      "Talk to this agent",
    );
  });

  it("shows the agents of the server, at a path of the user's choice, beside routes of the user's own", async () => {
    const own = { path: "/own", answer: () => new Response("own") };
    const server = await start({ console: { path: "/admin/eyes" }, routes: [own] });
    const { body } = await session(server, "/admin/eyes");
    expect(body).toMatchObject({ mode: "server", agents: [{ path: "/", version: "1.0" }] });
    expect(await (await fetch(`${server.url}/own`)).text()).toBe("own");
    const page = await (await fetch(server.url, { headers: { accept: "text/html" } })).text();
    expect(page).toMatch(/href="http:\/\/[^"]+\/admin\/eyes\/#\/talk\/[^"]+"[^>]*>Talk to this agent</);
  });

  it("has its data behind the authenticator, and says to anyone how to sign in", async () => {
    const server = await start({ console: true, authenticator });
    expect((await session(server)).status).toBe(401);
    expect((await session(server, "/console", { authorization: "Bearer token-of-ada" })).status).toBe(200);
    const signIn = await fetch(`${server.url}/console/sign-in`);
    expect(await signIn.json()).toEqual({ mode: "server", bearer: true, basic: false, apiKeys: [] });
  });

  it("has no relay: the page cannot make the server call others", async () => {
    const server = await start({ console: true });
    for (const path of ["agents", "wire"]) {
      const init = {
        method: "POST",
        body: `{"url":"http://127.0.0.1:1"}`,
        headers: { "content-type": "application/json" },
      };
      expect((await fetch(`${server.url}/console/api/${path}`, init)).status).toBe(404);
    }
  });

  it("leaves out agents whose cards the caller may not read", async () => {
    const cardReaders = (): boolean => false;
    const server = await start({ console: true, authenticator, cardReaders });
    expect((await session(server, "/console", { authorization: "Bearer token-of-ada" })).body.agents).toEqual([]);
  });

  it.each([
    ["another host", { host: "0.0.0.0", publicUrl: "http://agents.example", insecure: true }],
    ["a proxy of this machine", { publicUrl: "https://agents.example" }],
    ["a trusted proxy", { trustProxy: ["127.0.0.1"] }],
  ])("is refused without an authenticator if other machines can reach it: %s", async (_, options) => {
    await expect(start({ console: true, ...options })).rejects.toThrow(/console can be reached .* no authenticator/);
  });

  it.each([
    [{ console: { path: "console" } }, "must be true, false or"],
    [{ console: true, routes: () => undefined }, "`routes` must be a list"],
  ] as const)("refuses %j", async (options, message) => {
    await expect(start(options)).rejects.toThrow(message);
  });
});
