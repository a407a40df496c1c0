import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { connect, hasCode, type AgentCard, type ConnectOptions } from "@parley/a2a";
import { cardKeySet, makeCardKey, signCard, trustCards, type PrivateCardKey } from "@parley/a2a/cards";
import { bearerToken, clientCredentials } from "@parley/a2a/credentials";
import type { Dialer } from "@parley/a2a/protocol";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";

/*
 * Attacks on what a client caches and follows (A2A 1.0 §8.4, §8.6.2): a cache shared by clients with different trust, redirects of cards, and
 * extended cards signed by another key. Host names resolve to this machine, because clients do not cache cards of local addresses.
 */

const home = "https://agents.example.com";
const elsewhere = "https://evil.example.net";
const plain = "http://agents.example.com";
const clientSecret = "secret-of-ada-0123456789";
const token = "secret-token-of-ada-5555";

let signer: PrivateCardKey;
let stranger: PrivateCardKey;
beforeAll(async () => {
  [signer, stranger] = await Promise.all([makeCardKey(), makeCardKey()]);
});
const trustOf = async (key: PrivateCardKey, origins?: readonly string[]) =>
  trustCards({ keys: [{ keySet: await cardKeySet([key]), ...(origins && { origins }) }] });

interface Asked {
  readonly url: string;
  readonly method: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}
interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

interface Net {
  readonly fetch: NonNullable<ConnectOptions["fetch"]>;
  readonly asked: Asked[];
  answer: (request: Asked) => Answer;
}

/** Starts a server for all hosts. Its `fetch` follows redirects if the client asks for this. */
async function net(answer: Net["answer"]): Promise<Net> {
  const asked: Asked[] = [];
  const world = { answer };
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const url = decodeURIComponent(request.url?.slice(1) ?? "");
      const one = { url, method: request.method ?? "", headers: request.headers, body };
      asked.push(one);
      const given = world.answer(one);
      response.writeHead(given.status ?? 200, { "content-type": "application/json", ...given.headers });
      response.end(given.body === undefined ? "" : JSON.stringify(given.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const port = (server.address() as AddressInfo).port;
  const send: Net["fetch"] = async (url, init) => {
    for (let at = url, hops = 0; ; hops += 1) {
      const response = await fetch(`http://127.0.0.1:${port}/${encodeURIComponent(at)}`, {
        ...init,
        redirect: "manual",
      });
      const location = response.headers.get("location");
      if (init.redirect !== "follow" || location === null || hops > 20) return response;
      at = new URL(location, at).href;
    }
  };
  return Object.assign(world, { fetch: send, asked });
}

const wellKnown = "/.well-known/agent-card.json";
const card = (change: Partial<AgentCard> = {}): AgentCard => ({
  name: "Weather",
  description: "Says whether it will rain",
  version: "1.0.0",
  supportedInterfaces: [{ url: `${home}/rpc`, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: false, extendedAgentCard: true },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [],
  ...change,
});
/** A card whose token endpoint belongs to another party, so that the client would send its secret there. */
const leading = card({
  securitySchemes: {
    x: { oauth2SecurityScheme: { flows: { clientCredentials: { tokenUrl: `${elsewhere}/token`, scopes: {} } } } },
  },
  securityRequirements: [{ schemes: { x: { list: [] } } }],
});

/** Returns a dialer that resolves authorization servers to the same network. */
const dialerOf = (world: Net): Dialer => ({
  resolve: async () => [{ address: "203.0.114.1", family: 4 }],
  fetch: (url, _addresses, { method = "GET", headers = {}, body, signal = new AbortController().signal }) =>
    world.fetch(url.href, { method, headers, signal, redirect: "manual", ...(typeof body === "string" && { body }) }),
});

const withSecret = (world: Net): ConnectOptions => ({
  fetch: world.fetch,
  retry: false,
  credentials: [clientCredentials({ clientId: "ada", clientSecret, dialer: dialerOf(world) })],
});

const codeOf = (thrown: unknown): string | undefined =>
  (thrown as { code?: string }).code === undefined ? String(thrown) : (thrown as { code: string }).code;
const refused = (promise: Promise<unknown>): Promise<string | undefined> => promise.then(() => undefined, codeOf);

const secretWords = [clientSecret, token, Buffer.from(`ada:${clientSecret}`).toString("base64")];
function expectNoSecretBut(world: Net, origin?: string): void {
  for (const one of world.asked) {
    if (origin !== undefined && one.url.startsWith(`${origin}/`)) continue;
    for (const secret of secretWords) expect(JSON.stringify(one), one.url).not.toContain(secret);
  }
}

describe("a card cache shared by clients", () => {
  const fresh = { "cache-control": "public, max-age=3600", etag: '"1"' };

  it("gives a client with credentials no card that another one got through a redirect", async () => {
    const world = await net(({ url }) =>
      url.startsWith(home)
        ? { status: 302, headers: { location: `${elsewhere}/card.json`, ...fresh } }
        : { headers: fresh, body: leading },
    );
    const { card: open } = await connect(home, { fetch: world.fetch, retry: false });
    expect(open.securitySchemes).toBeDefined();
    for (const options of [
      withSecret(world),
      { fetch: world.fetch, retry: false, headers: { "x-key": token } } as const,
    ]) {
      expect(await refused(connect(home, options).then((client) => client.sendMessage("hello")))).toBe(
        "InvalidResponse",
      );
    }
    expect(world.asked.filter(({ url }) => url.includes("/token"))).toEqual([]);
    expectNoSecretBut(world, home);
  });

  it("gives a client that requires signatures no card that one without them has kept, also by a 304", async () => {
    const good = await signCard(card({ description: "signed" }), signer);
    for (const headers of [fresh, { etag: '"1"' }]) {
      const world = await net(() => ({ headers, body: leading }));
      await connect(home, { fetch: world.fetch, retry: false });
      // The server now has a second card, but claims that the first card is unchanged.
      world.answer = ({ headers: got }) =>
        got["if-none-match"] === undefined ? { headers, body: good } : { status: 304, headers };
      const client = await connect(home, { ...withSecret(world), trust: await trustOf(signer) });
      expect(client.card.description).toBe("signed");
      world.answer = () => ({ status: 304, headers });
      const again = await connect(home, { ...withSecret(world), trust: await trustOf(stranger) }).catch(codeOf);
      expect(again).toBe("InvalidResponse");
      expectNoSecretBut(world);
    }
  });

  it("keeps a card for each set of headers: a card for authenticated callers reaches nobody else", async () => {
    const world = await net(({ headers: { authorization } }) => ({
      headers: fresh,
      body: card({ description: authorization ?? "nobody" }),
    }));
    const seen: string[] = [];
    for (const key of ["Bearer a", undefined, "Bearer b", "bearer a"]) {
      const headers = key === undefined ? {} : { headers: { authorization: key } };
      seen.push((await connect(home, { fetch: world.fetch, retry: false, ...headers })).card.description);
    }
    expect(seen).toEqual(["Bearer a", "nobody", "Bearer b", "bearer a"]);
  });

  it("does not accept a 304 for a card that it does not have", async () => {
    const world = await net(() => ({ status: 304 }));
    expect(await refused(connect(home, { fetch: world.fetch, retry: false }))).toBe("InvalidResponse");
  });
});

describe("redirects of a card under trust: require", () => {
  const chain = (...to: readonly string[]): Net["answer"] => {
    return ({ url }) => {
      const at = url === home + wellKnown ? -1 : to.indexOf(url);
      const next = to[at + 1];
      return next === undefined ? {} : { status: 307, headers: { location: next } };
    };
  };
  const hops = [`${elsewhere}/1`, `${plain}/2`, `${elsewhere}/card.json`];

  it("over other hosts and without TLS lead only to a card that a trusted key has signed", async () => {
    const trust = await trustOf(signer);
    const onlyHome = await trustOf(signer, [home]);
    const onlyElsewhere = await trustOf(signer, [elsewhere]);
    const [good, forged] = [await signCard(card(), signer), await signCard(leading, stranger)];
    const world = await net(() => ({}));
    const follow = chain(...hops);
    const ending = (body: unknown) => (world.answer = (one) => (one.url === hops.at(-1) ? { body } : follow(one)));
    const options = { fetch: world.fetch, retry: false, cardCache: false } as const;
    ending(good);
    await connect(home, { ...options, trust });
    await connect(home, { ...options, trust: onlyHome });
    expect(await refused(connect(home, { ...options, trust: onlyElsewhere }))).toBe("InvalidResponse");
    for (const body of [forged, leading, { ...good, securitySchemes: leading.securitySchemes }]) {
      ending(body);
      expect(await refused(connect(home, { ...options, trust }))).toBe("InvalidResponse");
    }
  });

  it("are not followed with credentials, at the first hop or later, and a loop of them ends", async () => {
    const world = await net(chain(...hops));
    expect(await refused(connect(home, { ...withSecret(world), trust: await trustOf(signer) }))).toBe(
      "InvalidResponse",
    );
    expect(world.asked.map(({ url }) => url)).toEqual([home + wellKnown]);
    world.answer = ({ url }) => ({ status: 302, headers: { location: url } });
    expect(await refused(connect(home, { fetch: world.fetch, retry: false }))).toBe("InvalidResponse");
    expectNoSecretBut(world);
  });
});

describe("an extended card under trust: require", () => {
  const options = async (world: Net): Promise<ConnectOptions> => ({
    fetch: world.fetch,
    retry: false,
    cardCache: false,
    trust: await trustOf(signer, [home]),
    credentials: [bearerToken(token), ...(withSecret(world).credentials ?? [])],
  });
  const secured = card({
    securitySchemes: { b: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
    securityRequirements: [{ schemes: { b: { list: [] } } }],
  });

  it.each(["JSONRPC", "HTTP+JSON"] as const)(
    "that is unsigned, or signed by another key, replaces nothing over %s",
    async (protocolBinding) => {
      const base = {
        ...secured,
        supportedInterfaces: [{ url: `${home}/rpc`, protocolBinding, protocolVersion: "1.0" }],
      };
      const open = await signCard(base, signer);
      const leadingToo = {
        ...leading,
        supportedInterfaces: [{ ...base.supportedInterfaces[0], url: `${elsewhere}/rpc` }],
      };
      const extended = [
        leadingToo,
        await signCard(leadingToo as AgentCard, stranger),
        { ...leadingToo, signatures: open.signatures },
        { ...leadingToo, signatures: [] },
        { ...open, supportedInterfaces: leadingToo.supportedInterfaces },
      ];
      const world = await net(() => ({}));
      for (const body of extended) {
        world.answer = ({ url, body: sent }) => {
          if (url.endsWith(wellKnown)) return { body: open };
          if (sent === "") return { body };
          const { id, method } = JSON.parse(sent) as { id: unknown; method: string };
          return { body: { jsonrpc: "2.0", id, ...(method === "GetExtendedAgentCard" && { result: body }) } };
        };
        const client = await connect(home, await options(world));
        const before = client.card;
        expect(await refused(client.getExtendedAgentCard())).toBe("InvalidResponse");
        expect(client.card).toBe(before);
        await refused(client.sendMessage("hello"));
      }
      // The public card's signature is valid for these requests, so the card's server got the token.
      expect(world.asked.some(({ headers: { authorization } }) => authorization === `Bearer ${token}`)).toBe(true);
      expectNoSecretBut(world, home);
      expect(world.asked.filter(({ url }) => url.startsWith(elsewhere))).toEqual([]);
    },
  );

  it.each(["JSONRPC", "HTTP+JSON"] as const)("is not read where a redirect leads, over %s", async (protocolBinding) => {
    const supportedInterfaces = [{ url: `${home}/rpc`, protocolBinding, protocolVersion: "1.0" }];
    const open = await signCard({ ...secured, supportedInterfaces }, signer);
    const world = await net(({ url }) => {
      if (url.endsWith(wellKnown)) return { body: open };
      return url.startsWith(home) ? { status: 307, headers: { location: `${elsewhere}/extended` } } : { body: leading };
    });
    const client = await connect(home, await options(world));
    await expect(client.getExtendedAgentCard()).rejects.toSatisfy((thrown) => hasCode(thrown, "InvalidResponse"));
    expect(world.asked.filter(({ url }) => url.startsWith(elsewhere))).toEqual([]);
    expectNoSecretBut(world, home);
  });
});
