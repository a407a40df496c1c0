import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createHandler, defineAgent, memoryStore, silentLogger, type HandlerOptions } from "@parley/server";
import type { AuditRecord } from "@parley/a2a/internal/protocol/index";
import { allOf, anyOf, anyone, apiKey, basic, bearer, hashPassword } from "@parley/a2a/auth";
import { cardKeySet, makeCardKey, trustCards } from "@parley/a2a/cards";
import { apiKeyCredential, basicCredential, bearerToken, clientCredentials } from "@parley/a2a/credentials";
import { connect, serve } from "@parley/node";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { started } from "./credentials.ts";

/** Cards that only authenticated callers may read (A2A 1.0 §7.4, §8.6.1), with the Node host and with the Fetch host. */

const adaToken = "secret-of-ada-0123456789";
const bobToken = "secret-of-bob-0123456789";
const people = bearer({ [adaToken]: { subject: "ada" }, [bobToken]: { subject: "bob" } });
const as = (token: string) => ({ authorization: `Bearer ${token}` });

const agentOf = (name: string) =>
  defineAgent({
    name,
    description: `Is ${name}`,
    version: "1.0.0",
    skills: [],
    onMessage: (turn) => turn.reply(turn.principal.subject),
  });

type Options = Pick<HandlerOptions, "authenticator" | "cardReaders" | "signCards" | "limits">;
interface Site {
  readonly url: string;
  get(path: string, headers?: Record<string, string>, method?: string): Promise<Response>;
}

const mounts = [
  { agent: agentOf("Weather"), path: "/weather" },
  { agent: agentOf("Payroll"), path: "/payroll", id: "pay" },
];

async function onNode(options: Options): Promise<Site> {
  const server = await serve(mounts, {
    port: 0,
    signals: false,
    logger: silentLogger,
    store: memoryStore(),
    ...options,
  });
  onTestFinished(() => server.close({ grace: 0 }));
  const { url } = server;
  return {
    url,
    get: (path, headers = {}, method = "GET") => fetch(url + path, { method, headers, redirect: "manual" }),
  };
}

async function onFetch(options: Options): Promise<Site> {
  const publicUrl = "https://agents.example.com";
  const handler = createHandler(mounts, { publicUrl, store: memoryStore(), ...options });
  onTestFinished(() => handler.close({ grace: 0 }));
  return {
    url: publicUrl,
    get: async (path, headers = {}, method = "GET") =>
      handler.fetch(new Request(publicUrl + path, { method, headers })),
  };
}

const html = { accept: "text/html" };
const places: readonly (readonly [string, Record<string, string>])[] = [
  ["/weather/.well-known/agent-card.json", {}],
  ["/weather/.well-known/agent-card.json", { "a2a-version": "0.3" }],
  ["/weather/.well-known/agent-card.json?A2A-Version=1.0", {}],
  ["/weather/.well-known/agent.json", {}],
  ["/weather", html],
  ["/weather/", html],
  ["/", html],
];

describe.each([
  ["Node", onNode],
  ["the Fetch API", onFetch],
] as const)("on the host of %s", (_host, on) => {
  it.each(places)("`authenticated` shows %s with %j only to authenticated callers", async (path, headers) => {
    const site = await on({ authenticator: people, cardReaders: "authenticated" });
    for (const method of ["GET", "HEAD"]) {
      for (const wrong of [{}, as("wrong-token")]) {
        const refused = await site.get(path, { ...headers, ...wrong }, method);
        expect(refused.status).toBe(401);
        expect(refused.headers.get("www-authenticate")).toContain("Bearer");
        expect(refused.headers.get("cache-control")).toBe("no-store");
        expect(refused.headers.get("etag")).toBeNull();
        expect(await refused.text()).not.toMatch(/Weather|Payroll/);
      }
    }
    const read = await site.get(path, { ...headers, ...as(adaToken) });
    expect(read.status).toBe(200);
    expect(await read.text()).toContain("Weather");
    // Only its reader may cache it, and must revalidate each time.
    expect(read.headers.get("cache-control")).toBe("private, no-cache");
    expect(read.headers.get("vary")).toContain("Authorization");
    const tag = read.headers.get("etag") ?? "";
    expect((await site.get(path, { ...headers, ...as(bobToken), "if-none-match": tag })).status).toBe(304);
    expect((await site.get(path, { ...headers, "if-none-match": tag })).status).toBe(401);
    expect((await site.get(path, { ...headers, "if-none-match": "*" })).status).toBe(401);
  });

  it("a function decides by caller and agent: 403 for an authenticated caller, 401 without credentials", async () => {
    const site = await on({
      authenticator: anyOf(people, anyone()),
      cardReaders: ({ principal, agent }) => agent !== "pay" || principal.subject === "ada",
    });
    const card = "/payroll/.well-known/agent-card.json";
    expect((await site.get(card, as(adaToken))).status).toBe(200);
    expect((await site.get(card, as(bobToken))).status).toBe(403);
    const stranger = await site.get(card);
    expect(stranger.status).toBe(401);
    expect(stranger.headers.get("www-authenticate")).toContain("Bearer");
    // Everyone may read the other agent's card, and the list without this agent.
    expect((await site.get("/weather/.well-known/agent-card.json")).status).toBe(200);
    const list = async (headers: Record<string, string>) => (await site.get("/", { ...html, ...headers })).text();
    expect(await list({})).not.toContain("Payroll");
    expect(await list(as(bobToken))).not.toContain("Payroll");
    expect(await list(as(adaToken))).toContain("Payroll");
    expect(await list(as(bobToken))).toContain("Weather");
  });

  it("only true lets a caller read, and an error of the function lets nobody", async () => {
    for (const answer of ["yes", 1, undefined, Promise.resolve("true")] as unknown as boolean[]) {
      const site = await on({ authenticator: people, cardReaders: () => answer });
      expect((await site.get("/weather/.well-known/agent-card.json", as(adaToken))).status).toBe(403);
    }
    const broken = await on({
      authenticator: people,
      cardReaders: () => {
        throw new Error("hush");
      },
    });
    const failed = await broken.get("/weather/.well-known/agent-card.json", as(adaToken));
    expect(failed.status).toBe(500);
    expect(await failed.text()).not.toContain("hush");
  });

  it("names the header of an API key in Vary", async () => {
    const site = await on({
      authenticator: apiKey({ [adaToken]: { subject: "ada" } }, { header: "X-Team-Key" }),
      cardReaders: "authenticated",
    });
    const read = await site.get("/weather/.well-known/agent-card.json", { "x-team-key": adaToken });
    expect(read.headers.get("vary")).toBe("A2A-Version, Authorization, Cookie, X-Team-Key");
  });
});

test("rejections are in the audit and in the log, those of a list are not", async () => {
  const records: AuditRecord[] = [];
  const lines: string[] = [];
  const warn = (message: string): void => void lines.push(message);
  const server = await serve(mounts, {
    port: 0,
    signals: false,
    store: memoryStore(),
    authenticator: people,
    cardReaders: ({ principal, agent }) => agent !== "pay" || principal.subject === "ada",
    audit: (record) => void records.push(record),
    logger: { ...silentLogger, warn },
  });
  onTestFinished(() => server.close({ grace: 0 }));
  const at = `${server.url}/payroll/.well-known/agent-card.json`;
  await fetch(at);
  await fetch(at, { headers: as(bobToken) });
  await fetch(`${server.url}/`, { headers: { ...html, ...as(bobToken) } });
  expect(records).toMatchObject([
    { event: "authentication", outcome: "refused" },
    { event: "authorization", outcome: "refused", subject: "bob", agent: "pay", action: "card.read" },
  ]);
  expect(lines.length).toBeGreaterThan(0);
});

test("attempts to read a card count against the limit of failed attempts, like calls", async () => {
  const limits = { rate: { failures: { requests: 3, per: 60_000 } } };
  const site = await onNode({ authenticator: people, cardReaders: "authenticated", limits });
  const statuses: number[] = [];
  for (let i = 0; i < 8; i++) {
    statuses.push((await site.get("/weather/.well-known/agent-card.json", as(`wrong-${i}`))).status);
  }
  expect(statuses).toContain(429);
});

test("without an authenticator, or with another value, the server does not start", async () => {
  const start = (options: object) => serve(mounts, { port: 0, store: memoryStore(), ...options });
  await expect(start({ cardReaders: "authenticated" })).rejects.toThrow("cardReaders");
  await expect(start({ authenticator: people, cardReaders: "friends" })).rejects.toThrow("cardReaders");
});

test("the metadata of the resource does not name the agents (RFC 9728)", async () => {
  const { jwt } = await import("@parley/a2a/auth");
  const authenticator = jwt({ issuer: "https://login.example.com", audience: "agents" });
  for (const [cardReaders, names] of [
    ["anyone", true],
    ["authenticated", false],
  ] as const) {
    const site = await onFetch({ authenticator, cardReaders });
    const read = await site.get("/.well-known/oauth-protected-resource/weather");
    expect(read.status).toBe(200);
    expect((await read.text()).includes("Weather")).toBe(names);
  }
});

describe("connect()", () => {
  const said = async (url: string, options: Parameters<typeof connect>[1]) => {
    const client = await connect(`${url}/weather`, { retry: false, ...options });
    return (await client.sendMessage("who?")).message?.parts[0];
  };
  const password = "secret-password-of-ada";

  it("sends the headers with the request for the card", async () => {
    const { url } = await onNode({ authenticator: people, cardReaders: "authenticated" });
    expect(await said(url, { headers: as(adaToken) })).toEqual({ text: "ada" });
    await expect(connect(`${url}/weather`, { retry: false })).rejects.toMatchObject({ code: "Unauthenticated" });
  });

  it("chooses credentials by the challenge of the rejection: a token, a password, an API key, or two of them", async () => {
    const key = () => apiKey({ [adaToken]: { subject: "ada" } }, { header: "x-key" });
    const word = async () => basic({ ada: { password: await hashPassword(password), subject: "ada" } });
    for (const [authenticator, credentials] of [
      [people, [bearerToken(adaToken)]],
      [await word(), [basicCredential("ada", password)]],
      [key(), [apiKeyCredential(adaToken)]],
      [allOf(await word(), key()), [apiKeyCredential(adaToken), basicCredential("ada", password)]],
      [anyOf(people, key()), [apiKeyCredential(adaToken)]],
    ] as const) {
      const { url } = await onNode({ authenticator, cardReaders: "authenticated" });
      expect(await said(url, { credentials })).toEqual({ text: "ada" });
      await expect(said(url, { credentials: [bearerToken("wrong-token")] })).rejects.toMatchObject({
        code: "Unauthenticated",
      });
    }
  });

  it("gets a token of the issuer that its user named, and asks no other", async () => {
    const provider = await started();
    const seen: string[] = [];
    const evil = await listening((path, headers) => {
      seen.push(`${path} ${JSON.stringify(headers)}`);
      return { status: 200, body: JSON.stringify({ resource: "x", authorization_servers: ["x"] }) };
    });
    const challenge = `Bearer resource_metadata="${evil}/metadata"`;
    const front = await listening((_path, headers) => {
      seen.push(JSON.stringify(headers));
      return { status: 401, body: "{}", headers: { "www-authenticate": challenge } };
    });
    const secret = "secret-of-client-0123456789";
    for (const issuer of [undefined, provider.issuer]) {
      const credentials = [clientCredentials({ clientId: "ada", clientSecret: secret, ...(issuer && { issuer }) })];
      await expect(connect(front, { retry: false, credentials })).rejects.toMatchObject({
        code: "Unauthenticated",
      });
    }
    expect(seen.join("\n")).not.toContain("/metadata");
    expect(seen.join("\n")).not.toContain(secret);
  });

  it("sends credentials to the origin that the user named, and not where a redirect leads", async () => {
    const seen: string[] = [];
    const evil = await listening((_path, headers) => {
      seen.push(JSON.stringify(headers));
      return { status: 401, body: "{}", headers: { "www-authenticate": "Bearer" } };
    });
    const front = await listening(() => ({ status: 302, body: "", headers: { location: `${evil}/card` } }));
    await expect(connect(front, { retry: false, credentials: [bearerToken(adaToken)] })).rejects.toMatchObject({
      code: "InvalidResponse",
    });
    expect(seen).toEqual([]);
  });

  it("with `trust` sends credentials before the card is verified only if its user listed the origin", async () => {
    const key = await makeCardKey();
    const trust = trustCards({ keys: [{ keySet: await cardKeySet([key]) }] });
    const seen: string[] = [];
    const front = await listening((_path, headers) => {
      seen.push(JSON.stringify(headers));
      return { status: 401, body: "{}", headers: { "www-authenticate": 'Bearer, ApiKey in="header", name="x-evil"' } };
    });
    const credentials = [bearerToken(adaToken), apiKeyCredential(bobToken)];
    await expect(connect(front, { retry: false, trust, credentials })).rejects.toMatchObject({
      code: "Unauthenticated",
    });
    expect(seen).toHaveLength(1);
    expect(seen.join()).not.toMatch(/secret-of/);
    const { url } = await onNode({ authenticator: people, cardReaders: "authenticated", signCards: { keys: [key] } });
    expect(await said(url, { trust, credentials, credentialOrigins: [url] })).toEqual({ text: "ada" });
  });
});

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly headers?: Record<string, string>;
}

async function listening(answer: (path: string, headers: object) => Answer): Promise<string> {
  const server = createServer((request, response) => {
    const { status, body, headers } = answer(request.url ?? "", request.headers);
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
