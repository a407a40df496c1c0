import { constants } from "node:http2";
import { connect as connectTls } from "node:tls";
import { describe, expect, it } from "vitest";
import type { UniversalHandler, UniversalRequest } from "@parley/a2a/protocol";
import { beforeRouter } from "@parley/a2a/internal/transport/router/router";
import type { AnyPathEndpoint } from "@parley/a2a/internal/transport/server/binding";
import { certificateFor } from "./support/certificate.ts";
import { deferred, RawClient } from "./support/host.ts";
import { answerOf, frame, getFrame, Http2Client, preface, textUntil } from "./support/http2.ts";
import { openPort } from "./support/port.ts";

const json = { "content-type": "application/json" };

const echo: UniversalHandler = async (request) => ({
  status: 200,
  headers: json,
  body: `<${request.method} ${request.url} ${await request.text(10_000_000)}>`,
});

async function oneByOne(client: RawClient, bytes: Buffer): Promise<void> {
  for (const byte of bytes) {
    client.socket.write(Buffer.of(byte));
    await new Promise(setImmediate);
  }
}

describe("a connection without TLS", () => {
  it.each(["GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nContent-Length: 2\r\n", "PROPFIND / HTTP/1.1\r\n"])(
    "that sends its bytes one by one uses HTTP/1.1: %s",
    async (line) => {
      await using server = await openPort(echo);
      using client = await RawClient.to(server.port);
      await oneByOne(client, Buffer.from(`${line}Host: a\r\nConnection: close\r\n\r\n{}`, "latin1"));
      const method = line.slice(0, line.indexOf(" "));
      expect(await client.ended()).toContain(`<${method} / ${method === "POST" ? "{}" : ""}>`);
    },
  );

  it("that sends its bytes one by one uses HTTP/2", async () => {
    await using server = await openPort(echo);
    using client = await RawClient.to(server.port);
    await oneByOne(client, Buffer.concat([preface, frame(4, 1, 0), getFrame(1, "/x")]));
    expect(await client.until((text) => text.includes("<GET /x >"))).toContain("<GET /x >");
  });

  it("that sends everything at once loses nothing", async () => {
    await using server = await openPort(async (request) => {
      const { length } = await request.text(10_000_000);
      return { status: 200, headers: json, body: `<${request.url} ${length}>` };
    });
    const body = "x".repeat(1_000_000);
    using plain = await RawClient.to(server.port);
    const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`;
    plain.socket.write(`${head}${body}GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    const text = await plain.ended();
    expect([text.includes("</ 1000000>"), text.includes("</next 0>")]).toEqual([true, true]);

    using framed = await RawClient.to(server.port);
    const pieces = Array.from({ length: 12 }, () => frame(0, 0, 1, Buffer.alloc(16_000, "y")));
    framed.socket.write(Buffer.concat([preface, frame(4, 1, 0), getFrame(1, "/", false), ...pieces, frame(0, 1, 1)]));
    expect(await framed.until((seen) => seen.includes(">"))).toContain("</ 192000>");
  });

  it("answers pipelined requests in their order, and keeps the connection", async () => {
    await using server = await openPort(echo);
    using client = await RawClient.to(server.port);
    client.socket.write("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    const text = await client.until((seen) => seen.includes("</2") || seen.includes("<GET /2 >"));
    expect(text.indexOf("<GET /1 >")).toBeLessThan(text.indexOf("<GET /2 >"));
    client.socket.write("GET /3 HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.until((seen) => seen.includes("<GET /3 >"));
  });

  it("that asks for an upgrade to HTTP/2 is answered over HTTP/1.1 (RFC 9113 §3.1)", async () => {
    await using server = await openPort(echo);
    using client = await RawClient.to(server.port);
    const upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
    client.socket.write(`GET / HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n`);
    expect(await client.until((text) => text.includes("<GET / >"))).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("that closes its side after a request still gets the answer", async () => {
    const go = deferred();
    await using server = await openPort(async () => {
      await go.promise;
      return { status: 200, headers: json, body: "late" };
    });
    using client = await RawClient.to(server.port);
    client.socket.end("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    await new Promise(setImmediate);
    go.resolve();
    expect(await client.ended()).toContain("late");
  });

  it.each([
    ["nothing", ""],
    ["half a preface", "PRI * HTTP/2.0\r\n"],
    ["half a request", "GET / HTTP/1.1\r\nHos"],
  ])("that sends %s is closed", async (_name, bytes) => {
    await using server = await openPort(echo, { headersTimeout: 50, checkInterval: 20 });
    using client = await RawClient.to(server.port);
    client.socket.write(bytes);
    await client.ended();
  });

  it("whose headers arrive byte by byte and never end is closed, although bytes keep arriving", async () => {
    await using server = await openPort(echo, { headersTimeout: 50, checkInterval: 20 });
    using client = await RawClient.to(server.port);
    client.socket.write("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ");
    const drip = setInterval(() => client.socket.write("x"), 5);
    try {
      expect(await client.ended()).toMatch(/^HTTP\/1\.1 408 /);
    } finally {
      clearInterval(drip);
    }
  });

  it("whose body arrives byte by byte and never ends is closed, over HTTP/1.1", async () => {
    await using server = await openPort(echo, { headersTimeout: 50, requestTimeout: 80, checkInterval: 20 });
    using client = await RawClient.to(server.port);
    client.socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
    const drip = setInterval(() => client.socket.write("x"), 5);
    try {
      expect(await client.ended()).not.toContain("<POST");
    } finally {
      clearInterval(drip);
    }
  });

  const readOf = (request: UniversalRequest): Promise<string> =>
    new Promise((resolve) => {
      const over = (): void => resolve("over");
      request.read?.({ chunk() {}, end: over, gone: over }).resume();
    });

  it.each([
    ["as text", "/text"],
    ["in pieces", "/pieces"],
  ])("whose stream never ends its body, read %s, loses that stream, over HTTP/2, and no other", async (_how, path) => {
    const whole: UniversalHandler = async (request) => ({
      status: 200,
      headers: json,
      body:
        request.url === "/next" ? "next" : await (request.url === "/text" ? request.text(10_000_000) : readOf(request)),
    });
    await using server = await openPort(whole, { requestTimeout: 80 });
    using client = await Http2Client.to(server.origin);
    const stream = client.begin(path, { ":method": "POST" });
    const drip = setInterval(() => stream.writable && stream.write("x"), 5);
    try {
      await new Promise((resolve) => stream.on("close", resolve));
    } finally {
      clearInterval(drip);
    }
    expect((await client.get("/next")).body).toBe("next");
  });

  it.each([
    ["nothing", ""],
    ["half a preface", "PRI * HT"],
  ])("that sends %s and disconnects is released", async (_name, bytes) => {
    await using server = await openPort(echo);
    using client = await RawClient.to(server.port);
    client.socket.end(bytes);
    expect(await client.ended()).toBe("");
  });

  it.each([
    ["no HTTP at all", Buffer.from("\u0016\u0003\u0001 hello\r\n\r\n", "latin1"), "HTTP/1.1 400 "],
    ["a preface that goes wrong", Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\nXX\r\n\r\n", "latin1"), "HTTP/1.1 400 "],
    ["a preface and then no frames", Buffer.concat([preface, Buffer.alloc(2000, "x")]), ""],
  ])("that sends %s is rejected", async (_name, bytes, expected) => {
    // If a GOAWAY has a reason, Node ends the session only when its timeout expires.
    await using server = await openPort(echo, { keepAliveTimeout: 50, headersTimeout: 50 });
    using client = await RawClient.to(server.port);
    client.socket.write(bytes);
    expect(await client.ended()).toContain(expected);
  });

  it("that is reset while its version is unknown does no harm", async () => {
    await using server = await openPort(echo);
    for (let at = 0; at < 20; at++) {
      using client = await RawClient.to(server.port);
      client.socket.write("PRI");
      client.socket.resetAndDestroy();
    }
    expect(await (await fetch(server.origin)).text()).toBe("<GET / >");
  });
});

describe("a TLS connection", () => {
  it("uses HTTP/1.1 if the client names no protocol", async () => {
    const tls = await certificateFor("localhost");
    await using server = await openPort(echo, { tls });
    const socket = connectTls({ port: server.port, ca: tls.cert, servername: "localhost" });
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    await new Promise((resolve) => socket.on("close", resolve));
    expect(text).toContain("<GET / >");
  });

  it("whose handshake never ends, or is not a handshake, is closed", async () => {
    await using server = await openPort(echo, { tls: await certificateFor("localhost"), headersTimeout: 50 });
    using silent = await RawClient.to(server.port);
    using garbage = await RawClient.to(server.port);
    garbage.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await Promise.all([silent.ended(), garbage.ended()]);
  });
});

describe("a binding that recognizes its requests by their headers", () => {
  /** Answers all requests with `ok` in the form of gRPC: a head, a message, and trailers. */
  const grpc: AnyPathEndpoint = {
    claims: (request) =>
      request.url === "/pkg.Service/Method" &&
      (request.method === "OPTIONS" || request.header("content-type")?.startsWith("application/grpc") === true),
    answer: ({ takesTrailers }) =>
      takesTrailers === true
        ? {
            status: 200,
            headers: { "content-type": "application/grpc" },
            body: Buffer.from("ok"),
            trailers: () => ({ "grpc-status": "0" }),
          }
        : { status: 200, headers: { "content-type": "application/grpc-web" }, body: "web" },
  };
  const handle = beforeRouter([grpc], echo);

  it.each([
    ["clear text", false],
    ["TLS", true],
  ])("answers them over %s with bytes and trailers, and no others", async (_name, secure) => {
    const tls = await certificateFor("localhost", "127.0.0.1");
    await using server = await openPort(handle, secure ? { tls } : {});
    using client = await Http2Client.to(server.origin, { ca: tls.cert });
    const head = { ":method": "POST", "content-type": "application/grpc+proto" };
    const call = client.begin("/pkg.Service/Method", head, "");
    const trailers = new Promise((resolve) => call.on("trailers", resolve));
    expect((await answerOf(call)).body).toBe("ok");
    expect(await trailers).toMatchObject({ "grpc-status": "0" });
    expect((await client.post("/pkg.Service/Method", "{}")).body).toBe("<POST /pkg.Service/Method {}>");
    expect((await client.post("/other", "", head)).body).toBe("<POST /other >");
  });

  it("answers them over HTTP/1.1, preflight requests included", async () => {
    await using server = await openPort(handle);
    const headers = { "content-type": "application/grpc-web+proto" };
    const ask = async (path: string, init: RequestInit): Promise<string> =>
      (await fetch(server.origin + path, init)).text();
    expect(await ask("/pkg.Service/Method", { method: "POST", headers })).toBe("web");
    expect(await ask("/pkg.Service/Method", { method: "OPTIONS" })).toBe("web");
    expect(await ask("/other", { method: "OPTIONS" })).toBe("<OPTIONS /other >");
    expect(await ask("/pkg.Service/Method", { method: "POST", headers: json, body: "{}" })).toContain("<POST");
  });

  it("does not answer other requests with its errors", async () => {
    const broken: AnyPathEndpoint = {
      claims: (request) => request.url === "/broken",
      answer() {
        throw new Error("defect");
      },
    };
    const causes: unknown[] = [];
    const logger = { debug() {}, info() {}, warn() {}, error: (_text: string, fields?: object) => causes.push(fields) };
    await using server = await openPort(beforeRouter([broken], echo), { logger });
    using client = await Http2Client.to(server.origin);
    expect((await client.post("/broken", "")).status).toBe(500);
    expect((await fetch(`${server.origin}/broken`, { method: "POST" })).status).toBe(500);
    expect((await client.get("/")).body).toBe("<GET / >");
    expect(causes).toHaveLength(2);
  });
});

describe("a port that closes", () => {
  it("lets requests over HTTP/2 finish, and rejects new ones", async () => {
    const go = deferred();
    const arrived = deferred();
    await using server = await openPort(async () => {
      arrived.resolve();
      await go.promise;
      return { status: 200, headers: json, body: "whole" };
    });
    using client = await Http2Client.to(server.origin);
    const answer = client.get("/");
    await arrived.promise;
    const goaway = new Promise((resolve) => client.session.once("goaway", resolve));
    server.main.drain();
    expect(await goaway).toBe(constants.NGHTTP2_NO_ERROR);
    // Node 20 and 22 throw, while later versions of Node fail the stream.
    const again = async (): Promise<unknown> => answerOf(client.begin("/again"));
    await expect(again()).rejects.toMatchObject({ code: "ERR_HTTP2_GOAWAY_SESSION" });
    go.resolve();
    expect((await answer).body).toBe("whole");
    await server.main.end(60_000);
  });

  it("lets streams over HTTP/2 end", async () => {
    const end = deferred();
    await using server = await openPort(() => ({
      status: 200,
      headers: {},
      async body(sink) {
        sink.write("begun ");
        await end.promise;
        sink.write("x".repeat(5_000_000));
        sink.write("ended");
      },
    }));
    using client = await Http2Client.to(server.origin);
    const stream = client.begin("/", {}, "");
    const answer = answerOf(stream);
    await textUntil(stream, (text) => text.includes("begun"));
    server.main.drain();
    end.resolve();
    await server.main.end(60_000);
    expect((await answer).body).toMatch(/x ?ended$/);
  });

  it("does not wait for idle sessions, or for clients that never close", async () => {
    await using server = await openPort(echo);
    using idle = await Http2Client.to(server.origin);
    await idle.get("/");
    using mute = await RawClient.to(server.port);
    mute.socket.write(preface);
    using undecided = await RawClient.to(server.port);
    undecided.socket.write("PRI");
    await mute.until((text) => text.length > 0);
    server.main.drain();
    await server.main.end(60_000);
    await Promise.all([mute.ended(), undecided.ended()]);
  });

  it("closes connections whose TLS handshake ends after it began to close", async () => {
    const tls = await certificateFor("localhost");
    await using server = await openPort(echo, { tls });
    const late = new Promise<unknown>((resolve) => {
      const socket = connectTls({ port: server.port, ca: tls.cert, servername: "localhost", ALPNProtocols: ["h2"] });
      socket.on("error", resolve).on("close", resolve);
      socket.on("connect", () => server.main.drain());
    });
    await late;
    await server.main.end(60_000);
  });

  it("aborts after its timeout", async () => {
    await using server = await openPort(() => new Promise(() => {}));
    using client = await Http2Client.to(server.origin);
    const answer = client.get("/").catch((error: unknown) => error);
    await new Promise((resolve) => client.session.ping(resolve));
    server.main.drain();
    await server.main.end(20);
    expect(await answer).toBeInstanceOf(Error);
  });
});
