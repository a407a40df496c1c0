import { request } from "node:http";
import { connect } from "node:net";
import { memoryStore } from "@parley/server";
import { bearer } from "@parley/a2a/auth";
import { frameOf } from "../../grpc/src/frames.ts";
import { encode } from "../../grpc/src/protobuf/encode.ts";
import { serviceV1 } from "../../grpc/src/services.ts";
import { afterEach, describe, expect, it } from "vitest";
import { serve, type ServeOptions, type Server } from "../src/index.ts";
import { echoAgent } from "./support/agents.ts";
import { Http2Client } from "./support/http2.ts";

/** A page must not use this machine's agents when the page's host name resolves to this machine (DNS rebinding). */

const running: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close({ grace: 0 })));
});

async function start(options: ServeOptions = {}): Promise<Server> {
  const server = await serve(echoAgent(), {
    port: 0,
    grpc: true,
    signals: false,
    store: memoryStore(),
    logger: false,
    ...options,
  });
  running.push(server);
  return server;
}

interface Said {
  readonly status: number;
  readonly text: string;
}

type Headers = Readonly<Record<string, string>>;
type Way = (port: number, host: string, headers?: Headers) => Promise<Said>;

function http1(method: string, path: string, body?: string): Way {
  return (port, host, headers = {}) =>
    new Promise((resolve, reject) => {
      const type = body === undefined ? {} : { "content-type": "application/json" };
      const outgoing = request({ port, path, method, headers: { host, ...type, ...headers } }, (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (piece: string) => (text += piece));
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
      });
      outgoing.on("error", reject).end(body);
    });
}

function http2(method: string, path: string, body?: string): Way {
  return async (port, host, headers = {}) => {
    using client = await Http2Client.to(`http://127.0.0.1:${port}`);
    const head = { ":authority": host, ...headers };
    const { status, body: text } =
      body === undefined ? await client.get(path, head) : await client.post(path, body, { ":method": method, ...head });
    return { status, text };
  };
}

const list = serviceV1().operations.get("ListTasks")!;

/** Returns the HTTP status that corresponds to a gRPC response. */
const grpc: Way = async (port, host, headers = {}) => {
  using client = await Http2Client.to(`http://127.0.0.1:${port}`);
  const head = {
    ":method": "POST",
    ":authority": host,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  };
  const stream = client.begin(list.path, head);
  let end: Record<string, unknown> = {};
  stream.on("response", (each) => (end = { ...end, ...each })).on("trailers", (each) => (end = { ...end, ...each }));
  stream.end(frameOf(encode(list.input, {})));
  await new Promise((resolve) => stream.resume().on("close", resolve));
  const message = end["grpc-message"];
  const codes: Readonly<Record<string, number>> = { "0": 200, "7": 403 };
  return {
    status: codes[String(end["grpc-status"])] ?? 0,
    text: decodeURIComponent(typeof message === "string" ? message : ""),
  };
};

const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ListTasks", params: {} });

const ways: Readonly<Record<string, Way>> = {
  "the card over HTTP/1.1": http1("GET", "/.well-known/agent-card.json"),
  "the card over HTTP/2": http2("GET", "/.well-known/agent-card.json"),
  "JSON-RPC over HTTP/1.1": http1("POST", "/", call),
  "JSON-RPC over HTTP/2": http2("POST", "/", call),
  "REST over HTTP/1.1": http1("GET", "/tasks"),
  "REST over HTTP/2": http2("GET", "/tasks"),
  gRPC: grpc,
};

describe.each(Object.entries(ways))("a server on loopback without an authenticator: %s", (name, ask) => {
  it("answers loopback names and the host of its publicUrl, with any port", async () => {
    const { port } = await start({ publicUrl: "https://agents.example.com/" });
    for (const host of [
      `127.0.0.1:${port}`,
      `localhost:${port}`,
      "localhost",
      "LOCALHOST:1",
      "app.localhost:3000",
      "127.1.2.3",
      "[::1]:4000",
      "LOCALHOST:4000",
      "localhost.:4000",
      "AGENTS.example.com.",
      "agents.example.com",
      "agents.example.com:8443",
    ]) {
      expect(await ask(port, host), host).toMatchObject({ status: 200 });
    }
  });

  it("rejects every other host with an error of the binding", async () => {
    const { port } = await start({ publicUrl: "https://agents.example.com/" });
    for (const host of ["evil.example", `evil.example:${port}`, "localhost.evil.example", "127.0.0.1.evil.example"]) {
      const { status, text } = await ask(port, host);
      expect(status, host).toBe(403);
      expect(text).toContain("allowedHosts");
      if (name.startsWith("JSON-RPC"))
        expect(JSON.parse(text)).toMatchObject({ jsonrpc: "2.0", error: { code: -32603 } });
      if (name.startsWith("REST")) expect(JSON.parse(text)).toMatchObject({ error: { status: "PERMISSION_DENIED" } });
    }
  });

  it("rejects pages of other origins that cors does not allow", async () => {
    const { port } = await start({ cors: { origins: ["https://app.example.com"] } });
    const from = async (origin: string): Promise<number> => (await ask(port, `127.0.0.1:${port}`, { origin })).status;
    expect(await from("https://app.example.com")).toBe(200);
    expect(await from("http://localhost:3000")).toBe(200);
    expect(await from("http://evil.example")).toBe(403);
    for (const origin of [
      "null",
      "",
      "file://",
      "https://app.example.com.evil.example",
      "http://localhost@evil.example",
    ])
      expect(await from(origin), origin).toBe(403);
  });

  it("answers the names of allowedHosts, and any name with an asterisk", async () => {
    const named = await start({ allowedHosts: ["agents.internal"] });
    expect(await ask(named.port, "agents.internal:9")).toMatchObject({ status: 200 });
    expect(await ask(named.port, "evil.example")).toMatchObject({ status: 403 });
    const any = await start({ allowedHosts: ["*"] });
    expect(await ask(any.port, "evil.example")).toMatchObject({ status: 200 });
  });
});

it("checks credentials and no host names if there is an authenticator", async () => {
  const { port } = await start({ authenticator: bearer({ good: { subject: "ann" } }) });
  const headers = { authorization: "Bearer good" };
  expect(await ways["REST over HTTP/1.1"]!(port, "proxied.example", headers)).toMatchObject({ status: 200 });
  expect(await ways["gRPC"]!(port, "proxied.example", headers)).toMatchObject({ status: 200 });
});

/** Returns the status of a request with a `Host` header that no client would send. */
function rawStatus(port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(`GET /tasks HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
    );
    let text = "";
    socket.setEncoding("latin1").on("data", (piece: string) => (text += piece));
    socket.on("error", reject).on("close", () => resolve(Number(text.split(" ")[1])));
  });
}

it.each([
  "",
  ":4000",
  "localhost@evil.example",
  "localhost:1@evil.example",
  "a:80:localhost",
  "[::1].evil.example",
  "127.0.0.1:port",
  "localhost/evil.example",
  "evil.example#.localhost",
  "localhost,evil.example",
  "[::1",
  "0.0.0.0",
])("does not accept the host %j as its own (RFC 9110 §7.2)", async (host) => {
  const { port } = await start();
  expect(await rawStatus(port, host)).toBe(403);
});

it("rejects at startup an invalid host name", async () => {
  await expect(start({ allowedHosts: ["http://agents.example"] })).rejects.toThrow(
    /allowedHosts has .* which is not a host/,
  );
});
