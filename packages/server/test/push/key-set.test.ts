import { createRemoteJWKSet, customFetch, jwtVerify } from "jose";
import { describe, expect, test } from "vitest";
import { createHandler, type AgentMount, type HandlerOptions } from "../../src/handler.ts";
import { defineAgent } from "../../src/agent/index.ts";
import { memoryStore } from "../../src/store/index.ts";
import type { PushOptions } from "../../src/push/port.ts";
import { createSigner, keySetOf, pushKeyring } from "../../src/push/keys.ts";
import { dialerTo } from "./config-support.ts";

const described = { name: "A", description: "a", version: "1", skills: [] };
const agent = defineAgent({ ...described, onMessage: (turn) => turn.reply("a") });
const silent = defineAgent({
  ...described,
  capabilities: { pushNotifications: false },
  onMessage: (turn) => turn.reply("b"),
});

const bytes = [new Uint8Array(32).fill(3), new Uint8Array(32).fill(4)] as const;
const [next, old] = bytes.map((each) => Buffer.from(each).toString("base64")) as [string, string];
const publicUrl = "https://agents.example.com/all";

const serving = (options: Partial<HandlerOptions> = {}, agents: Parameters<typeof createHandler>[0] = agent) =>
  createHandler(agents, { publicUrl, store: memoryStore(), push: { keys: [next, old] }, ...options });

const get = (handler: ReturnType<typeof serving>, path: string, init?: RequestInit) =>
  handler.fetch(new Request(new URL(path, "https://agents.example.com"), init));

describe("the key set of a server (RFC 7517)", () => {
  test("has the public keys of all its keys, and is at the URL that the card declares", async () => {
    const handler = serving();
    const extension = handler.agents[0]?.card.capabilities.extensions?.find(({ uri = "" }) => uri.includes("webhooks"));
    expect(extension).toEqual({
      uri: "urn:parley:extension:webhooks:v1",
      description: "Webhooks are signed",
      params: {
        keySet: "https://agents.example.com/all/.well-known/jwks.json",
        issuer: "https://agents.example.com/all",
        schemes: ["Bearer", "StandardWebhooks"],
      },
    });
    const answer = await get(handler, "/all/.well-known/jwks.json");
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("application/jwk-set+json");
    expect(await answer.json()).toEqual(await keySetOf(pushKeyring(bytes)));
  });

  test("verifies a JWT in the libraries of other receivers, from before a rotation and after it", async () => {
    const handler = serving();
    const keySet = createRemoteJWKSet(new URL(`${publicUrl}/.well-known/jwks.json`), {
      [customFetch]: async (url) => handler.fetch(new Request(url)),
    });
    for (const key of bytes) {
      const signed = { id: "s_1", timestamp: Math.floor(Date.now() / 1000), body: "{}" };
      const signer = createSigner(pushKeyring([key]), publicUrl);
      const token = await signer.jwt(signed, { audience: "https://client.example/", taskId: "t" });
      const { payload } = await jwtVerify(token, keySet, { issuer: publicUrl, audience: "https://client.example/" });
      expect(payload["taskId"]).toBe("t");
    }
  });

  test("is cached by clients as long as a card, and is not sent again to a client that has it", async () => {
    const handler = serving({ cardMaxAge: 60 });
    const answer = await get(handler, "/all/.well-known/jwks.json");
    expect(answer.headers.get("cache-control")).toBe("public, max-age=60");
    const etag = answer.headers.get("etag") ?? "";
    expect(etag).toMatch(/^"[0-9a-f]{32}"$/);
    const again = await get(handler, "/all/.well-known/jwks.json", { headers: { "if-none-match": etag } });
    expect([again.status, await again.text()]).toEqual([304, ""]);
  });

  test("is read only, and needs no credentials", async () => {
    const handler = serving({
      authenticator: { securitySchemes: {}, securityRequirements: [], authenticate: () => Promise.reject(new Error()) },
    });
    expect((await get(handler, "/all/.well-known/jwks.json", { method: "HEAD" })).status).toBe(200);
    const written = await get(handler, "/all/.well-known/jwks.json", { method: "POST", body: "{}" });
    expect([written.status, written.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  });

  test("is at one path only: below the base path, not at the root of the host, and not below an agent", async () => {
    const handler = serving({}, [
      { agent, path: "/one" },
      { agent, path: "/two", tenant: "berlin" },
    ]);
    expect(handler.answers("/all/.well-known/jwks.json")).toBe(true);
    expect((await get(handler, "/all/.well-known/jwks.json?x=1")).status).toBe(200);
    for (const path of [
      "/.well-known/jwks.json",
      "/all/one/.well-known/jwks.json",
      "/all/two/berlin/.well-known/jwks.json",
      "/all/.well-known/jwks.json/",
      "/all/.well-known/jwks.jsonx",
    ]) {
      expect([path, handler.answers(path), (await get(handler, path)).status]).toEqual([path, false, 404]);
    }
  });

  test("does not exist if webhooks are off: the path may belong to another part of the application", async () => {
    const handler = serving({ push: false });
    expect(handler.answers("/all/.well-known/jwks.json")).toBe(false);
    expect((await get(handler, "/all/.well-known/jwks.json")).status).toBe(404);
    expect(JSON.stringify(handler.agents[0]?.card)).not.toContain("webhooks");
  });

  test.each<[string, readonly AgentMount[]]>([
    ["of a card", [{ agent, cardPaths: ["/.well-known/jwks.json"] }]],
    ["of a binding", [{ agent, interfaces: { JSONRPC: "/.well-known/jwks.json" } }]],
    ["of an agent", [{ agent, path: "/.well-known/jwks.json" }]],
    ["of a path above an agent", [{ agent, path: "/.well-known/jwks.json/x" }]],
  ])("cannot have the address %s", (_what, mounts) => {
    expect(() => serving({}, mounts)).toThrow("A key set");
    serving({ push: false }, mounts);
  });
});

describe("the extension for signed webhooks", () => {
  test("names the client certificate if the dialer has one", () => {
    const params = (push: PushOptions) =>
      serving({ push }).agents[0]?.card.capabilities.extensions?.find(({ uri = "" }) => uri.includes("webhooks"))
        ?.params;
    expect(params({ keys: [next], mutualTls: dialerTo("93.184.215.14") })).toMatchObject({
      schemes: ["Bearer", "StandardWebhooks", "MutualTLS"],
    });
    expect(params({ keys: [next] })).toMatchObject({ schemes: ["Bearer", "StandardWebhooks"] });
  });

  test("is not on the card of an agent that sends no webhooks", () => {
    const handler = serving({}, [{ agent }, { agent: silent, path: "/silent" }]);
    const declared = handler.agents.map(({ card }) => JSON.stringify(card).includes("urn:parley:extension:webhooks"));
    expect(declared).toEqual([true, false]);
  });

  test("is on the card of 0.3 too", async () => {
    const answer = await get(serving(), "/all/.well-known/agent-card.json", { headers: { "a2a-version": "0.3" } });
    expect(await answer.json()).toMatchObject({
      capabilities: {
        extensions: expect.arrayContaining([
          expect.objectContaining({
            uri: "urn:parley:extension:webhooks:v1",
            params: expect.objectContaining({ issuer: publicUrl }),
          }),
        ]),
      },
    });
  });
});
