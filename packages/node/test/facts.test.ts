import { createServer as createTlsServer, request as tlsRequest } from "node:https";
import { createServer, type RequestListener } from "node:http";
import { createSecureServer, createServer as createHttp2Server } from "node:http2";
import { X509Certificate } from "node:crypto";
import type { AddressInfo, Server } from "node:net";
import express from "express";
import fastify from "fastify";
import { A2AError, createHandler, memoryStore, type Handler, type HandlerOptions } from "@parley/server";
import type { Authenticator } from "@parley/a2a/auth";
import type { UniversalHandler } from "@parley/a2a/protocol";
import type { RequestFacts } from "@parley/a2a/internal/protocol/index";
import { describe, expect, it, onTestFinished } from "vitest";
import { expressMount } from "../src/express.ts";
import { fastifyMount } from "../src/fastify.ts";
import { nodeListener } from "../src/http/listener.ts";
import { echoAgent } from "./support/agents.ts";
import { certificateFor, type Certificate } from "./support/certificate.ts";
import { Http2Client } from "./support/http2.ts";

/** Tests facts about a client that are not part of its request, and authenticators that use these facts. */

function listen(server: Server): Promise<number> {
  onTestFinished(() => void server.close());
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port)));
}

/** Creates a handler that records the facts of each request. */
function noting(): { readonly handle: UniversalHandler; readonly seen: RequestFacts[] } {
  const seen: RequestFacts[] = [];
  return {
    seen,
    handle: ({ facts }) => {
      seen.push({ remoteAddress: facts?.remoteAddress, certificate: facts?.certificate, user: facts?.user });
      return { status: 204, headers: {} };
    },
  };
}

const plain = { remoteAddress: "127.0.0.1", certificate: undefined, user: undefined };

/** Returns TLS options that request client certificates, and trust `known`. */
const mutual = (server: Certificate, known: Certificate) =>
  ({ ...server, ca: known.cert, requestCert: true, rejectUnauthorized: false }) as const;

function get(port: number, server: Certificate, client?: Certificate, path = "/"): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { port, path, host: "127.0.0.1", ca: server.cert, agent: false, ...client };
    tlsRequest(options, (answer) => resolve(answer.resume().statusCode ?? 0))
      .on("error", reject)
      .end();
  });
}

function shown(certificate: Certificate, authorized: boolean, ...names: readonly string[]) {
  const { raw, fingerprint256, validTo } = new X509Certificate(certificate.cert);
  return {
    authorized,
    der: new Uint8Array(raw),
    fingerprint: fingerprint256.replaceAll(":", "").toLowerCase(),
    subject: { CN: names[0] },
    names: names.map((name) => `DNS:${name}`),
    expires: Date.parse(validTo),
    // The certificate is self-signed, so the facts contain no chain.
    ...(authorized && { authorities: [] }),
  };
}

it("reports only headers that were sent, also for names such as `constructor`", async () => {
  const names = ["constructor", "__proto__", "tostring", "hasOwnProperty", "x-sent"];
  const seen: (string | undefined)[][] = [];
  const handle: UniversalHandler = (request) => {
    seen.push(names.map((name) => request.header(name)));
    return { status: 204, headers: {} };
  };
  const port = await listen(createServer(nodeListener(handle)));
  await fetch(`http://127.0.0.1:${port}/`, { headers: { "x-sent": "1" } });
  await fetch(`http://127.0.0.1:${port}/`, { headers: { "x-sent": "2", constructor: "sent" } });
  expect(seen).toEqual([
    [undefined, undefined, undefined, undefined, "1"],
    ["sent", undefined, undefined, undefined, "2"],
  ]);
});

describe("the facts of a request", () => {
  it("have the address of the client, and no certificate without TLS, over HTTP/1.1 and HTTP/2", async () => {
    const { handle, seen } = noting();
    const port = await listen(createServer(nodeListener(handle)));
    await fetch(`http://127.0.0.1:${port}/`);
    using client = await Http2Client.to(`http://127.0.0.1:${await listen(createHttp2Server(nodeListener(handle)))}`);
    await client.get("/");
    expect(seen).toEqual([plain, plain]);
  });

  it("have the certificate of the client, and whether it was checked, over TLS of HTTP/1.1 and HTTP/2", async () => {
    const { handle, seen } = noting();
    const [server, known, stranger] = await Promise.all([
      certificateFor("127.0.0.1"),
      certificateFor("agent-7.example", "seven.example"),
      certificateFor("stranger.example"),
    ]);
    const port = await listen(createTlsServer(mutual(server, known), nodeListener(handle)));
    for (const client of [known, stranger, undefined]) expect(await get(port, server, client)).toBe(204);
    const http2 = await listen(createSecureServer(mutual(server, known), nodeListener(handle)));
    using client = await Http2Client.to(`https://127.0.0.1:${http2}`, { ca: server.cert, ...known });
    await client.get("/");
    const ours = shown(known, true, "agent-7.example", "seven.example");
    const theirs = shown(stranger, false, "stranger.example");
    expect(seen.map(({ certificate }) => certificate)).toEqual([ours, theirs, undefined, ours]);
  });

  it("have one name if a name of a certificate contains the text of another one", async () => {
    const { handle, seen } = noting();
    const server = await certificateFor("127.0.0.1");
    const known = await certificateFor("agent-7.example", 'urn:x", DNS:admin.example', "urn:a, DNS:admin.example");
    const port = await listen(createTlsServer(mutual(server, known), nodeListener(handle)));
    expect(await get(port, server, known)).toBe(204);
    expect(seen[0]?.certificate?.names).toEqual([
      "DNS:agent-7.example",
      'URI:urn:x", DNS:admin.example',
      "URI:urn:a, DNS:admin.example",
    ]);
  });

  it("have the user of Express and of Fastify, looked up when it is read", async () => {
    const { handle, seen } = noting();
    const handler = { handle, answers: () => true };
    const user = { id: "ada" };
    let asked = 0;
    const found: RequestListener = express()
      .use((request, _response, next) => {
        Object.assign(request, { user });
        next();
      })
      .use(expressMount(handler)) as RequestListener;
    await fetch(`http://127.0.0.1:${await listen(createServer(found))}/`);
    const app = fastify();
    onTestFinished(() => app.close());
    app.decorateRequest("user", undefined);
    app.addHook("onRequest", (request, _reply, done) => {
      Object.assign(request, { user });
      done();
    });
    await app.register(fastifyMount(handler));
    await fetch(`${await app.listen({ port: 0, host: "127.0.0.1" })}/`);
    expect(seen).toEqual([
      { ...plain, user },
      { ...plain, user },
    ]);

    const silent = { handle: () => ({ status: 204, headers: {} }), answers: () => true };
    const lazy = expressMount(silent, { user: () => (asked += 1) });
    await fetch(`http://127.0.0.1:${await listen(createServer(express().use(lazy) as RequestListener))}/`);
    expect(asked).toBe(0);
  });
});

/** Creates a handler that authenticates its callers by the facts of their requests. */
function known(
  by: (facts: RequestFacts | undefined) => string | undefined,
  options: Partial<HandlerOptions> = {},
): Handler {
  const authenticator: Authenticator = {
    securitySchemes: { tls: { mtlsSecurityScheme: {} } },
    securityRequirements: [{ schemes: { tls: { list: [] } } }],
    authenticate({ facts }) {
      const subject = by(facts);
      if (subject === undefined) throw new A2AError("Unauthenticated");
      return { subject };
    },
  };
  const handler = createHandler(echoAgent(), {
    publicUrl: "https://agents.example.com",
    store: memoryStore(),
    authenticator,
    ...options,
  });
  onTestFinished(() => handler.close());
  return handler;
}

const list = "/tasks";

describe("an authenticator that reads facts", () => {
  it("accepts a client by its certificate, and rejects clients without a verified one (A2A 1.0 §4.5.6)", async () => {
    const { handle } = known((facts) => (facts?.certificate?.authorized ? facts.certificate.fingerprint : undefined));
    const [server, ours, stranger] = await Promise.all(
      ["127.0.0.1", "a.example", "b.example"].map((name) => certificateFor(name)),
    );
    if (server === undefined || ours === undefined) throw new Error("No certificates");
    const port = await listen(createTlsServer(mutual(server, ours), nodeListener(handle)));
    const ask = (client?: Certificate): Promise<number> => get(port, server, client, list);
    expect([await ask(ours), await ask(stranger), await ask()]).toEqual([200, 401, 401]);
  });

  it("accepts the user that the option `facts` returns, which gets the runtime's arguments", async () => {
    const handler = known(({ user } = {}) => (typeof user === "string" ? user : undefined), {
      facts: (request, info) => ({ user: request.headers.get("x-session") === "good" ? info : undefined }),
    });
    const ask = async (session: string): Promise<number> => {
      const request = new Request(`https://agents.example.com${list}`, { headers: { "x-session": session } });
      return (await handler.fetch(request, "ada")).status;
    };
    expect([await ask("good"), await ask("bad")]).toEqual([200, 401]);
  });

  it("ignores the runtime's other arguments unless the option `facts` reads them", async () => {
    const handler = known(({ user } = {}) => (typeof user === "string" ? user : undefined));
    const request = new Request(`https://agents.example.com${list}`);
    expect((await handler.fetch(request, { user: "ada" }, { user: "ada" })).status).toBe(401);
  });
});
