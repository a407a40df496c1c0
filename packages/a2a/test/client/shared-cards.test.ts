import { describe, expect, it, test } from "vitest";
import { cardKeySet, makeCardKey, signCard, trustCards } from "../../src/cards/index.ts";
import { connect, connectWith, type ConnectOptions, type FetchLike } from "../../src/client/index.ts";
import { bearerToken } from "../../src/credentials/index.ts";
import { fakeClock } from "@parley/testing";
import { codecV1 } from "../../src/wire/v1/index.ts";
import { restBinding } from "../../src/transport/rest/client.ts";
import { cardOf, jsonRpcAt, listen } from "./support.ts";

/** Tests the card cache that clients share by default (A2A 1.0 §8.6.2), over real HTTP. */

const origin = "https://agents.example.com";
const once = { retry: false } as const;

interface Server {
  readonly url: string;
  /** The headers of each request for the card. */
  readonly asked: Record<string, string | string[] | undefined>[];
  /** Sends the requests for `origin` to the server, so that the card's address is not loopback. */
  readonly fetch: FetchLike;
  card: object;
  headers: Record<string, string>;
  /** Returns the status for a request. With 200, the server also sends the card. */
  status(headers: Record<string, string | string[] | undefined>): number;
}

async function serving(headers: Record<string, string> = { etag: '"v1"', "cache-control": "max-age=60" }) {
  const state: Omit<Server, "url" | "fetch"> = {
    asked: [],
    card: cardOf([jsonRpcAt(origin)]),
    headers,
    status: (sent) =>
      sent["if-none-match"] !== undefined && sent["if-none-match"] === state.headers["etag"] ? 304 : 200,
  };
  const url = await listen((request, response) => {
    state.asked.push(request.headers);
    const status = state.status(request.headers);
    response.writeHead(status, { "content-type": "application/json", ...state.headers });
    response.end(status === 200 ? JSON.stringify(state.card) : undefined);
  });
  const through: FetchLike = (target, init) => fetch(target.replace(origin, url), init);
  return Object.assign(state, { url, fetch: through });
}

describe("clients of the same fetch", () => {
  it("request a card once while it is fresh, then revalidate it", async () => {
    const [server, clock] = [await serving(), fakeClock()];
    const options = { ...once, fetch: server.fetch, clock };
    const first = await connect(origin, options);
    const second = await connect(origin, options);
    expect(server.asked).toHaveLength(1);
    expect(second.card).toEqual(first.card);
    // A change to one client's card does not affect other clients.
    expect(second.card).not.toBe(first.card);
    clock.advance(60_000);
    await connect(origin, options);
    expect(server.asked.map((each) => each["if-none-match"])).toEqual([undefined, '"v1"']);
    await connect(origin, options);
    expect(server.asked).toHaveLength(2);
    clock.advance(60_000);
    server.headers = { etag: '"v2"', "cache-control": "max-age=60" };
    server.card = cardOf([jsonRpcAt(origin)], { name: "New" });
    expect((await connect(origin, options)).card.name).toBe("New");
  });

  it("use the monotonic clock, because the wall clock may jump", async () => {
    const [server, time, wall] = [await serving(), fakeClock(), { shift: 0 }];
    const clock = { ...time, now: () => time.now() + wall.shift };
    const options = { ...once, fetch: server.fetch, clock };
    await connect(origin, options);
    wall.shift = -365 * 86_400_000;
    time.advance(60_000);
    await connect(origin, options);
    expect(server.asked.map((each) => each["if-none-match"])).toEqual([undefined, '"v1"']);
    wall.shift = 365 * 86_400_000;
    await connect(origin, options);
    expect(server.asked).toHaveLength(2);
  });

  it.each(["no-store", "no-store, max-age=60"])("keep nothing with %s", async (control) => {
    const server = await serving({ etag: '"v1"', "cache-control": control });
    for (let i = 0; i < 2; i++) await connect(origin, { ...once, fetch: server.fetch });
    expect(server.asked.map((each) => each["if-none-match"])).toEqual([undefined, undefined]);
  });

  it("revalidate at each use with no-cache, and keep nothing with Vary: *", async () => {
    const server = await serving({ etag: '"v1"', "cache-control": "no-cache" });
    for (let i = 0; i < 2; i++) await connect(origin, { ...once, fetch: server.fetch });
    expect(server.asked.map((each) => each["if-none-match"])).toEqual([undefined, '"v1"']);
    const varying = await serving({ etag: '"v1"', "cache-control": "max-age=60", vary: "*" });
    for (let i = 0; i < 2; i++) await connect(origin, { ...once, fetch: varying.fetch });
    expect(varying.asked.map((each) => each["if-none-match"])).toEqual([undefined, undefined]);
  });

  it("request it each time with `cardCache: false`", async () => {
    const server = await serving();
    for (let i = 0; i < 2; i++) await connect(origin, { ...once, fetch: server.fetch, cardCache: false });
    expect(server.asked.map((each) => each["if-none-match"])).toEqual([undefined, undefined]);
  });

  it("read the card in the versions that each of them speaks", async () => {
    const server = await serving();
    server.card = { ...cardOf([jsonRpcAt(origin)]), url: `${origin}/old`, protocolVersion: "0.3.0" };
    const interfaces = [...cardOf([jsonRpcAt(origin)]).supportedInterfaces];
    interfaces.push({ url: origin, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" });
    server.card = { ...server.card, supportedInterfaces: interfaces };
    const kit = { bindings: [restBinding([codecV1])], decodeCard: codecV1.decodeCard };
    const small = await connectWith(kit, origin, { ...once, fetch: server.fetch });
    const whole = await connect(origin, { ...once, fetch: server.fetch });
    expect(server.asked).toHaveLength(1);
    expect(small.card.supportedInterfaces.map(({ protocolVersion }) => protocolVersion)).toEqual(["1.0", "1.0"]);
    expect(whole.card.supportedInterfaces.map(({ protocolVersion }) => protocolVersion)).toEqual(["1.0", "1.0", "0.3"]);
  });
});

test("revalidate a loopback card at each use: its port may now belong to another server", async () => {
  const server = await serving();
  for (let i = 0; i < 3; i++) await connect(server.url, once);
  expect(server.asked.map((each) => each["if-none-match"])).toEqual([undefined, '"v1"', '"v1"']);
  server.headers = { etag: '"v2"' };
  server.card = cardOf([jsonRpcAt(server.url)], { name: "Another" });
  expect((await connect(server.url, once)).card.name).toBe("Another");
});

describe("a card is not shared", () => {
  it("with clients that send other headers, or use another fetch", async () => {
    const server = await serving();
    const as = (token: string): ConnectOptions => ({
      ...once,
      fetch: server.fetch,
      headers: { authorization: `Bearer ${token}` },
    });
    for (const options of [as("ada"), as("bob"), { ...once, fetch: server.fetch }, as("ada"), as("bob")]) {
      server.card = cardOf([jsonRpcAt(origin)], { name: `For ${JSON.stringify(options.headers ?? "anyone")}` });
      const { card } = await connect(origin, options);
      expect(card.name).toContain(JSON.stringify(options.headers ?? "anyone"));
    }
    expect(server.asked.map((each) => each["authorization"])).toEqual(["Bearer ada", "Bearer bob", undefined]);
    const again: ConnectOptions = { ...as("bob"), headers: () => ({ authorization: "Bearer bob" }) };
    expect((await connect(origin, again)).card.name).toContain("bob");
    expect(server.asked).toHaveLength(3);
    const other: FetchLike = (...request) => server.fetch(...request);
    await connect(origin, { ...as("bob"), fetch: other });
    expect(server.asked).toHaveLength(4);
  });

  it("if the server served it to credentials of the client (D18)", async () => {
    const server = await serving({
      etag: '"v1"',
      "cache-control": "max-age=60",
      "www-authenticate": "Bearer",
    });
    server.status = ({ authorization }) => (authorization === undefined ? 401 : 200);
    const [ada, bob] = ["token-of-ada", "token-of-bob"].map((token) => ({
      ...once,
      fetch: server.fetch,
      credentials: [bearerToken(token)],
    }));
    await connect(origin, ada);
    await connect(origin, bob);
    expect(server.asked.map((each) => each["authorization"])).toEqual([
      undefined,
      "Bearer token-of-ada",
      undefined,
      "Bearer token-of-bob",
    ]);
    await expect(connect(origin, { ...once, fetch: server.fetch })).rejects.toMatchObject({ code: "Unauthenticated" });
  });
});

describe("with `trust`", () => {
  it("a cached card is verified at each use, and requested again if it is rejected", async () => {
    const key = await makeCardKey("EdDSA");
    const trust = trustCards({ keys: [{ keySet: await cardKeySet([key]) }] });
    const server = await serving();
    const signed = await signCard(cardOf([jsonRpcAt(origin)]), key);
    server.card = { ...signed, description: "Someone changed this" };
    const options = { ...once, fetch: server.fetch };
    await connect(origin, options);
    expect(server.asked).toHaveLength(1);
    // The cached card is still fresh, but this client does not trust it.
    await expect(connect(origin, { ...options, trust })).rejects.toMatchObject({ code: "InvalidResponse" });
    expect(server.asked).toHaveLength(2);
    expect(server.asked[1]?.["if-none-match"]).toBeUndefined();
    server.card = signed;
    expect((await connect(origin, { ...options, trust })).card.description).toBe(signed.description);
    expect(server.asked).toHaveLength(3);
    await connect(origin, { ...options, trust });
    expect(server.asked).toHaveLength(3);
    const other = trustCards({ keys: [{ keySet: await cardKeySet([await makeCardKey("EdDSA")]) }] });
    await expect(connect(origin, { ...options, trust: other })).rejects.toMatchObject({ code: "InvalidResponse" });
  });
});

test("the cache is bounded: it forgets thousands of large cards, oldest first", async () => {
  const server = await serving();
  server.card = {
    ...cardOf([jsonRpcAt(origin)]),
    supportedInterfaces: [jsonRpcAt(origin)],
    description: "x".repeat(500_000),
  };
  const url = (i: number): string => `${origin}/${i}/agent-card.json`;
  for (let i = 0; i < 40; i++) await connect(url(i), { ...once, fetch: server.fetch });
  expect(server.asked).toHaveLength(40);
  await connect(url(39), { ...once, fetch: server.fetch });
  expect(server.asked).toHaveLength(40);
  await connect(url(0), { ...once, fetch: server.fetch });
  expect(server.asked).toHaveLength(41);
});
