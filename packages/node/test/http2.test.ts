import { constants, createServer as createHttp2 } from "node:http2";
import type { AddressInfo } from "node:net";
import fastify from "fastify";
import { describe, expect, it, vi } from "vitest";
import { A2AError } from "@parley/server";
import type { Logger, UniversalHandler, UniversalRequest } from "@parley/a2a/protocol";
import type { Sink } from "@parley/a2a/internal/protocol/index";
import { fastifyMount } from "../src/fastify.ts";
import { nodeListener } from "../src/http/listener.ts";
import { deferred, RawClient } from "./support/host.ts";
import { answerOf, frame, getFrame, Http2Client, preface, textUntil } from "./support/http2.ts";
import { openPort } from "./support/port.ts";

const json = { "content-type": "application/json" };

/** Answers with the request body. If reading fails, answers with the error in the form of a binding. */
const echo =
  (limit = 1_000_000): UniversalHandler =>
  async (request) => {
    try {
      return { status: 200, headers: json, body: await request.text(limit) };
    } catch (error) {
      if (!(error instanceof A2AError)) throw error;
      return { status: error.code === "RequestTooLarge" ? 413 : 400, headers: json, body: JSON.stringify(error.code) };
    }
  };

/** The start of a GOAWAY frame, with eight bytes of payload and type 7. */
const goaway = "\u0000\u0000\u0008\u0007";
/** Matches a GOAWAY frame with or without a reason. Newer versions of Node send a reason. */
// eslint-disable-next-line no-control-regex -- bytes of a frame
const anyGoaway = /\0[^]{2}\u0007\0{5}/u;

describe("a request over HTTP/2", () => {
  it("reaches the handler with its path, headers and peer", async () => {
    const seen: unknown[] = [];
    await using server = await openPort((request) => {
      const names = ["a2a-extensions", "host", "a2a-version"];
      seen.push([
        request.method,
        request.url,
        request.facts?.remoteAddress,
        ...names.map((name) => request.header(name)),
      ]);
      return { status: 204, headers: {} };
    });
    using client = await Http2Client.to(server.origin);
    await client.get("/tasks/a%20b?historyLength=0", { ":method": "DELETE", "a2a-extensions": ["x", "y"] });
    const host = `127.0.0.1:${server.port}`;
    expect(seen).toEqual([["DELETE", "/tasks/a%20b?historyLength=0", "127.0.0.1", "x, y", host, undefined]]);
  });

  it("has its body as text, in pieces of any size", async () => {
    await using server = await openPort(echo());
    using client = await Http2Client.to(server.origin);
    const stream = client.begin("/", { ":method": "POST" });
    for (const byte of Buffer.from("\ufeffgrüße 🦜", "utf8")) {
      stream.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    stream.end();
    expect((await answerOf(stream)).body).toBe("grüße 🦜");
    expect((await client.get("/")).body).toBe("");
    expect((await client.post("/", "")).body).toBe("");
  });

  it("may have a body larger than all windows of flow control", async () => {
    await using server = await openPort(async (request) => {
      const { length } = await request.text(20_000_000);
      return { status: 200, headers: json, body: String(length) };
    });
    using client = await Http2Client.to(server.origin);
    expect((await client.post("/", "x".repeat(12_000_000))).body).toBe("12000000");
  });

  it("gets 100 Continue only when its body is read (RFC 9110 §10.1.1)", async () => {
    await using server = await openPort(echo(1000));
    using client = await Http2Client.to(server.origin);
    const stream = client.begin("/", { ":method": "POST", expect: "100-continue" });
    await new Promise<void>((resolve) => stream.on("continue", resolve));
    stream.end("asked first");
    expect((await answerOf(stream)).body).toBe("asked first");

    const greedy = client.begin("/", { ":method": "POST", expect: "100-continue", "content-length": "1000000" });
    let asked = false;
    greedy.on("continue", () => (asked = true));
    expect([(await answerOf(greedy)).status, asked]).toEqual([413, false]);
  });

  it("that is aborted is incomplete, although Node ends its body", async () => {
    const told = deferred<string>();
    await using server = await openPort(async (request) => {
      const code = await request.text(1000).catch((error: unknown) => (error as A2AError).code);
      told.resolve(code);
      return { status: 400, headers: {} };
    });
    using client = await RawClient.to(server.port);
    const half = frame(0, 0, 1, Buffer.from('{"part":'));
    client.socket.write(Buffer.concat([preface, getFrame(1, "/", false), half, frame(3, 0, 1, Buffer.of(0, 0, 0, 8))]));
    expect(await told.promise).toBe("InvalidRequest");
  });
});

describe("a body over the limit over HTTP/2", () => {
  const big = "x".repeat(4_000_000);

  it.each([
    ["announced", { "content-length": String(big.length) }],
    ["not announced", {}],
  ])("is rejected before it is read whole, and the client sees the answer: %s", async (_name, length) => {
    await using server = await openPort(echo(1000));
    using client = await Http2Client.to(server.origin);
    const stream = client.begin("/", { ":method": "POST", ...length }, big);
    const { status, headers, body } = await answerOf(stream);
    expect([status, body, headers["connection"]]).toEqual([413, '"RequestTooLarge"', undefined]);
  });

  it("leaves the connection ready for the next request", async () => {
    await using server = await openPort(echo(1000));
    using client = await Http2Client.to(server.origin);
    const refused = Array.from({ length: 20 }, () => client.post("/", big));
    for (const { status } of await Promise.all(refused)) expect(status).toBe(413);
    expect((await client.post("/", "ok")).body).toBe("ok");
  });
});

describe("an answer over HTTP/2", () => {
  it("has a Content-Length, and no Connection header (RFC 9113 §8.2.2)", async () => {
    await using server = await openPort(() => ({ status: 200, headers: json, body: '"ü"' }));
    using client = await Http2Client.to(server.origin);
    const { headers, body } = await client.get("/");
    expect([headers["content-length"], headers["connection"], body]).toEqual(["4", undefined, '"ü"']);
  });

  it("to HEAD has the length but no body, and closes a stream at once (RFC 9110 §9.3.2)", async () => {
    let closed: boolean | undefined;
    await using server = await openPort((request) =>
      request.url === "/"
        ? { status: 200, headers: json, body: "12345" }
        : {
            status: 200,
            headers: {},
            async body(sink) {
              closed = sink.closed;
            },
          },
    );
    using client = await Http2Client.to(server.origin);
    const { headers, body } = await client.get("/", { ":method": "HEAD" });
    expect([headers["content-length"], body]).toEqual(["5", ""]);
    await client.get("/stream", { ":method": "HEAD" });
    expect(closed).toBe(true);
  });

  it.each([204, 304])("of status %i has neither length nor body", async (status) => {
    await using server = await openPort(() => ({ status, headers: { etag: '"x"' } }));
    using client = await Http2Client.to(server.origin);
    const answer = await client.get("/");
    expect([answer.status, answer.headers["content-length"], answer.body]).toEqual([status, undefined, ""]);
  });

  it("does not wait for a request whose body is not read", async () => {
    await using server = await openPort(() => ({ status: 401, headers: json, body: "no" }));
    using client = await Http2Client.to(server.origin);
    const stream = client.begin("/", { ":method": "POST" });
    stream.write("the rest never comes");
    expect((await answerOf(stream)).status).toBe(401);
  });

  it("is a plain 500 if the handler throws, and the cause is only logged", async () => {
    const lines: unknown[] = [];
    const logger: Logger = {
      debug() {},
      info() {},
      warn() {},
      error: (_message, fields) => lines.push(fields?.["cause"]),
    };
    const cause = new Error("postgres://user:secret@host");
    await using server = await openPort(() => Promise.reject(cause), { logger });
    using client = await Http2Client.to(server.origin);
    const { status, body } = await client.get("/");
    expect([status, JSON.parse(body)]).toEqual([
      500,
      { error: { code: 500, status: "INTERNAL", message: "Internal error" } },
    ]);
    expect(lines).toEqual([cause]);
  });

  it("with a line break in a header is rejected", async () => {
    await using server = await openPort(() => ({ status: 200, headers: { "x-evil": "a\r\nset-cookie: b=c" } }));
    using client = await Http2Client.to(server.origin);
    const { status, headers } = await client.get("/");
    expect([status, headers["x-evil"], headers["set-cookie"]]).toEqual([500, undefined, undefined]);
  });

  it("of many megabytes leaves room for others on its connection while its reader pauses", async () => {
    const body = "x".repeat(50_000_000);
    await using server = await openPort((request) => ({
      status: 200,
      headers: json,
      body: request.url === "/big" ? body : "small",
    }));
    using client = await Http2Client.to(server.origin);
    const big = client.begin("/big", {}, "");
    const answer = answerOf(big);
    await new Promise((resolve) => big.on("response", resolve));
    big.pause();
    expect((await client.get("/")).body).toBe("small");
    big.resume();
    expect((await answer).body.length).toBe(body.length);
  });

  it("that nobody reads is aborted", async () => {
    await using server = await openPort(() => ({ status: 200, headers: json, body: "x".repeat(50_000_000) }), {
      stallTimeout: 100,
    });
    using client = await Http2Client.to(server.origin);
    await expect(
      new Promise((resolve) => {
        const stream = client.begin("/", {}, "");
        stream.on("response", () => stream.pause());
        stream.on("error", resolve);
      }),
    ).resolves.toMatchObject({ code: "ERR_HTTP2_STREAM_ERROR" });
  });
});

describe("the signal of a request over HTTP/2", () => {
  const waiting = (): { handle: UniversalHandler; arrived: Promise<void>; aborted: Promise<void> } => {
    const arrived = deferred();
    const aborted = deferred();
    const handle: UniversalHandler = (request: UniversalRequest) => {
      request.signal.addEventListener("abort", () => aborted.resolve());
      arrived.resolve();
      return new Promise(() => {});
    };
    return { handle, arrived: arrived.promise, aborted: aborted.promise };
  };

  it("is aborted when the client cancels the stream", async () => {
    const { handle, arrived, aborted } = waiting();
    await using server = await openPort(handle);
    using client = await Http2Client.to(server.origin);
    const stream = client.begin("/", {}, "");
    await arrived;
    stream.close(constants.NGHTTP2_CANCEL);
    await expect(aborted).resolves.toBeUndefined();
  });

  it("is aborted when the connection is lost", async () => {
    const { handle, arrived, aborted } = waiting();
    await using server = await openPort(handle);
    using client = await RawClient.to(server.port);
    client.socket.write(Buffer.concat([preface, getFrame(1, "/")]));
    await arrived;
    client.socket.destroy();
    await expect(aborted).resolves.toBeUndefined();
  });

  it("is aborted when the client closes its side of the connection", async () => {
    const { handle, arrived, aborted } = waiting();
    await using server = await openPort(handle);
    using client = await RawClient.to(server.port);
    client.socket.write(Buffer.concat([preface, getFrame(1, "/")]));
    await arrived;
    client.socket.end();
    await expect(aborted).resolves.toBeUndefined();
  });

  it("is not aborted when the answer was sent", async () => {
    let signal: AbortSignal | undefined;
    await using server = await openPort((request) => {
      ({ signal } = request);
      return { status: 200, headers: json, body: "{}" };
    });
    {
      using client = await Http2Client.to(server.origin);
      await client.get("/");
    }
    expect(signal?.aborted).toBe(false);
  });
});

describe("a stream over HTTP/2", () => {
  it("sends its headers before the body begins", async () => {
    const go = deferred();
    await using server = await openPort(() => ({
      status: 200,
      headers: { "content-type": "text/event-stream" },
      async body(sink) {
        await go.promise;
        sink.write("data: 1\n\n");
      },
    }));
    using client = await Http2Client.to(server.origin);
    const stream = client.begin("/", {}, "");
    const answer = answerOf(stream);
    await new Promise((resolve) => stream.on("response", resolve));
    go.resolve();
    expect((await answer).body).toBe("data: 1\n\n");
  });

  it("is aborted when its writer fails, so the client sees that it is incomplete", async () => {
    const fail = deferred();
    await using server = await openPort(() => ({
      status: 200,
      headers: {},
      async body(sink) {
        sink.write("half");
        await fail.promise;
        throw new Error("store lost");
      },
    }));
    using client = await Http2Client.to(server.origin);
    const stream = client.begin("/", {}, "");
    await textUntil(stream, (text) => text === "half");
    const answer = answerOf(stream);
    fail.resolve();
    await expect(answer).rejects.toThrow("INTERNAL_ERROR");
  });

  it("is closed when its reader leaves", async () => {
    const gone = deferred<Sink>();
    await using server = await openPort(() => ({
      status: 200,
      headers: {},
      body: (sink) =>
        new Promise((resolve) => {
          sink.write("hello");
          sink.onClose(() => {
            gone.resolve(sink);
            resolve();
          });
        }),
    }));
    using client = await Http2Client.to(server.origin);
    const stream = client.begin("/", {}, "");
    await textUntil(stream, (text) => text === "hello");
    stream.close(constants.NGHTTP2_CANCEL);
    const sink = await gone.promise;
    expect([sink.closed, sink.write("more")]).toEqual([true, false]);
    await sink.ready();
  });

  it("waits for a slow reader with little memory, and is aborted if the reader takes nothing", async () => {
    const chunk = "x".repeat(1024);
    let written = 0;
    const over = deferred();
    await using server = await openPort(
      () => ({
        status: 200,
        headers: {},
        async body(sink) {
          while (!sink.closed) {
            written += chunk.length;
            if (!sink.write(chunk)) await sink.ready();
          }
          over.resolve();
        },
      }),
      { stallTimeout: 100 },
    );
    using client = await Http2Client.to(server.origin);
    const stream = client.begin("/", {}, "");
    stream.on("response", () => stream.pause());
    await over.promise;
    // The limit covers the client's window, and Node's buffers on both sides.
    expect(written).toBeLessThan(1024 * 1024);
  });

  it("does not delay others on its connection while its reader pauses", async () => {
    await using server = await openPort((request) =>
      request.url === "/"
        ? { status: 200, headers: json, body: "{}" }
        : {
            status: 200,
            headers: {},
            async body(sink) {
              while (!sink.closed) if (!sink.write("x".repeat(1024))) await sink.ready();
            },
          },
    );
    using client = await Http2Client.to(server.origin);
    const slow = client.begin("/stream", {}, "");
    await new Promise((resolve) => slow.on("response", resolve));
    slow.pause();
    for (let at = 0; at < 100; at++) expect((await client.get("/")).body).toBe("{}");
  });

  it("continues when a slow reader reads again", async () => {
    const total = 20_000;
    await using server = await openPort(() => ({
      status: 200,
      headers: {},
      async body(sink) {
        for (let line = 0; line < total; line++) if (!sink.write(`${"x".repeat(999)}\n`)) await sink.ready();
      },
    }));
    using client = await Http2Client.to(server.origin);
    const stream = client.begin("/", {}, "");
    const answer = answerOf(stream);
    await new Promise((resolve) => stream.on("response", resolve));
    stream.pause();
    await client.get("/", { ":method": "HEAD" });
    stream.resume();
    expect((await answer).body.length).toBe(total * 1000);
  });

  it("is not aborted while it is quiet", async () => {
    const go = deferred();
    await using server = await openPort(
      () => ({
        status: 200,
        headers: {},
        async body(sink) {
          sink.write("a");
          await go.promise;
          sink.write("b");
        },
      }),
      { stallTimeout: 20 },
    );
    const idle = deferred();
    using client = await Http2Client.to(server.origin);
    const stream = client.begin("/", {}, "");
    const answer = answerOf(stream);
    stream.setTimeout(60, () => idle.resolve());
    await idle.promise;
    go.resolve();
    expect((await answer).body).toBe("ab");
  });
});

describe("a session", () => {
  it("that is idle gets GOAWAY, and is closed even if its client does not answer", async () => {
    await using server = await openPort(echo(), { keepAliveTimeout: 50, headersTimeout: 50 });
    using client = await RawClient.to(server.port);
    client.socket.write(preface);
    expect(await client.ended()).toContain(goaway);
  });

  it("that is quiet with an open stream gets a ping, and stays open if its client answers", async () => {
    const go = deferred();
    await using server = await openPort(
      async () => {
        await go.promise;
        return { status: 200, headers: json, body: "late" };
      },
      { keepAliveTimeout: 50, headersTimeout: 5_000 },
    );
    using client = await Http2Client.to(server.origin);
    const answer = client.get("/");
    for (let pings = 0; pings < 3; pings++) await new Promise((resolve) => client.session.once("ping", resolve));
    go.resolve();
    expect((await answer).body).toBe("late");
  });

  it("whose client has vanished is closed, and so is its open stream", async () => {
    const aborted = deferred();
    await using server = await openPort(
      (request) => {
        request.signal.addEventListener("abort", () => aborted.resolve());
        return new Promise(() => {});
      },
      { keepAliveTimeout: 50, headersTimeout: 50 },
    );
    using client = await RawClient.to(server.port);
    client.socket.write(Buffer.concat([preface, frame(4, 1, 0), getFrame(1, "/")]));
    await aborted.promise;
    await client.ended();
  });
});

describe("a flood over HTTP/2", () => {
  it("of streams is limited to the number in the settings", async () => {
    await using server = await openPort(() => new Promise(() => {}));
    using client = await Http2Client.to(server.origin);
    await vi.waitFor(() => expect(client.session.remoteSettings.maxConcurrentStreams).toBe(1000));
    using raw = await RawClient.to(server.port);
    const streams = Array.from({ length: 1200 }, (_, at) => getFrame(2 * at + 1, "/"));
    raw.socket.write(Buffer.concat([preface, frame(4, 1, 0), ...streams]));
    // The server sends RST_STREAM with REFUSED_STREAM or, if there are too many streams, ends the connection.
    await raw.until((text) => text.includes("\u0000\u0000\u0004\u0003") || anyGoaway.test(text));
  });

  it.each([
    ["pings", 6, (at: number) => frame(6, 0, 0, Buffer.alloc(8, at))],
    ["settings", 4, () => frame(4, 0, 0)],
  ])("of %s ends the connection of a client that reads nothing", async (_name, _type, one) => {
    await using server = await openPort(echo());
    using client = await RawClient.to(server.port);
    client.socket.pause();
    client.socket.write(preface);
    const flood = Buffer.concat(Array.from({ length: 5_000 }, (_, at) => one(at)));
    for (let round = 0; round < 400 && !client.socket.destroyed; round++) {
      if (!client.socket.write(flood)) await Promise.race([once(client.socket, "drain"), once(client.socket, "close")]);
    }
    client.socket.resume();
    await client.ended();
  });

  it("of streams that are reset at once ends the connection (rapid reset)", async () => {
    // nghttp2 sends the GOAWAY, and the connection ends when its timeout expires.
    await using server = await openPort(() => new Promise(() => {}), { keepAliveTimeout: 500, headersTimeout: 500 });
    using client = await RawClient.to(server.port);
    client.socket.write(Buffer.concat([preface, frame(4, 1, 0)]));
    for (let at = 0; at < 5_000 && !client.closed; at++) {
      const id = 2 * at + 1;
      client.socket.write(Buffer.concat([getFrame(id, "/"), frame(3, 0, id, Buffer.of(0, 0, 0, 8))]));
      if (at % 100 === 0) await new Promise(setImmediate);
    }
    expect(await client.ended()).toContain(goaway);
  });

  it("of headers is rejected", async () => {
    await using server = await openPort(echo());
    using client = await Http2Client.to(server.origin);
    const headers = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`x-${at}`, "v"]));
    await expect(client.get("/", headers)).rejects.toThrow("ENHANCE_YOUR_CALM");
    expect((await client.get("/", { authorization: "v".repeat(8_000) })).status).toBe(200);
  });
});

function once(socket: RawClient["socket"], event: string): Promise<void> {
  return new Promise((resolve) => socket.once(event, () => resolve()));
}

describe("HTTP/2 of another server", () => {
  it("may use the listener for node:http", async () => {
    const server = createHttp2(nodeListener(echo(1000)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      using client = await Http2Client.to(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      expect((await client.post("/", "over a mount")).body).toBe("over a mount");
      expect((await client.post("/", "x".repeat(2000))).status).toBe(413);
    } finally {
      server.close();
    }
  });

  it("may be that of Fastify", async () => {
    const app = fastify({ http2: true });
    const handler = { answers: (url: string) => url.startsWith("/agents"), handle: echo(1000) };
    await app.register(fastifyMount(handler), { prefix: "/agents" });
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    try {
      using client = await Http2Client.to(url);
      expect((await client.post("/agents/x", "over Fastify")).body).toBe("over Fastify");
      expect((await client.get("/other")).status).toBe(404);
    } finally {
      await app.close();
    }
  });
});
