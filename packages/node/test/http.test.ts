import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { A2AError } from "@parley/server";
import type { Logger, UniversalHandler } from "@parley/a2a/protocol";
import type { Sink } from "@parley/a2a/internal/protocol/index";
import { deferred, host, RawClient } from "./support/host.ts";

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

/** Reads a response with `node:http`, which shows more details than `fetch`. */
function answerOf(
  url: string,
  options: { method?: string; body?: string; agent?: Agent; headers?: Record<string, string> } = {},
): Promise<{ status: number; message: IncomingMessage; body: string }> {
  return new Promise((resolve, reject) => {
    const { body, ...rest } = options;
    const request = httpRequest(url, rest, (message) => {
      let text = "";
      message.setEncoding("utf8");
      message.on("data", (chunk: string) => (text += chunk));
      message.on("end", () => resolve({ status: message.statusCode ?? 0, message, body: text }));
      message.on("error", reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

describe("a request", () => {
  it("reaches the handler with its target unchanged", async () => {
    const seen: object[] = [];
    await using server = await host((request) => {
      seen.push({ method: request.method, url: request.url, remoteAddress: request.facts?.remoteAddress });
      return { status: 204, headers: {} };
    });
    await fetch(`${server.url}/tasks/a%20b?historyLength=0`, { method: "DELETE" });
    expect(seen).toEqual([{ method: "DELETE", url: "/tasks/a%20b?historyLength=0", remoteAddress: "127.0.0.1" }]);
  });

  it.each([
    ["GET http://elsewhere.example/tasks?x=1", "/tasks?x=1"],
    ["OPTIONS *", "/"],
    ["GET //double/path", "//double/path"],
  ])("with the request line %s has a path (RFC 9112 §3.2)", async (line, expected) => {
    await using server = await host((request) => ({ status: 200, headers: json, body: request.url }));
    using client = await RawClient.to(server.port);
    client.socket.write(`${line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    const [, body] = (await client.ended()).split("\r\n\r\n");
    expect(body).toBe(expected);
  });

  it("has repeated headers joined by commas", async () => {
    await using server = await host((request) => ({
      status: 200,
      headers: json,
      body: `${request.header("a2a-extensions")}|${request.header("a2a-version")}`,
    }));
    using client = await RawClient.to(server.port);
    client.socket.write(
      "GET / HTTP/1.1\r\nHost: a\r\nA2A-Extensions: x\r\nA2A-EXTENSIONS: y\r\nConnection: close\r\n\r\n",
    );
    expect(await client.ended()).toContain("x, y|undefined");
  });

  it("has its body as text, in pieces of any size", async () => {
    await using server = await host(echo());
    using client = await RawClient.to(server.port);
    const bytes = Buffer.from("grüße 🦜", "utf8");
    client.socket.write(`POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${bytes.length}\r\n\r\n`);
    for (const byte of bytes) {
      client.socket.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    const [, body] = (await client.ended()).split("\r\n\r\n");
    expect(Buffer.from(body ?? "", "latin1").toString("utf8")).toBe("grüße 🦜");
  });

  it("has a body without a byte order mark (RFC 8259 §8.1)", async () => {
    await using server = await host(echo());
    expect(await (await fetch(server.url, { method: "POST", body: "\ufeff{}" })).text()).toBe("{}");
  });

  it("without a body has an empty text", async () => {
    await using server = await host(echo());
    expect(await (await fetch(server.url)).text()).toBe("");
  });

  it("whose body is not UTF-8 is a parse error", async () => {
    await using server = await host(echo());
    const answer = await fetch(server.url, { method: "POST", body: Buffer.of(0x22, 0xff, 0x22) });
    expect([answer.status, await answer.json()]).toEqual([400, "ParseError"]);
  });
});

describe("a body over the limit", () => {
  const big = "x".repeat(4_000_000);

  it("is rejected by its announced length before it is read, and the client gets the answer", async () => {
    await using server = await host(echo(1000));
    const { status, body, message } = await answerOf(server.url, {
      method: "POST",
      body: big,
      headers: { "content-length": String(big.length) },
    });
    expect([status, body, message.headers.connection]).toEqual([413, '"RequestTooLarge"', "close"]);
  });

  it("is rejected while it is read if no length was announced", async () => {
    await using server = await host(echo(1000));
    using client = await RawClient.to(server.port);
    client.socket.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    const chunk = `400\r\n${"x".repeat(1024)}\r\n`;
    client.socket.write(chunk);
    // The rest of the body never arrives, and the response does not wait for the rest.
    const text = await client.until((seen) => seen.includes('"RequestTooLarge"'));
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
    expect(text.toLowerCase()).toContain("connection: close");
  });

  it("leaves the server ready for the next client", async () => {
    await using server = await host(echo(1000));
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const { status } = await answerOf(server.url, { method: "POST", body: big });
        expect(status).toBe(413);
      }),
    );
    expect(await (await fetch(server.url, { method: "POST", body: "ok" })).text()).toBe("ok");
  });

  it("of a client that disconnects in the middle is not a server error", async () => {
    const told = deferred<string>();
    await using server = await host(async (request) => {
      const code = await request.text(1000).catch((error: unknown) => (error as A2AError).code);
      told.resolve(code);
      return { status: 400, headers: {} };
    });
    using client = await RawClient.to(server.port);
    client.socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc");
    await new Promise((resolve) => server.server.once("request", resolve));
    client.socket.destroy();
    expect(await told.promise).toBe("InvalidRequest");
  });
});

describe("an answer", () => {
  it("has a Content-Length, and keeps the connection", async () => {
    await using server = await host(() => ({ status: 200, headers: json, body: '"ü"' }));
    const agent = new Agent({ keepAlive: true });
    const first = await answerOf(server.url, { agent });
    const second = await answerOf(server.url, { agent });
    agent.destroy();
    expect(first.message.headers["content-length"]).toBe("4");
    expect(second.message.socket).toBe(first.message.socket);
  });

  it("to HEAD has the length but no body (RFC 9110 §9.3.2)", async () => {
    await using server = await host(() => ({ status: 200, headers: json, body: "12345" }));
    const { message, body } = await answerOf(server.url, { method: "HEAD" });
    expect([message.headers["content-length"], body]).toEqual(["5", ""]);
  });

  it("to HEAD closes a stream at once", async () => {
    let closed: boolean | undefined;
    await using server = await host(() => ({
      status: 200,
      headers: {},
      async body(sink) {
        closed = sink.closed;
      },
    }));
    await answerOf(server.url, { method: "HEAD" });
    expect(closed).toBe(true);
  });

  it.each([204, 304])("of status %i has neither length nor body", async (status) => {
    await using server = await host(() => ({ status, headers: { etag: '"x"' } }));
    const { message, body } = await answerOf(server.url);
    expect([message.statusCode, message.headers["content-length"], body]).toEqual([status, undefined, ""]);
  });

  it("keeps the connection when a short body was left unread", async () => {
    await using server = await host(() => ({ status: 401, headers: json, body: "no" }));
    const { message } = await answerOf(server.url, { method: "POST", body: "unread" });
    expect(message.headers.connection).toBe("keep-alive");
  });

  it("comes in the order of pipelined requests", async () => {
    const slow = deferred();
    await using server = await host(async (request) => {
      if (request.url === "/1") await slow.promise;
      else slow.resolve();
      return { status: 200, headers: json, body: `<${request.url}>` };
    });
    using client = await RawClient.to(server.port);
    client.socket.write("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    const text = await client.until((seen) => seen.includes("</2>"));
    expect(text.indexOf("</1>")).toBeLessThan(text.indexOf("</2>"));
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
    await using server = await host(() => Promise.reject(cause), { logger });
    const answer = await fetch(server.url);
    expect([answer.status, await answer.json()]).toEqual([
      500,
      { error: { code: 500, status: "INTERNAL", message: "Internal error" } },
    ]);
    expect(lines).toEqual([cause]);
  });

  it("with a line break in a header is rejected", async () => {
    await using server = await host(() => ({ status: 200, headers: { "x-evil": "a\r\nset-cookie: b=c" } }));
    const answer = await fetch(server.url);
    expect([answer.status, answer.headers.get("set-cookie")]).toEqual([500, null]);
  });
});

describe("a stream that cannot begin", () => {
  it("calls its writer, which releases its resources", async () => {
    const told = deferred<Sink>();
    await using server = await host(() => ({
      status: 200,
      headers: { "x-broken": "a\r\nb" },
      async body(sink) {
        sink.onClose(() => told.resolve(sink));
        if (!sink.write("a")) await sink.ready();
      },
    }));
    expect((await answerOf(server.url)).status).toBe(500);
    expect((await told.promise).closed).toBe(true);
  });
});

describe("the signal of a request", () => {
  it("is aborted when the client disconnects", async () => {
    const aborted = deferred();
    const arrived = deferred();
    await using server = await host((request) => {
      request.signal.addEventListener("abort", () => aborted.resolve());
      arrived.resolve();
      return new Promise(() => {});
    });
    using client = await RawClient.to(server.port);
    client.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await arrived.promise;
    client.socket.destroy();
    await expect(aborted.promise).resolves.toBeUndefined();
  });

  it("is aborted for all requests that wait behind another one on their connection", async () => {
    const count = 30;
    let arrived = 0;
    let aborted = 0;
    const all = deferred();
    const gone = deferred();
    await using server = await host((request) => {
      request.signal.addEventListener("abort", () => ++aborted === count && gone.resolve());
      if (++arrived === count) all.resolve();
      return new Promise(() => {});
    });
    using client = await RawClient.to(server.port);
    client.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(count));
    await all.promise;
    client.socket.destroy();
    await expect(gone.promise).resolves.toBeUndefined();
  });

  it("is not aborted when the answer was sent", async () => {
    let signal: AbortSignal | undefined;
    await using server = await host((request) => {
      ({ signal } = request);
      return { status: 200, headers: json, body: "{}" };
    });
    using client = await RawClient.to(server.port);
    client.socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    await client.ended();
    expect(signal?.aborted).toBe(false);
  });
});

describe("a stream", () => {
  it("sends its headers before the body begins", async () => {
    const go = deferred();
    await using server = await host(() => ({
      status: 200,
      headers: { "content-type": "text/event-stream" },
      async body(sink) {
        await go.promise;
        sink.write("data: 1\n\n");
      },
    }));
    const answer = await fetch(server.url);
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    go.resolve();
    expect(await answer.text()).toBe("data: 1\n\n");
  });

  it("is aborted when its writer fails, so the client sees that it is incomplete", async () => {
    const fail = deferred();
    await using server = await host(() => ({
      status: 200,
      headers: {},
      async body(sink) {
        sink.write("half");
        await fail.promise;
        throw new Error("store lost");
      },
    }));
    const answer = await fetch(server.url);
    fail.resolve();
    await expect(answer.text()).rejects.toThrow("terminated");
  });

  it("is closed when its reader leaves", async () => {
    const gone = deferred<Sink>();
    await using server = await host(() => ({
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
    using client = await RawClient.to(server.port);
    client.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.until((text) => text.includes("hello"));
    client.socket.destroy();
    const sink = await gone.promise;
    expect([sink.closed, sink.write("more")]).toEqual([true, false]);
    await sink.ready();
    let again = false;
    sink.onClose(() => (again = true));
    expect(again).toBe(true);
  });

  it("waits for a slow reader with little memory, and is aborted if the reader takes nothing", async () => {
    const chunk = "x".repeat(1024);
    let written = 0;
    let fullest = 0;
    const over = deferred();
    await using server = await host(
      (_request) => ({
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
    server.server.on("request", (_incoming, response) => {
      const look = setInterval(() => (fullest = Math.max(fullest, response.writableLength)), 5);
      response.on("close", () => clearInterval(look));
    });
    using client = await RawClient.to(server.port);
    client.socket.pause();
    client.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await over.promise;
    // The limit covers the kernel's buffers, and at most the high-water mark in this process.
    expect(written).toBeLessThan(32 * 1024 * 1024);
    expect(fullest).toBeLessThan(256 * 1024);
  });

  it("is not closed while it is quiet", async () => {
    const go = deferred();
    await using server = await host(
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
    server.server.on("request", (_incoming, response) => response.on("timeout", () => idle.resolve()));
    const answer = await fetch(server.url);
    await idle.promise;
    go.resolve();
    expect(await answer.text()).toBe("ab");
  });

  it("continues when a slow reader reads again", async () => {
    const total = 20_000;
    await using server = await host(() => ({
      status: 200,
      headers: {},
      async body(sink) {
        for (let line = 0; line < total; line++) if (!sink.write(`${"x".repeat(999)}\n`)) await sink.ready();
      },
    }));
    const answer = await fetch(server.url);
    const text = await answer.text();
    expect(text.length).toBe(total * 1000);
  });

  it("on a pipelined connection that is lost before its turn is closed, too", async () => {
    const gone = deferred();
    const ready = deferred();
    await using server = await host((request) =>
      request.url === "/first"
        ? new Promise(() => {})
        : {
            status: 200,
            headers: {},
            body: (sink) =>
              new Promise((resolve) => {
                sink.write("x");
                ready.resolve();
                sink.onClose(() => {
                  gone.resolve();
                  resolve();
                });
              }),
          },
    );
    using client = await RawClient.to(server.port);
    client.socket.write("GET /first HTTP/1.1\r\nHost: a\r\n\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\n");
    await ready.promise;
    client.socket.destroy();
    await expect(gone.promise).resolves.toBeUndefined();
  });
});

describe("a large answer", () => {
  it("that nobody reads is aborted", async () => {
    await using server = await host(() => ({ status: 200, headers: json, body: "x".repeat(50_000_000) }), {
      stallTimeout: 100,
    });
    const closed = new Promise<void>((resolve) => {
      server.server.on("request", (_incoming, response) => response.on("close", resolve));
    });
    using client = await RawClient.to(server.port);
    client.socket.pause();
    client.socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await expect(closed).resolves.toBeUndefined();
  });
});
