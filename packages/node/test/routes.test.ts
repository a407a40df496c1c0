import { request as httpRequest } from "node:http";
import { memoryStore, silentLogger } from "@parley/server";
import type { Logger } from "@parley/a2a/protocol";
import { bearer } from "@parley/a2a/auth";
import { connect } from "@parley/a2a";
import { grpcBinding } from "@parley/grpc/client";
import { Hono } from "hono";
import { afterEach, describe, expect, it } from "vitest";
import { serve, type ServeOptions, type Server } from "../src/index.ts";
import { echoAgent } from "./support/agents.ts";
import { deferred, RawClient } from "./support/host.ts";
import { Http2Client } from "./support/http2.ts";

/* Tests an application's routes on the port of its agents. */

const running: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close({ grace: 0 })));
});

async function start(routes: NonNullable<ServeOptions["routes"]>, options: ServeOptions = {}): Promise<Server> {
  const common = { port: 0, grpc: true, signals: false, logger: false, store: memoryStore(), routes } as const;
  const server = await serve(echoAgent(), { ...common, ...options });
  running.push(server);
  return server;
}

/** Echoes requests, as an application. */
const mirror = async (request: Request): Promise<Response | undefined> => {
  const { method, url, headers } = request;
  if (new URL(url).pathname.startsWith("/none")) return undefined;
  return Response.json({ method, url, body: await request.text(), mine: headers.get("x-mine") }, { status: 201 });
};

describe("an application's routes", () => {
  it("answer requests for no agent, over HTTP/1.1 and HTTP/2", async () => {
    const server = await start(mirror);
    const answer = await fetch(`${server.url}/own/a%20b?x=1`, {
      method: "PUT",
      body: "ä body",
      headers: { "x-mine": "yes" },
    });
    expect([answer.status, await answer.json()]).toEqual([
      201,
      { method: "PUT", url: `${server.url}/own/a%20b?x=1`, body: "ä body", mine: "yes" },
    ]);
    using client = await Http2Client.to(server.url);
    const { status, body } = await client.post("/own", "over 2", { "x-mine": "too" });
    expect([status, JSON.parse(body)]).toEqual([
      201,
      { method: "POST", url: `${server.url}/own`, body: "over 2", mine: "too" },
    ]);
  });

  it("are not called for agents: cards, calls, streams, gRPC, probes and unknown methods of theirs", async () => {
    const asked: string[] = [];
    const server = await start((request) => {
      asked.push(new URL(request.url).pathname);
      return undefined;
    });
    const client = await connect(server.url);
    await client.sendMessage("x");
    const grpc = await connect(server.agents[0]?.card ?? "", { bindings: [grpcBinding()], binding: "GRPC" });
    expect((await grpc.sendMessage("x")).task?.status.state).toBe("TASK_STATE_COMPLETED");
    for (const path of ["/", "/tasks", "/tasks/1", "/healthz", "/readyz"]) await fetch(server.url + path);
    await fetch(`${server.url}/tasks`, { method: "DELETE" });
    expect(asked).toEqual([]);
    const unknown = await fetch(`${server.url}/unknown`);
    expect([unknown.status, asked]).toEqual([404, ["/unknown"]]);
  });

  it("may be a whole application, such as one of Hono, with cookies and streams", async () => {
    const app = new Hono();
    app.get("/app/cookies", (context) => {
      context.header("set-cookie", "a=1; Path=/", { append: true });
      context.header("set-cookie", "b=2, c", { append: true });
      return context.body(null, 204);
    });
    app.get("/app/stream", () => {
      const encoder = new TextEncoder();
      const source = (async function* () {
        for (let at = 0; at < 3; at += 1) yield encoder.encode(`${at}`.repeat(100_000));
      })();
      return new Response(ReadableStream.from(source) as ReadableStream);
    });
    const server = await start((request) => app.fetch(request));
    const cookies = await fetch(`${server.url}/app/cookies`);
    expect([cookies.status, cookies.headers.getSetCookie()]).toEqual([204, ["a=1; Path=/", "b=2, c"]]);
    const text = await (await fetch(`${server.url}/app/stream`)).text();
    expect(text).toBe("0".repeat(100_000) + "1".repeat(100_000) + "2".repeat(100_000));
    using client = await Http2Client.to(server.url);
    expect((await client.get("/app/stream")).body.length).toBe(300_000);
    expect((await fetch(`${server.url}/app/stream`, { method: "HEAD" })).status).toBe(200);
  });

  it("learn when their client disconnects, by the signal and by the stream", async () => {
    const left = deferred();
    const canceled = deferred();
    const server = await start((request) => {
      request.signal.addEventListener("abort", () => left.resolve());
      return new Response(
        new ReadableStream({
          start: (controller) => controller.enqueue(new TextEncoder().encode("begun")),
          cancel: () => canceled.resolve(),
        }),
      );
    });
    using client = await RawClient.to(server.port);
    client.socket.write("GET /own HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await client.until((text) => text.includes("begun"));
    client.socket.destroy();
    await Promise.all([left.promise, canceled.promise]);
  });

  it("get the client's address from the server, not from a header", async () => {
    const server = await start((_request, { remoteAddress, secure }) => Response.json({ remoteAddress, secure }));
    const answer = await fetch(`${server.url}/own`, { headers: { "x-forwarded-for": "192.0.2.1" } });
    expect(await answer.json()).toEqual({ remoteAddress: "127.0.0.1", secure: false });
  });
});

/** Returns the status of a request with an arbitrary `Host` header. */
const withHost = (server: Server, host: string, headers: Readonly<Record<string, string>> = {}): Promise<unknown> =>
  new Promise((resolve, reject) => {
    httpRequest({ port: server.port, host: "127.0.0.1", path: "/own", headers: { host, ...headers } }, (answer) => {
      answer.resume().on("end", () => resolve(answer.statusCode));
    })
      .on("error", reject)
      .end();
  });

describe("the server's rules hold for an application's routes", () => {
  it("hosts and pages that may not call the agents may not call them either (DNS rebinding)", async () => {
    let asked = 0;
    const server = await start((request) => {
      asked += 1;
      return new Response(request.url);
    });
    expect(await withHost(server, "evil.example")).toBe(403);
    expect(await withHost(server, "127.0.0.1", { origin: "https://evil.example" })).toBe(403);
    expect(asked).toBe(0);
    expect(await withHost(server, `localhost:${server.port}`)).toBe(200);
  });

  it("requests have the origin of publicUrl, whatever host they name", async () => {
    const options = {
      publicUrl: "https://agents.example.com/all",
      authenticator: bearer({ "token-0123456789": { subject: "ada" } }),
    };
    const server = await start((request) => new Response(request.url), options);
    const answer = await fetch(`http://127.0.0.1:${server.port}//own`);
    expect(await answer.text()).toBe("https://agents.example.com//own");
    expect(await withHost(server, "evil.example")).toBe(200);
  });

  it("bodies have the limit of the agents, announced or not, whatever the application does with them", async () => {
    let caught: unknown;
    const read = async (request: Request): Promise<Response> => {
      try {
        return new Response(String((await request.arrayBuffer()).byteLength));
      } catch (error) {
        caught = error;
        throw new Error("Something went wrong", { cause: error });
      }
    };
    const server = await start(read, { limits: { bodyBytes: 100_000 } });
    const post = (body: string | ReadableStream) =>
      fetch(`${server.url}/own`, { method: "POST", body, duplex: "half" });
    expect(await (await post("x".repeat(100_000))).text()).toBe("100000");
    expect((await post("x".repeat(100_001))).status).toBe(413);
    expect(caught).toBeUndefined();
    const pieces = ReadableStream.from([new Uint8Array(60_000), new Uint8Array(60_000)]) as ReadableStream;
    expect((await post(pieces)).status).toBe(413);
    expect(caught).toMatchObject({ code: "RequestTooLarge" });
  });

  it("a body that is not read is not received, and the answer comes", async () => {
    const server = await start(() => new Response("no thanks", { status: 403 }));
    const answer = await fetch(`${server.url}/own`, { method: "POST", body: "x".repeat(5_000_000) });
    expect([answer.status, await answer.text()]).toEqual([403, "no thanks"]);
  });

  it("a body may be abandoned in the middle, and its rest harms nobody", async () => {
    const server = await start(async ({ body }) => {
      const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = body?.getReader();
      await reader?.read();
      await reader?.cancel();
      return new Response(null, { status: 413 });
    });
    using client = await RawClient.to(server.port);
    const piece = `186a0\r\n${"x".repeat(100_000)}\r\n`;
    const { host } = new URL(server.url);
    client.socket.write(`POST /own HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\n${piece.repeat(20)}`);
    await client.until((text) => text.includes("413"));
    // The server discards the rest of the body until it closes the connection. An error in that code would end the process.
    client.socket.write(`${piece}0\r\n\r\n`);
    await expect.poll(() => client.closed).toBe(true);
    expect((await fetch(`${server.url}/own`, { method: "POST", body: "x" })).status).toBe(413);
  });

  it("that return the same Response a second time are an error, not a truncated answer", async () => {
    const kept = new Response("once");
    const server = await start(() => kept);
    expect(await (await fetch(`${server.url}/kept`)).text()).toBe("once");
    expect((await fetch(`${server.url}/kept`)).status).toBe(500);
  });

  it("an error, or a result that is not a Response, is logged and answered with 500 without details", async () => {
    const causes: string[] = [];
    const logger: Logger = {
      ...silentLogger,
      error: (_message, fields) => void causes.push(String(fields?.["cause"])),
    };
    const failing = [
      () => {
        throw new Error("MARK-in-route-0815");
      },
      () => Promise.reject(new Error("MARK-in-route-0815")),
      () => ({ status: 200 }) as Response,
      () => "text" as unknown as Response,
    ];
    for (const routes of failing) {
      const server = await start(routes, { logger });
      const answer = await fetch(`${server.url}/own`);
      expect(answer.status).toBe(500);
      expect(await answer.text()).not.toContain("MARK");
    }
    expect(causes).toHaveLength(4);
    expect(causes[0]).toContain("MARK-in-route-0815");
    expect(causes[2]).toContain("must return a Response");
  });

  it("methods that Request does not allow, and headers of the connection, do no harm", async () => {
    const server = await start(
      () => new Response("x", { headers: { connection: "close", "transfer-encoding": "chunked", "x-own": "1" } }),
    );
    using client = await RawClient.to(server.port);
    client.socket.write("TRACE /own HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    expect(await client.ended()).toMatch(/^HTTP\/1\.1 404 /);
    const answer = await fetch(`${server.url}/own`);
    expect([await answer.text(), answer.headers.get("x-own")]).toEqual(["x", "1"]);
    using over2 = await Http2Client.to(server.url);
    expect((await over2.get("/own")).body).toBe("x");
  });
});
