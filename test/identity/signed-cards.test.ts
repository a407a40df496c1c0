import { defineAgent, memoryStore, silentLogger, type AgentMount } from "@parley/server";
import { anyOf, anyone, bearer } from "@parley/a2a/auth";
import { cardKeySet, makeCardKey, trustCards, verifyCard, type PrivateCardKey } from "@parley/a2a/cards";
import type { ConnectOptions } from "@parley/a2a";
import { connect, serve, type ServeOptions, type Server } from "@parley/node";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from "vitest";

/** A server that signs its cards, and clients that accept only signed ones: every binding, both versions, real connections (A2A 1.0 §8.4). */

const agent = defineAgent({
  name: "Métro \u{1f687}",
  description: "Knows when the next train comes",
  version: "1.0.0",
  skills: [{ id: "next", name: "Next", description: "The next train", tags: ["trains"] }],
  onMessage: (turn) => turn.reply("soon"),
});

const people = bearer({ "ada-token": { subject: "ada", scopes: ["ops"] }, "bob-token": { subject: "bob" } });
const as = (name: string): ConnectOptions => ({ headers: { authorization: `Bearer ${name}-token` }, retry: false });

/** Ada, who operates the agent, sees a skill that others do not see. */
const extendedCard: NonNullable<AgentMount["extendedCard"]> = async (card, { subject, scopes }) => ({
  ...card,
  description: `For ${subject}`,
  skills: [
    ...card.skills,
    ...(scopes?.includes("ops") === true
      ? [{ id: "ops", name: "Ops", description: "Stops trains", tags: ["ops"] }]
      : []),
  ],
});

let key: PrivateCardKey;
let second: PrivateCardKey;
let server: Server;
let url: string;
beforeAll(async () => {
  [key, second] = [await makeCardKey("ES256"), await makeCardKey("EdDSA")];
  const options: ServeOptions = {
    port: 0,
    grpc: true,
    logger: silentLogger,
    authenticator: people,
    signCards: { keys: [key, second] },
  };
  server = await serve([{ agent, extendedCard }], { ...options, store: memoryStore() });
  url = server.url;
});
afterAll(() => server.close({ grace: 0 }));

const interfaces = ["JSONRPC", "HTTP+JSON", "GRPC"].flatMap((binding) =>
  ["1.0", "0.3"].map((version) => ({ binding, version })),
);

describe.each(interfaces)("over $binding $version", ({ binding, version }) => {
  test.each(["ada", "bob"])("the card and the extended card of %s are signed by each key", async (name) => {
    for (const each of [key, second]) {
      const trust = trustCards({ keys: [{ keySet: await cardKeySet([each]), origins: [server.url] }] });
      const client = await connect(url, { ...as(name), binding, version, trust });
      const card = await client.getExtendedAgentCard();
      expect(card.description).toBe(`For ${name}`);
      expect(card.skills.map(({ id }) => id)).toEqual(name === "ada" ? ["next", "ops"] : ["next"]);
      expect(client.card).toBe(card);
    }
  });

  it("an unauthenticated caller gets no extended card (§3.1.11)", async () => {
    const client = await connect(url, { binding, version, retry: false });
    await expect(client.getExtendedAgentCard()).rejects.toMatchObject({ code: "Unauthenticated" });
  });

  it("a client that trusts other keys accepts no card", async () => {
    const trust = trustCards({ keys: [{ keySet: await cardKeySet([await makeCardKey()]) }] });
    await expect(connect(url, { ...as("ada"), binding, version, trust })).rejects.toMatchObject({
      code: "InvalidResponse",
    });
  });
});

describe("the documents", () => {
  const read = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(url + path, { headers });
    return { response, json: (response.status === 304 ? undefined : await response.json()) as Record<string, unknown> };
  };

  test.each(["1.0", "0.3", undefined])("the card of version %s verifies exactly as it arrived", async (version) => {
    const { json } = await read(
      "/.well-known/agent-card.json",
      version === undefined ? {} : { "a2a-version": version },
    );
    const { trusted, signatures } = await verifyCard(json, { keys: [{ keySet: await cardKeySet([key]) }] });
    expect(trusted).toBe(true);
    expect(signatures.filter(({ outcome }) => outcome === "valid").map(({ kid }) => kid)).toContain(key.kid);
    expect(
      (await verifyCard({ ...json, version: "2.0.0" }, { keys: [{ keySet: await cardKeySet([key]) }] })).trusted,
    ).toBe(false);
  });

  it("publish the public keys at the URL in the signatures (RFC 7517)", async () => {
    const { json: card } = await read("/.well-known/agent-card.json");
    const jku = `${server.url}/.well-known/card-keys.json`;
    const [{ signatures }] = [await verifyCard(card, { jku: [server.url], net: { allowLoopback: true } })];
    expect(signatures.every((each) => each.jku === jku)).toBe(true);
    expect(signatures.some(({ outcome }) => outcome === "valid")).toBe(true);
    const published = await fetch(jku);
    expect(published.headers.get("content-type")).toBe("application/jwk-set+json");
    const { keys } = (await published.json()) as { keys: Record<string, unknown>[] };
    expect(keys.map(({ kid }) => kid)).toEqual([key.kid, second.kid]);
    expect(keys.filter((each) => "d" in each)).toEqual([]);
  });

  it("have a tag and a lifetime, and are not sent twice (§8.6.1)", async () => {
    const { response } = await read("/.well-known/agent-card.json");
    expect(response.headers.get("cache-control")).toBe("public, max-age=300");
    const tag = response.headers.get("etag") ?? "";
    expect((await read("/.well-known/agent-card.json", { "if-none-match": tag })).response.status).toBe(304);
  });

  it("keep the extended card of one caller from others (§8.6.1, RFC 9111 §3.5)", async () => {
    const of = (name: string, more: Record<string, string> = {}) =>
      read("/extendedAgentCard", { authorization: `Bearer ${name}-token`, "a2a-version": "1.0", ...more });
    const ada = await of("ada");
    expect(ada.response.headers.get("cache-control")).toBe("private, max-age=0, must-revalidate");
    expect(ada.response.headers.get("vary")).toContain("Authorization");
    const tag = ada.response.headers.get("etag") ?? "";
    expect(tag).toMatch(/^"[\da-f]{32}"$/);
    expect((await of("ada", { "if-none-match": tag })).response.status).toBe(304);
    const bob = await of("bob", { "if-none-match": tag });
    expect(bob.response.status).toBe(200);
    expect(bob.json["description"]).toBe("For bob");
    expect((await fetch(`${url}/extendedAgentCard`, { headers: { "if-none-match": tag } })).status).toBe(401);
  });
});

describe("keys", () => {
  it("change with overlap: cards of the old key hold until it is removed (§8.4.3)", async () => {
    const [retired] = (await cardKeySet([key])).keys;
    const next = await makeCardKey();
    const signCards = { keys: [next], retired: retired === undefined ? [] : [retired] };
    const rotated = await serve(agent, { port: 0, grpc: true, logger: silentLogger, store: memoryStore(), signCards });
    try {
      const keySet = `${rotated.url}/.well-known/card-keys.json`;
      await connect(rotated.url, { trust: trustCards({ keys: [{ keySet }] }) });
      // Yesterday's card, from a cache.
      const old: unknown = await (await fetch(`${url}/.well-known/agent-card.json`)).json();
      expect((await verifyCard(old as object, { keys: [{ keySet }] })).trusted).toBe(true);
    } finally {
      await rotated.close({ grace: 0 });
    }
  });

  test.each([
    ["none", []],
    ["a public key", [{ kty: "EC", crv: "P-256", x: "a", y: "b" }]],
    ["a secret that is shared", [{ kty: "oct", k: "a", d: "hush" }]],
    ["a text", ["hush"]],
    ["null", [null]],
  ])("%s are rejected at startup, without being shown", async (_name, keys) => {
    const error: unknown = await serve(agent, {
      port: 0,
      grpc: true,
      signCards: { keys },
    } as unknown as ServeOptions).catch((thrown: unknown) => thrown);
    expect(String(error)).toContain("signCards.keys");
    expect(String(error)).not.toContain("hush");
  });

  it("that turn out to be broken fail the card, and the log says so", async () => {
    const said: string[] = [];
    const error = (message: string): void => void said.push(message);
    const keys = [{ ...key, d: "AAAA" }];
    const broken = await serve(agent, {
      port: 0,
      grpc: true,
      store: memoryStore(),
      logger: { ...silentLogger, error },
      signCards: { keys },
    });
    try {
      expect((await fetch(`${broken.url}/.well-known/agent-card.json`)).status).toBe(500);
      expect(said).toHaveLength(1);
    } finally {
      await broken.close({ grace: 0 });
    }
  });
});

describe("the extended card (§3.1.11, §3.3.4)", () => {
  const served = async (more: Partial<ServeOptions>, mount: Partial<AgentMount> = {}): Promise<Server> => {
    const started = await serve([{ agent, ...mount }], {
      port: 0,
      grpc: true,
      logger: silentLogger,
      store: memoryStore(),
      ...more,
    });
    onTestFinished(() => started.close({ grace: 0 }));
    return started;
  };

  test.each(interfaces)(
    "is only for authenticated callers if the agent is for everyone, over $binding $version",
    async (at) => {
      const { url: open } = await served({ authenticator: anyOf(people, anyone()) }, { extendedCard });
      const stranger = await connect(open, { ...at, retry: false });
      expect((await stranger.sendMessage("when?")).message?.parts).toEqual([{ text: "soon" }]);
      await expect(stranger.getExtendedAgentCard()).rejects.toMatchObject({ code: "Unauthenticated" });
      const known = await connect(open, { ...as("bob"), ...at });
      expect((await known.getExtendedAgentCard()).description).toBe("For bob");
    },
  );

  test.each(interfaces)("is not configured if it is only declared, over $binding $version", async (at) => {
    const { execute: _, ...definition } = agent;
    const promised = defineAgent({
      ...definition,
      capabilities: { extendedAgentCard: true },
      onMessage: (turn) => turn.reply("soon"),
    });
    const { url: bare } = await served({ authenticator: people }, { agent: promised });
    const client = await connect(bare, { ...as("ada"), ...at });
    await expect(client.getExtendedAgentCard()).rejects.toMatchObject({ code: "ExtendedAgentCardNotConfigured" });
    expect(client.card.description).toBe(agent.description);
  });

  test.each(interfaces)(
    "is rejected by the client if the card does not declare it, over $binding $version",
    async (at) => {
      const { url: plain } = await served({ authenticator: people });
      const client = await connect(plain, { ...as("ada"), ...at });
      await expect(client.getExtendedAgentCard()).rejects.toMatchObject({ code: "UnsupportedOperation" });
    },
  );
});
