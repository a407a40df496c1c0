import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { guardedFetch, type Dialer } from "@parley/a2a/protocol";
import type { ResolvedAddress } from "@parley/a2a/internal/net/index";
import { nodeDialer, type DialerOptions } from "../src/client/dialer.ts";
import { certificateFor } from "./support/certificate.ts";

const here: ResolvedAddress = { address: "127.0.0.1", family: 4 };

/** Starts a server that tracks its connections. */
async function listen<T extends Server | ReturnType<typeof createTcpServer>>(server: T, host = "127.0.0.1") {
  const open = new Set<Socket>();
  let accepted = 0;
  server.on("connection", (socket: Socket) => {
    accepted++;
    open.add(socket);
    socket.on("close", () => open.delete(socket));
  });
  server.listen(0, host);
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, open, accepted: () => accepted };
}

const answering: RequestListener = (request, response) => {
  // Sets a content length, because otherwise Node closes the connection after a response to HEAD.
  request.resume().on("end", () => response.writeHead(200, { "content-length": 2 }).end("{}"));
};

/** Creates a function that calls through a dialer, which resolves every name to `addresses`. */
function calling(addresses: readonly ResolvedAddress[] = [here], options: DialerOptions = {}) {
  const resolve: Dialer["resolve"] = async () => addresses;
  const fetch = guardedFetch({ allowPrivate: true }, nodeDialer({ resolve, idleTimeout: 60_000, ...options }));
  return async (url: string, init?: Parameters<typeof fetch>[1]) => {
    const answer = await fetch(url, init);
    return `${answer.status} ${await answer.text()}`;
  };
}

describe("a connection of the Node dialer", () => {
  it.each<[string, string, RequestListener]>([
    ["an answer with a body", "200 {}", answering],
    ["204", "204 ", (_request, response) => response.writeHead(204).end()],
    ["an empty answer", "202 ", (_request, response) => response.writeHead(202).end()],
  ])("is reused for the same origin at the same addresses, after %s", async (_what, expected, listener) => {
    const server = await listen(createServer(listener));
    const call = calling();
    for (let at = 0; at < 3; at++) {
      expect(await call(`http://a.example:${server.port}/${at}`, { method: "POST", body: "{}" })).toBe(expected);
    }
    expect(server.accepted()).toBe(1);
  });

  it("is not reused if the name now resolves to another set of addresses", async () => {
    const server = await listen(
      createServer((request, response) => response.end(request.socket.localAddress)),
      "0.0.0.0",
    );
    const other: ResolvedAddress = { address: "127.0.0.2", family: 4 };
    const sets = [[here], [other], [here], [here, other], [other, here]];
    const fetch = guardedFetch(
      { allowPrivate: true },
      nodeDialer({ resolve: async () => sets.shift() ?? [], idleTimeout: 60_000 }),
    );
    const reached: string[] = [];
    while (sets.length > 0) reached.push(await (await fetch(`http://a.example:${server.port}/`)).text());
    // The order of the addresses does not matter.
    expect([reached.slice(0, 3), server.accepted()]).toEqual([["127.0.0.1", "127.0.0.2", "127.0.0.1"], 3]);
  });

  it("is not reused for another name or another port at the same address", async () => {
    const [one, two] = [await listen(createServer(answering)), await listen(createServer(answering))];
    const call = calling();
    for (const name of ["a", "b", "a", "b"]) await call(`http://${name}.example:${one.port}/`);
    await call(`http://a.example:${two.port}/`);
    expect([one.accepted(), two.accepted()]).toEqual([2, 1]);
  });

  it("is not shared by dialers with different TLS options, such as client certificates", async () => {
    const [certificate, client] = [await certificateFor("a.example"), await certificateFor("sender.example")];
    const tls = createTlsServer({ ...certificate, ca: client.cert, requestCert: true, rejectUnauthorized: false });
    tls.on("request", (request, response) => {
      response.end(String((request.socket as TLSSocket).getPeerCertificate().subject?.CN));
    });
    const server = await listen(tls);
    const withCertificate = calling([here], { tls: { ca: certificate.cert, ...client } });
    const without = calling([here], { tls: { ca: certificate.cert } });
    const url = `https://a.example:${server.port}/`;
    const names: string[] = [];
    for (const call of [withCertificate, without, withCertificate, without]) names.push(await call(url));
    const [known, unknown] = ["200 sender.example", "200 undefined"];
    expect([names, server.accepted()]).toEqual([[known, unknown, known, unknown], 2]);
  });

  it("ends when it is idle for long, and few are kept for the same origin", async () => {
    const waiting: (() => void)[] = [];
    const server = await listen(
      createServer((_request, response) => {
        waiting.push(() => response.end("{}"));
        if (waiting.length === 40) for (const answer of waiting) answer();
      }),
    );
    const call = calling([here], { idleTimeout: 300 });
    await Promise.all(Array.from({ length: 40 }, () => call(`http://a.example:${server.port}/`)));
    await vi.waitFor(() => expect(server.open.size).toBeLessThanOrEqual(16), { timeout: 60_000, interval: 1 });
    await vi.waitFor(() => expect(server.open.size).toBe(0), { timeout: 60_000, interval: 5 });
  });

  it("is one of at most 256, however many origins there are", async () => {
    const waiting: (() => void)[] = [];
    const server = await listen(
      createServer({ keepAliveTimeout: 0 }, (_request, response) => {
        waiting.push(() => response.end("{}"));
        if (waiting.length === 300) for (const answer of waiting) answer();
      }),
    );
    const call = calling();
    await Promise.all(Array.from({ length: 300 }, (_, at) => call(`http://n${at}.example:${server.port}/`)));
    await vi.waitFor(() => expect(server.open.size).toBe(256), { timeout: 60_000, interval: 5 });
  });

  it("does not keep the process alive while it is idle", async () => {
    const server = await listen(createServer(answering));
    const program = `
      import { nodeDialer } from ${JSON.stringify(new URL("../dist/index.js", import.meta.url).href)};
      const dialer = nodeDialer({ idleTimeout: 86_400_000 });
      const url = new URL("http://127.0.0.1:${server.port}/");
      const answer = await dialer.fetch(url, [{ address: "127.0.0.1", family: 4 }], {});
      console.log(await answer.text());`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", program]);
    const [code] = (await once(child, "exit")) as [number];
    expect([code, server.accepted()]).toEqual([0, 1]);
  });

  it("is not reused by a dialer that keeps none", async () => {
    const server = await listen(createServer(answering));
    const call = calling([here], { idleTimeout: 0 });
    for (let at = 0; at < 3; at++) await call(`http://a.example:${server.port}/`);
    expect(server.accepted()).toBe(3);
  });

  it("is not reused when its body was not read to the end", async () => {
    const server = await listen(createServer((_request, response) => response.end("x".repeat(1 << 22))));
    const resolve: Dialer["resolve"] = async () => [here];
    const fetch = guardedFetch({ allowPrivate: true, maxBytes: 1 << 23 }, nodeDialer({ resolve }));
    for (let at = 0; at < 2; at++) await (await fetch(`http://a.example:${server.port}/`)).body?.cancel();
    await vi.waitFor(() => expect([server.accepted(), server.open.size]).toEqual([2, 0]), { timeout: 60_000 });
  });
});

describe("a server that closes a kept connection when the next request arrives", () => {
  /** Starts a server that answers the first request of each connection, and passes the second request to `last`. Returns the received methods. */
  async function closing(last: (socket: Socket) => unknown) {
    const got: string[] = [];
    const seen = new WeakSet<Socket>();
    let answers = true;
    const server = await listen(
      createServer((request, response) => {
        got.push(request.method ?? "");
        if (!answers || seen.has(request.socket)) return void last(request.socket);
        seen.add(request.socket);
        answering(request, response);
      }),
    );
    return { ...server, got, answerNoMore: () => (answers = false) };
  }

  const codeOf = (work: Promise<unknown>) => work.catch((thrown: unknown) => (thrown as { code?: string }).code);

  it.each(["GET", "HEAD"])(
    "gets a %s again on a new connection, because the method is safe (RFC 9110 §9.2.2)",
    async (method) => {
      const server = await closing((socket) => socket.destroy());
      const call = calling();
      for (let at = 0; at < 2; at++)
        expect(await call(`http://a.example:${server.port}/`, { method })).toMatch(/^200 /);
      expect([server.got, server.accepted()]).toEqual([[method, method, method], 2]);
    },
  );

  it("does not get a POST again, because it may have processed the first", async () => {
    const server = await closing((socket) => socket.destroy());
    const call = calling();
    const url = `http://a.example:${server.port}/`;
    await call(url, { method: "POST", body: "{}" });
    expect(await codeOf(call(url, { method: "POST", body: "{}" }))).toBe("ConnectionFailed");
    expect(server.got).toEqual(["POST", "POST"]);
    // If the caller repeats the request, the dialer opens a new connection.
    expect(await call(url, { method: "POST", body: "{}" })).toBe("200 {}");
  });

  it("does not get a GET again after the first byte of an answer", async () => {
    const server = await closing((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Le"));
    const call = calling();
    const url = `http://a.example:${server.port}/`;
    await call(url);
    expect(await codeOf(call(url))).toBe("ConnectionFailed");
    expect(server.got).toEqual(["GET", "GET"]);
  });

  it("gets a GET again over TLS too", async () => {
    const certificate = await certificateFor("a.example");
    const seen = new WeakSet<Socket>();
    const tls = createTlsServer(certificate, (request, response) => {
      if (seen.has(request.socket)) return void request.socket.end();
      seen.add(request.socket);
      answering(request, response);
    });
    const server = await listen(tls);
    const call = calling([here], { tls: { ca: certificate.cert } });
    for (let at = 0; at < 2; at++) expect(await call(`https://a.example:${server.port}/`)).toBe("200 {}");
    expect(server.accepted()).toBe(2);
  });

  it("gets a GET again only once", async () => {
    const server = await closing((socket) => socket.destroy());
    const call = calling();
    const url = `http://a.example:${server.port}/`;
    await call(url);
    server.answerNoMore();
    expect(await codeOf(call(url))).toBe("ConnectionFailed");
    expect(server.got).toEqual(["GET", "GET", "GET"]);
  });
});

it("bytes after an answer are never taken for the next answer", async () => {
  const answer = (text: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
  const server = await listen(
    createTcpServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", () => socket.write(answer("right") + answer("wrong")));
    }),
  );
  const call = calling();
  for (let at = 0; at < 3; at++) {
    expect(await call(`http://a.example:${server.port}/`, { method: "POST", body: "{}" })).toBe("200 right");
  }
  expect(server.accepted()).toBe(3);
});
