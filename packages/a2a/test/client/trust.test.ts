import { beforeAll, describe, expect, it, test } from "vitest";
import {
  cardKeySet,
  makeCardKey,
  signCard,
  trustCards,
  type CardKeySet,
  type CardTrust,
  type PrivateCardKey,
} from "../../src/cards/index.ts";
import { connect, type CachedCard, type ConnectOptions } from "../../src/client/index.ts";
import { fakeClock } from "@parley/testing";
import { cardOf, jsonRpcAt, listen } from "./support.ts";

/** Tests clients that require signed cards (A2A 1.0 §8.4.3). Cards and key sets come from real servers. */

let key: PrivateCardKey;
let stranger: PrivateCardKey;
beforeAll(async () => {
  key = await makeCardKey();
  stranger = await makeCardKey("EdDSA");
});

const once = { retry: false, reconnect: false } as const;
const wellKnown = "/.well-known/agent-card.json";

interface Site {
  readonly url: string;
  /** The method and path of each request. */
  readonly asked: readonly string[];
  /** Serves a value at a path. */
  serve(path: string, value: unknown): void;
}

/** Starts a server of documents. It answers a POST with the document at `POST`. */
async function site(): Promise<Site> {
  const asked: string[] = [];
  const documents = new Map<string, unknown>();
  const url = await listen((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      asked.push(`${request.method ?? ""} ${request.url ?? ""}`);
      const found = documents.get(request.method === "POST" ? "POST" : (request.url ?? ""));
      const { id } = body === "" ? {} : (JSON.parse(body) as { id?: unknown });
      const value = request.method === "POST" ? { jsonrpc: "2.0", id, result: found } : found;
      response.writeHead(found === undefined ? 404 : 200, {
        "content-type": "application/json",
        "cache-control": "max-age=60",
      });
      response.end(JSON.stringify(value ?? null));
    });
  });
  return { url, asked, serve: (path, value) => void documents.set(path, value) };
}

async function agentWith(sign: (card: ReturnType<typeof cardOf>) => unknown): Promise<Site> {
  const agent = await site();
  agent.serve(wellKnown, await sign(cardOf([jsonRpcAt(agent.url)], { capabilities: { extendedAgentCard: true } })));
  return agent;
}

function warnings(): ConnectOptions & { readonly said: string[] } {
  const said: string[] = [];
  const warn = (message: string): void => void said.push(message);
  return { ...once, said, logger: { debug() {}, info() {}, warn, error: warn } };
}

const onlyKey = async (more: Partial<CardTrust> = {}): Promise<CardTrust> => ({
  keys: [{ keySet: await cardKeySet([key]) }],
  ...more,
});

describe("the policy `require`", () => {
  it("accepts a card that a trusted key has signed", async () => {
    const agent = await agentWith((card) => signCard(card, key));
    const client = await connect(agent.url, { ...once, trust: trustCards(await onlyKey()) });
    expect(client.card.name).toBe("Stranger");
  });

  const refused: readonly (readonly [string, RegExp, (card: ReturnType<typeof cardOf>) => unknown])[] = [
    ["has no signature", /it has no signature/, (card) => card],
    ["a stranger has signed", /its key is not trusted/, (card) => signCard(card, stranger)],
    [
      "was changed",
      /the signature does not match the card/,
      async (card) => ({ ...(await signCard(card, key)), name: "Changed" }),
    ],
    [
      "a stranger has signed with the name of a trusted key",
      /the signature does not match the card/,
      async (card) => signCard(card, { ...stranger, kid: key.kid ?? "" }),
    ],
  ];
  test.each(refused)("rejects a card that %s, and sends nothing to its agent", async (_name, reason, sign) => {
    const agent = await agentWith(sign);
    const { said: _, ...options } = warnings();
    const trust = trustCards(await onlyKey());
    await expect(connect(agent.url, { ...options, trust })).rejects.toMatchObject({
      code: "InvalidResponse",
      message: expect.stringMatching(reason) as string,
    });
    expect(agent.asked.filter((each) => each !== `GET ${wellKnown}`)).toEqual([]);
  });

  it("rejects a card that is passed in unsigned", async () => {
    const card = cardOf([jsonRpcAt("https://agents.example.com")]);
    const trust = trustCards(await onlyKey());
    await expect(connect(card, { trust })).rejects.toMatchObject({ code: "InvalidResponse" });
    expect((await connect(await signCard(card, key), { trust })).card.name).toBe("Stranger");
  });

  it("verifies the signature of a card of 0.3 as received", async () => {
    const old = {
      protocolVersion: "0.3.0",
      name: "Old",
      description: "Speaks 0.3",
      url: "https://agents.example.com/old",
      preferredTransport: "JSONRPC",
      version: "1",
      capabilities: { streaming: true, stateTransitionHistory: false },
      security: [{ key: [] }],
      securitySchemes: { key: { type: "apiKey", in: "header", name: "x-key" } },
      defaultInputModes: [],
      defaultOutputModes: ["text/plain"],
      skills: [],
    };
    const trust = trustCards(await onlyKey());
    const signed = await signCard(old, key);
    expect((await connect(signed, { trust })).card.name).toBe("Old");
    await expect(connect({ ...signed, security: [] } as typeof signed, { trust })).rejects.toMatchObject({
      code: "InvalidResponse",
    });
  });
});

describe("the policies `prefer` and `ignore`", () => {
  it("prefer: accepts an unsigned card and one with an unknown key, with a warning", async () => {
    const trust = trustCards(await onlyKey({ policy: "prefer" }));
    for (const sign of [(card: object) => card, (card: object) => signCard(card, stranger)]) {
      const agent = await agentWith(sign);
      const { said, ...options } = warnings();
      await connect(agent.url, { ...options, trust });
      expect(said).toEqual([expect.stringContaining('The card of "Stranger" is not signed by a trusted key')]);
    }
  });

  it("prefer: rejects a card that names a trusted key and was changed", async () => {
    const agent = await agentWith(async (card) => ({ ...(await signCard(card, key)), version: "2" }));
    const trust = trustCards(await onlyKey({ policy: "prefer" }));
    await expect(connect(agent.url, { ...once, trust })).rejects.toMatchObject({ code: "InvalidResponse" });
  });

  it("ignore: checks nothing", async () => {
    const agent = await agentWith(async (card) => ({ ...(await signCard(card, key)), version: "2" }));
    const { said, ...options } = warnings();
    await connect(agent.url, { ...options, trust: trustCards(await onlyKey({ policy: "ignore" })) });
    expect(said).toEqual([]);
  });
});

describe("key sets", () => {
  it("are fetched from their URL, and again when a signature names a new key, but not for every unknown key", async () => {
    const keys = await site();
    const next = await makeCardKey();
    keys.serve("/keys", await cardKeySet([key]));
    const clock = fakeClock();
    const trust = trustCards({ keys: [{ keySet: `${keys.url}/keys` }] }, clock);
    const card = cardOf([jsonRpcAt("https://agents.example.com")]);
    await connect(await signCard(card, key), { trust });
    await connect(await signCard(card, key), { trust });
    expect(keys.asked).toHaveLength(1);

    // Publishes a new key. A client requests a key set at most once in 30 seconds.
    keys.serve("/keys", await cardKeySet([next]));
    clock.advance(30_000);
    await connect(await signCard(card, next), { trust });
    expect(keys.asked).toHaveLength(2);
    for (let attempt = 1; attempt <= 3; attempt++) {
      await expect(connect(await signCard(card, stranger), { trust })).rejects.toMatchObject({
        code: "InvalidResponse",
      });
    }
    expect(keys.asked).toHaveLength(2);
    // The client no longer trusts a removed key.
    await expect(connect(await signCard(card, key), { trust })).rejects.toMatchObject({ code: "InvalidResponse" });
  });

  it("that cannot be fetched make the error retryable", async () => {
    const keys = await site();
    const trust = trustCards({ keys: [{ keySet: `${keys.url}/keys` }] });
    const card = await signCard(cardOf([jsonRpcAt("https://agents.example.com")]), key);
    await expect(connect(card, { trust })).rejects.toMatchObject({ code: "Unavailable" });
  });

  test.each([
    ["a page", "<html>"],
    ["a list", []],
    ["keys of other kinds", { keys: [null, 1, "key", {}, { kty: 1 }, { kty: "oct", k: "AA" }, { kty: "__proto__" }] }],
  ])("may be %s", async (_name, value) => {
    const keys = await site();
    keys.serve("/keys", value);
    const trust = trustCards({ keys: [{ keySet: `${keys.url}/keys` }] });
    const card = await signCard(cardOf([jsonRpcAt("https://agents.example.com")]), key);
    await expect(connect(card, { trust })).rejects.toMatchObject({
      code: expect.stringMatching(/^(Unavailable|InvalidResponse)$/) as string,
    });
  });
});

describe("the header `jku` is only a hint", () => {
  it("is fetched only from an origin that the user named", async () => {
    const [keys, other] = [await site(), await site()];
    const set: CardKeySet = await cardKeySet([key]);
    for (const each of [keys, other]) each.serve("/keys.json", set);
    const trust = trustCards({ jku: [keys.url], net: { allowLoopback: true } });
    const card = cardOf([jsonRpcAt("https://agents.example.com")]);
    await connect(await signCard(card, key, { jku: `${keys.url}/keys.json` }), { trust });
    expect(keys.asked).toEqual(["GET /keys.json"]);
    for (const jku of [
      `${other.url}/keys.json`,
      `${keys.url}.evil.example/keys.json`,
      "file:///etc/passwd",
      "no url",
      "",
    ]) {
      await expect(connect(await signCard(card, key, { jku }), { trust })).rejects.toMatchObject({
        code: "InvalidResponse",
      });
    }
    expect(other.asked).toEqual([]);
  });

  it("is not fetched from an address of this machine, unless that is allowed", async () => {
    const keys = await site();
    keys.serve("/keys.json", await cardKeySet([key]));
    const trust = trustCards({ jku: [keys.url] });
    const card = await signCard(cardOf([jsonRpcAt("https://agents.example.com")]), key, {
      jku: `${keys.url}/keys.json`,
    });
    await expect(connect(card, { trust })).rejects.toMatchObject({ code: "Unavailable" });
    expect(keys.asked).toEqual([]);
  });
});

describe("a shared cache of cards", () => {
  it("does not pass on a card that a client without `trust` accepted", async () => {
    const agent = await agentWith((card) => card);
    const cardCache = new Map<string, CachedCard>();
    await connect(agent.url, { ...once, cardCache });
    const trust = trustCards(await onlyKey());
    await expect(connect(agent.url, { ...once, cardCache, trust })).rejects.toMatchObject({ code: "InvalidResponse" });
  });

  it("serves clients with other trust settings, who verify the card again", async () => {
    const agent = await agentWith((card) => signCard({ ...card, memberOfLater: 1 }, key));
    const cardCache = new Map<string, CachedCard>();
    const trust = trustCards(await onlyKey());
    await connect(agent.url, { ...once, cardCache, trust });
    await connect(agent.url, { ...once, cardCache, trust });
    expect(agent.asked).toEqual([`GET ${wellKnown}`]);
    const strict = trustCards({ keys: [{ keySet: await cardKeySet([stranger]) }] });
    await expect(connect(agent.url, { ...once, cardCache, trust: strict })).rejects.toMatchObject({
      code: "InvalidResponse",
    });
  });
});

describe("the extended card (A2A 1.0 §3.1.11)", () => {
  it("replaces the card if it is trusted; otherwise the call fails", async () => {
    const agent = await agentWith((card) => signCard(card, key));
    const client = await connect(agent.url, { ...once, trust: trustCards(await onlyKey()) });
    const extended = { ...client.card, name: "Extended", signatures: [] };
    agent.serve("POST", extended);
    await expect(client.getExtendedAgentCard()).rejects.toMatchObject({ code: "InvalidResponse" });
    expect(client.card.name).toBe("Stranger");
    agent.serve("POST", await signCard(extended, key));
    expect((await client.getExtendedAgentCard()).name).toBe("Extended");
    expect(client.card.name).toBe("Extended");
  });
});

describe("an invalid option", () => {
  test.each([
    ["the policy", { policy: "sometimes" }, "trust.policy"],
    ["a key", { keys: ["key"] }, "trust.keys[0]"],
    ["a key set", { keys: [{ keySet: { keys: [1] } }] }, "trust.keys[0]"],
    ["a URL without TLS", { keys: [{ keySet: "http://example.com/keys" }] }, "trust.keys[0].keySet"],
    ["an origin", { keys: [{ keySet: { keys: [] }, origins: ["example"] }] }, "trust.keys[0].origins"],
    ["an origin of jku", { jku: "https://example.com" }, "trust.jku"],
  ])("names %s", (_name, trust, field) => {
    expect(() => trustCards(trust as CardTrust)).toThrow(field);
  });
});
