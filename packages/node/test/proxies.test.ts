import { createServer, request as httpRequest, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { fakeClock } from "@parley/testing";
import express from "express";
import fastify from "fastify";
import { describe, expect, it, onTestFinished } from "vitest";
import { A2AError, memoryStore, silentLogger } from "@parley/server";
import type { Logger, UniversalHandler } from "@parley/a2a/protocol";
import type { RequestFacts } from "@parley/a2a/internal/protocol/index";
import { bearer, type Authenticator } from "@parley/a2a/auth";
import { expressMount } from "../src/express.ts";
import { fastifyMount } from "../src/fastify.ts";
import { nodeListener, serve, type ServeOptions, type Server, type TrustProxy } from "../src/index.ts";
import { Proxies } from "../src/http/proxies.ts";
import { plainRule, underRule } from "../src/http/tls.ts";
import { X509Certificate } from "node:crypto";
import { echoAgent } from "./support/agents.ts";
import { certificateFor } from "./support/certificate.ts";
import { Http2Client } from "./support/http2.ts";

/** Tests servers behind trusted and untrusted proxies. */

/** Returns the facts that a server derives about a client, for a request from `peer` with these headers. */
async function factsOf(
  trustProxy: TrustProxy | undefined,
  headers: Readonly<Record<string, string>>,
  peer = "127.0.0.1",
): Promise<RequestFacts> {
  let seen: RequestFacts = {};
  const handle: UniversalHandler = ({ facts }) => {
    seen = { remoteAddress: facts?.remoteAddress, secure: facts?.secure, certificate: facts?.certificate };
    return { status: 204, headers: {} };
  };
  await statusOf(handle, headers, peer, trustProxy);
  return seen;
}

/** Returns the status of a request over a socket with the address `peer`. */
async function statusOf(
  handle: UniversalHandler,
  headers: Readonly<Record<string, string>>,
  peer: string,
  trustProxy?: TrustProxy,
): Promise<number> {
  const server = createServer(nodeListener(handle, trustProxy === undefined ? {} : { trustProxy }));
  // Simulates the peer's address, because a test machine has no other addresses.
  server.on("connection", (socket) => Object.defineProperty(socket, "remoteAddress", { value: peer }));
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    httpRequest({ port, host: "127.0.0.1", headers, agent: false }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    })
      .on("error", reject)
      .end();
  });
}

describe("the facts of a request", () => {
  const headers = {
    "x-forwarded-for": "192.0.2.1",
    "x-forwarded-proto": "https",
    forwarded: "for=198.51.100.1;proto=https",
  };

  it("are the connection's if no proxy is trusted, whatever the headers say", async () => {
    expect(await factsOf(undefined, headers)).toEqual({ remoteAddress: "127.0.0.1", secure: false });
    expect(await factsOf(["10.0.0.0/8"], headers)).toEqual({ remoteAddress: "127.0.0.1", secure: false });
    expect(await factsOf(["10.0.0.0/8"], headers, "11.0.0.1")).toEqual({ remoteAddress: "11.0.0.1", secure: false });
  });

  it("are those that a named proxy reports, in the headers that it writes", async () => {
    expect(await factsOf(["127.0.0.1"], headers)).toEqual({ remoteAddress: "192.0.2.1", secure: true });
    const forwarded = { addresses: ["loopback"], headers: "forwarded" } as const;
    expect(await factsOf(forwarded, headers)).toEqual({ remoteAddress: "198.51.100.1", secure: true });
    // This proxy writes a different header, and forwards the client's `X-Forwarded-For` unchanged.
    expect(await factsOf(forwarded, { "x-forwarded-for": "192.0.2.1" })).toMatchObject({ remoteAddress: "127.0.0.1" });
    expect(await factsOf(["loopback"], { forwarded: "for=198.51.100.1" })).toMatchObject({
      remoteAddress: "127.0.0.1",
    });
  });
});

describe("the certificate of a client of a proxy", () => {
  const pem = async (): Promise<string> => (await certificateFor("agent-7.example", "urn:agent:7")).cert;
  const trust = (certificate?: string): TrustProxy => ({
    addresses: ["loopback"],
    ...(certificate !== undefined && { certificate }),
  });

  it("is in the configured header: as RFC 9440, Envoy, nginx and Traefik write it", async () => {
    const cert = await pem();
    const { raw, fingerprint256, validTo } = new X509Certificate(cert);
    const base64 = raw.toString("base64");
    const fingerprint = fingerprint256.replaceAll(":", "").toLowerCase();
    const known = {
      authorized: true,
      fingerprint,
      der: new Uint8Array(raw),
      subject: { CN: "agent-7.example" },
      names: ["DNS:agent-7.example", "URI:urn:agent:7"],
      expires: Date.parse(validTo),
    };
    const encoded = encodeURIComponent(cert);
    const envoy = `Hash=${"0".repeat(64)};Cert="${encodeURIComponent("x")}",By=urn:a;Hash=${fingerprint};Cert="${encoded}"`;
    for (const [name, value] of [
      ["client-cert", `:${base64}:`],
      ["x-forwarded-client-cert", envoy],
      ["x-ssl-client-cert", encoded],
      ["X-Amzn-Mtls-Clientcert", encoded.replaceAll("%2B", "+").replaceAll("%2F", "/")],
      ["x-forwarded-tls-client-cert", base64],
    ] as const) {
      expect((await factsOf(trust(name), { [name]: value })).certificate, name).toEqual(known);
    }
  });

  it("is known by its hash and names if Envoy passes nothing else", async () => {
    const hash = "Ab".repeat(32);
    const value = `By=spiffe://x/a;Hash=${hash};Subject="CN=\\"a\\", O=b";URI=spiffe://x/b;DNS=b.example;DNS="c,d"`;
    expect((await factsOf(trust("x-forwarded-client-cert"), { "x-forwarded-client-cert": value })).certificate).toEqual(
      {
        authorized: true,
        fingerprint: hash.toLowerCase(),
        subject: {},
        names: ["URI:spiffe://x/b", "DNS:b.example", "DNS:c,d"],
      },
    );
  });

  it.each(["client-cert", "x-forwarded-client-cert", "x-ssl-client-cert"])(
    "does not exist if %s is not a certificate, is not configured, or comes from an untrusted sender",
    async (name) => {
      const { raw } = new X509Certificate(await pem());
      const good = name === "client-cert" ? `:${raw.toString("base64")}:` : raw.toString("base64");
      const bad = ["", ":", "::", ":AAAA:", "%", "%zz", "Hash=1", "Hash=;Cert=", 'Cert="', "x".repeat(8_000), "=;=,"];
      for (const value of bad) expect((await factsOf(trust(name), { [name]: value })).certificate).toBeUndefined();
      expect((await factsOf(trust(), { [name]: good })).certificate).toBeUndefined();
      expect((await factsOf(trust(name), { [name]: good }, "192.0.2.1")).certificate).toBeUndefined();
      expect((await factsOf(undefined, { [name]: good })).certificate).toBeUndefined();
    },
  );

  it("authenticates over both versions of HTTP, and is not the proxy's own", async () => {
    const [own, proxy, client] = [
      await certificateFor("127.0.0.1"),
      await certificateFor("proxy.example"),
      await certificateFor("agent-7.example"),
    ];
    const byCertificate: Authenticator = {
      securitySchemes: { tls: { mtlsSecurityScheme: {} } },
      securityRequirements: [{ schemes: { tls: { list: [] } } }],
      authenticate({ facts }) {
        const { certificate } = facts ?? {};
        if (certificate?.authorized) return { subject: certificate.fingerprint };
        throw new A2AError("Unauthenticated");
      },
    };
    const server = await start({
      tls: { ...own, ca: proxy.cert },
      authenticator: byCertificate,
      trustProxy: { addresses: ["loopback"], certificate: "client-cert" },
    });
    using http2 = await Http2Client.to(server.url, { ca: own.cert, ...proxy });
    const told = { "client-cert": `:${new X509Certificate(client.cert).raw.toString("base64")}:` };
    expect((await http2.get("/tasks", told)).status).toBe(200);
    expect((await http2.get("/tasks")).status).toBe(401);
  });
});

const quiet = { port: 0, signals: false, logger: false } as const;

async function start(options: ServeOptions): Promise<Server> {
  const server = await serve(echoAgent(), { ...quiet, store: memoryStore(), ...options });
  onTestFinished(() => server.close({ grace: 0 }));
  return server;
}

describe("plain HTTP for other machines", () => {
  const reachable = {
    host: "0.0.0.0",
    publicUrl: "https://agents.example.com",
    authenticator: bearer({ "a-token": { subject: "ada" } }),
  };

  it("is rejected at startup without TLS, a named proxy, or insecure: true", async () => {
    await expect(start(reachable)).rejects.toThrow(/is not encrypted\. Set `tls`, or set `trustProxy`/);
    for (const options of [{ trustProxy: ["10.0.0.0/8"] }, { insecure: true }, { tls: await certificateFor("a") }]) {
      expect((await start({ ...reachable, ...options })).agents).toHaveLength(1);
    }
    expect((await start({ host: "127.0.0.1" })).agents).toHaveLength(1);
  });

  it("is answered only to this machine and the proxies", async () => {
    const lines: string[] = [];
    const logger: Logger = {
      ...silentLogger,
      warn: (message, fields) => void lines.push(`${message} ${String(fields?.["address"])}`),
    };
    const handle = underRule(
      () => ({ status: 204, headers: {} }),
      plainRule(new Proxies(["10.0.0.0/8", "fd00::/8"]), logger),
    );
    const status = (peer: string): Promise<number> => statusOf(handle, { "x-forwarded-for": "10.0.0.1" }, peer);
    for (const peer of ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.9.9.9", "::ffff:10.9.9.9", "fd00::7"]) {
      expect(await status(peer), peer).toBe(204);
    }
    for (const peer of ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "11.0.0.1"]) {
      expect(await status(peer), peer).toBe(403);
    }
    // The server logs this at most once a minute, because callers could otherwise fill the log.
    expect(lines).toEqual([expect.stringContaining("its sender is not in `trustProxy` 192.0.2.1")]);
  });

  it("is answered to a proxy by a server that listens everywhere", async () => {
    const server = await start({ ...reachable, trustProxy: ["loopback"] });
    const list = await fetch(`http://127.0.0.1:${server.port}/tasks`, { headers: { authorization: "Bearer a-token" } });
    expect(list.status).toBe(200);
  });
});

it("a named proxy changes nothing on a card: publicUrl decides (A2A 1.0 §8)", async () => {
  const server = await start({ publicUrl: "https://agents.example.com/a2a", basePath: "", trustProxy: ["loopback"] });
  const evil = "evil.example.org";
  for (const headers of [
    { host: evil },
    {
      "x-forwarded-host": evil,
      "x-forwarded-proto": "http",
      "x-forwarded-port": "81",
      "x-forwarded-prefix": `/${evil}`,
    },
    { forwarded: `for=192.0.2.1;host=${evil};proto=http` },
  ]) {
    const card = await fetch(`${server.url}/.well-known/agent-card.json`, { headers });
    expect(card.status).toBe(200);
    expect(await card.text()).not.toContain(evil);
  }
});

describe("limits behind a proxy", () => {
  it("stop a client that guesses, and no other client of that proxy", async () => {
    const authenticator = bearer({ "a-token": { subject: "ada" } });
    // The clock is stopped, so no failed attempt expires.
    const server = await start({ authenticator, trustProxy: ["loopback"], clock: fakeClock() });
    const list = async (client: string, token: string): Promise<number> => {
      const headers = { authorization: `Bearer ${token}`, "x-forwarded-for": client };
      const answer = await fetch(`${server.url}/tasks`, { headers });
      await answer.text();
      return answer.status;
    };
    const guesses: number[] = [];
    for (let at = 0; at < 105; at++) guesses.push(await list("192.0.2.1", `guess-${at}`));
    expect(guesses.slice(0, 100)).toEqual(Array.from({ length: 100 }, () => 401));
    expect(guesses.at(-1)).toBe(429);
    expect([await list("192.0.2.1", "a-token"), await list("192.0.2.2", "a-token")]).toEqual([429, 200]);
    // Even if a client writes the header itself, the proxy appends the real address.
    expect(await list("192.0.2.77, 192.0.2.1", "a-token")).toBe(429);
  });
});

describe("mounts", () => {
  it("of Express and Fastify trust named proxies, and reject others at once", async () => {
    let seen: string | undefined;
    const handle: UniversalHandler = ({ facts }) => {
      seen = facts?.remoteAddress;
      return { status: 204, headers: {} };
    };
    const handler = { handle, answers: () => true };
    const trustProxy = ["loopback"];
    const app = fastify();
    onTestFinished(() => app.close());
    await app.register(fastifyMount(handler, { trustProxy }));
    const server = createServer(express().use(expressMount(handler, { trustProxy })) as RequestListener);
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const urls = [
      await app.listen({ port: 0, host: "127.0.0.1" }),
      `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ];
    for (const url of urls) {
      seen = undefined;
      expect((await fetch(url, { headers: { "x-forwarded-for": "192.0.2.1" } })).status).toBe(204);
      expect(seen).toBe("192.0.2.1");
    }
    const options = { trustProxy: ["proxy.example"] };
    expect(() => expressMount(handler, options)).toThrow("proxy.example");
    expect(() => fastifyMount(handler, options)).toThrow("proxy.example");
  });

  it("and nodeListener log an invalid entry at once, and answer requests with an error", async () => {
    const causes: unknown[] = [];
    const logger: Logger = {
      ...silentLogger,
      error: (_message, fields) => void causes.push(String(fields?.["cause"])),
    };
    const listener = nodeListener(() => ({ status: 204, headers: {} }), { trustProxy: ["proxy.example"], logger });
    await expect.poll(() => causes).toEqual([expect.stringContaining("proxy.example")]);
    const server = createServer(listener);
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    expect([answer.status, await answer.text()]).toEqual([500, expect.not.stringContaining("proxy.example")]);
    expect(causes).toHaveLength(2);
    expect(causes[1]).toBe(causes[0]);
  });
});
