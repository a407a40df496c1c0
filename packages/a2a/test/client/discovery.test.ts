import { describe, expect, test } from "vitest";
import { silentLogger } from "../../src/base/index.ts";
import { type CachedCard, connect, type ConnectOptions } from "../../src/client/index.ts";
import type { AgentCard, AgentInterface } from "../../src/model/index.ts";
import { bodyOf, cardOf, deadUrl, HandClock, jsonRpcAt, listen, restAt, rpcServer, soon, taskOf } from "./support.ts";

const wellKnown = "/.well-known/agent-card.json";

interface Site {
  readonly url: string;
  readonly paths: string[];
  readonly headers: Record<string, string | string[] | undefined>[];
}

/** Serves documents by path. `head` returns the status and headers of a response, depending on the request's headers. */
async function site(
  pages: (base: string) => Record<string, unknown>,
  head: (headers: Record<string, unknown>) => { status?: number; headers?: Record<string, string> } = () => ({}),
): Promise<Site> {
  const paths: string[] = [];
  const headers: Site["headers"] = [];
  const url = await listen((request, response) => {
    paths.push(request.url as string);
    headers.push(request.headers);
    const page = pages(url)[request.url as string];
    const { status = page === undefined ? 404 : 200, headers: more } = head(request.headers);
    response.writeHead(status, {
      "content-type": typeof page === "object" ? "application/json" : "text/html",
      ...more,
    });
    response.end(
      status === 304 ? undefined : typeof page === "object" ? JSON.stringify(page) : `<h1>${page as string}</h1>`,
    );
  });
  return { url, paths, headers };
}

async function refused(agent: string | AgentCard, options: ConnectOptions = {}): Promise<unknown> {
  return connect(agent, { ...soon, ...options }).then(
    () => expect.fail("connected"),
    (error: unknown) => error,
  );
}

describe("finding the card (A2A 1.0 §8.2)", () => {
  test("requests the card below the agent's base, with and without a slash, and sends its version", async () => {
    const { url, paths, headers } = await site((base) => ({ [`/weather${wellKnown}`]: cardOf([jsonRpcAt(base)]) }));
    for (const given of [`${url}/weather`, `${url}/weather/`, `${url}/weather?x=1#y`, new URL(`${url}/weather`)]) {
      expect((await connect(given)).card.name).toBe("Stranger");
    }
    expect(paths).toEqual(Array(4).fill(`/weather${wellKnown}`));
    expect(headers[0]).toMatchObject({ "a2a-version": "1.0", accept: "application/json" });
  });

  test("accepts the URL of the card", async () => {
    const { url, paths } = await site((base) => ({ "/cards/one.json?v=2": cardOf([jsonRpcAt(base)]) }));
    await connect(`${url}/cards/one.json?v=2`);
    expect(paths).toEqual(["/cards/one.json?v=2"]);
  });

  test("uses a card at the root only if it names the requested address", async () => {
    const { url } = await site((base) => ({ [wellKnown]: cardOf([jsonRpcAt(`${base}/a2a/v1`)]) }));
    expect((await connect(`${url}/a2a/v1`)).chosen.url).toBe(`${url}/a2a/v1`);
    expect(await refused(`${url}/typo`)).toMatchObject({ code: "InvalidResponse", metadata: { httpStatus: "404" } });
  });

  test("explains problems of an address, a page or a card", async () => {
    expect(await refused("localhost")).toMatchObject({
      code: "InvalidParams",
      message: expect.stringContaining("localhost"),
    });
    const { url } = await site((base) => ({
      "/html/card.json": "Welcome",
      "/bad/card.json": { name: "x", supportedInterfaces: base },
    }));
    expect(await refused(`${url}/html/card.json`)).toMatchObject({
      code: "InvalidResponse",
      message: expect.stringMatching(/text\/html: Welcome$/),
    });
    expect(await refused(`${url}/bad/card.json`)).toMatchObject({
      code: "InvalidResponse",
      message: expect.stringContaining("supportedInterfaces"),
    });
  });

  test("throws the connection error, and the demand for credentials", async () => {
    expect(await refused(await deadUrl())).toMatchObject({ code: "ConnectionFailed" });
    const { url } = await site(
      () => ({}),
      () => ({ status: 401, headers: { "www-authenticate": 'Bearer realm="agents"' } }),
    );
    expect(await refused(url)).toMatchObject({ code: "Unauthenticated", challenge: 'Bearer realm="agents"' });
  });

  test("retries while the host is starting", async () => {
    let asked = 0;
    const { url } = await site(
      (base) => ({ [wellKnown]: cardOf([jsonRpcAt(base)]) }),
      () => (++asked < 3 ? { status: 503 } : {}),
    );
    await connect(url, soon);
    expect(asked).toBe(3);
  });

  test("stops when its signal is aborted", async () => {
    const url = await listen(() => undefined);
    const controller = new AbortController();
    const failed = refused(url, { signal: controller.signal });
    controller.abort();
    expect(await failed).toMatchObject({ code: "Aborted" });
  });

  test("follows a redirect of the card only without credentials", async () => {
    const { url, headers } = await site(
      (base) => ({ [wellKnown]: cardOf([jsonRpcAt(base)]), "/old.json": "moved" }),
      (sent) => (sent["x-moved"] === undefined ? {} : {}),
    );
    const front = await listen((_, response) => response.writeHead(301, { location: url + wellKnown }).end());
    await connect(front);
    expect(headers).toHaveLength(1);
    expect(await refused(front, { headers: { "x-api-key": "secret" } })).toMatchObject({
      code: "InvalidResponse",
      message: expect.stringContaining(`redirect to ${url}`),
    });
    expect(headers).toHaveLength(1);
  });
});

describe("keeping the card (A2A 1.0 §8.6.2)", () => {
  test("sends no request while the card is fresh, then only revalidates it", async () => {
    const clock = new HandClock();
    const { url, headers } = await site(
      (base) => ({ [wellKnown]: cardOf([jsonRpcAt(base)]) }),
      (sent) => ({
        ...(sent["if-none-match"] === '"v1"' && { status: 304 }),
        headers: { etag: '"v1"', "cache-control": "public, max-age=60", age: "10" },
      }),
    );
    const cardCache = new Map<string, CachedCard>();
    const options = { cardCache, clock };
    const first = await connect(url, options);
    clock.advance(49_999);
    expect((await connect(url, options)).card).toBe(first.card);
    expect(headers).toHaveLength(1);
    clock.advance(1);
    expect((await connect(url, options)).card).toBe(first.card);
    expect(headers.map((one) => one["if-none-match"])).toEqual([undefined, '"v1"']);
    clock.advance(49_999);
    await connect(url, options);
    expect(headers).toHaveLength(2);
  });

  test("uses the date if there is no ETag, and takes a new card", async () => {
    let name = "old";
    const { url, headers } = await site(
      (base) => ({ [wellKnown]: cardOf([jsonRpcAt(base)], { name }) }),
      () => ({ headers: { "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT" } }),
    );
    const cardCache = new Map<string, CachedCard>();
    await connect(url, { cardCache });
    name = "new";
    expect((await connect(url, { cardCache })).card.name).toBe("new");
    expect(headers[1]?.["if-modified-since"]).toBe("Thu, 01 Jan 2026 00:00:00 GMT");
  });

  test("does not keep a card with no-store, and revalidates one with no-cache", async () => {
    let control = "no-store, max-age=60";
    const { url, headers } = await site(
      (base) => ({ [wellKnown]: cardOf([jsonRpcAt(base)]) }),
      () => ({ headers: { etag: "1", "cache-control": control } }),
    );
    const cardCache = new Map<string, CachedCard>();
    await connect(url, { cardCache });
    expect(cardCache.size).toBe(0);
    control = "no-cache, max-age=60";
    await connect(url, { cardCache });
    await connect(url, { cardCache });
    expect(headers.map((one) => one["if-none-match"])).toEqual([undefined, undefined, "1"]);
  });
});

describe("choosing an interface (A2A 1.0 §8.3.2)", () => {
  const agent = async () => rpcServer((call) => call.answer(taskOf("TASK_STATE_WORKING")));

  /** Starts a REST server that records the paths of its requests. */
  async function rest(status = 200): Promise<{ url: string; paths: string[]; bodies: string[] }> {
    const paths: string[] = [];
    const bodies: string[] = [];
    const url = await listen((request, response) => {
      void bodyOf(request).then((body) => {
        paths.push(`${request.method} ${request.url}`);
        bodies.push(body);
        response.writeHead(status, { "content-type": "application/json" });
        const task = taskOf("TASK_STATE_WORKING");
        response.end(JSON.stringify(request.url?.includes("message") ? { task } : task));
      });
    });
    return { url, paths, bodies };
  }

  test("uses the first interface of the card whose binding and version it speaks, ignoring the patch number", async () => {
    const card = cardOf([
      { url: "grpc.example:443", protocolBinding: "GRPC", protocolVersion: "1.0" },
      jsonRpcAt("http://old.example", { protocolVersion: "0.3" }),
      restAt("http://rest.example", { protocolVersion: "1.0.7" }),
      jsonRpcAt("http://rpc.example"),
    ]);
    expect((await connect(card)).chosen.url).toBe("http://rest.example");
  });

  test("can be limited to a binding and a version", async () => {
    const card = cardOf([restAt("http://rest.example"), jsonRpcAt("http://rpc.example")]);
    expect((await connect(card, { binding: "JSONRPC" })).chosen.url).toBe("http://rpc.example");
    expect((await connect(card, { version: "1.0" })).chosen.url).toBe("http://rest.example");
    expect(await refused(card, { version: "0.3" })).toMatchObject({
      code: "InvalidResponse",
      message: expect.stringMatching(/ \(asked for: version 0\.3\): .*"http:\/\/rest\.example" was not asked for/),
    });
  });

  test("says which bindings it did not try", async () => {
    const card = cardOf([{ url: "grpc.example:443", protocolBinding: "GRPC", protocolVersion: "1.0" }]);
    expect(await refused(card, { binding: "grpc" })).toMatchObject({
      message: expect.stringContaining('GRPC 1.0 at "grpc.example:443" was not asked for'),
    });
  });

  test("says why none can be used: relative and invalid addresses, unknown bindings, an empty list", async () => {
    const odd = [
      jsonRpcAt("/a2a"),
      restAt("ftp://x/"),
      { url: "https://x", protocolBinding: "SMTP", protocolVersion: "1.0" },
    ];
    const error = (await refused(cardOf(odd))) as Error;
    expect(error).toMatchObject({ code: "InvalidResponse" });
    expect(error.message).toContain('"/a2a" is not an absolute URL');
    expect(error.message).toContain('"ftp://x/" is not an HTTP URL');
    expect(error.message).toContain('SMTP 1.0 at "https://x" is not supported here');
    expect(await refused(cardOf([]))).toMatchObject({ message: expect.stringContaining("it lists none") });
    const usable = cardOf([jsonRpcAt("/a2a"), restAt("http://rest.example")]);
    expect((await connect(usable)).chosen.url).toBe("http://rest.example");
  });

  test("copies the tenant of the interface into every request", async () => {
    const rpc = await agent();
    const plain = await rest();
    for (const target of [jsonRpcAt(rpc.url, { tenant: "a/ b" }), restAt(plain.url, { tenant: "a/ b" })]) {
      const client = await connect(cardOf([target]));
      await client.getTask({ id: "t/1", tenant: "someone else's" });
    }
    expect(rpc.calls[0]?.params).toEqual({ id: "t/1", tenant: "a/ b" });
    expect(plain.paths).toEqual(["GET /a%2F%20b/tasks/t%2F1"]);
  });

  test("sends no tenant if the interface has none", async () => {
    const rpc = await agent();
    const client = await connect(cardOf([jsonRpcAt(rpc.url)]));
    await client.getTask({ id: "t1", tenant: "made up" });
    expect(rpc.calls[0]?.params).toEqual({ id: "t1" });
  });

  test("tries the next interface if one does not answer, and keeps the one that answers", async () => {
    const plain = await rest();
    const told: string[] = [];
    const logger = { ...silentLogger, warn: (text: string) => told.push(text) };
    const client = await connect(cardOf([jsonRpcAt(await deadUrl()), restAt(`${plain.url}/`)]), { ...soon, logger });
    const dead = client.chosen.url;
    expect(await client.sendMessage("hi")).toHaveProperty("task");
    expect(client.chosen).toMatchObject({ protocolBinding: "HTTP+JSON" });
    expect(client.chosen.url).not.toBe(dead);
    expect(plain.paths).toEqual(["POST /message:send"]);
    expect(told).toEqual(["An interface of the card failed"]);
  });

  test.each([404, 405])(
    "leaves an interface that does not exist (%i): the message was not processed",
    async (status) => {
      const lost = await listen((_, response) =>
        response.writeHead(status, { "content-type": "text/html" }).end("nothing"),
      );
      const plain = await rest();
      const client = await connect(cardOf([jsonRpcAt(lost), restAt(plain.url)]), soon);
      await client.sendMessage("hi");
      expect(plain.paths).toHaveLength(1);
    },
  );

  test.each([
    ["500", (_: unknown, response: import("node:http").ServerResponse) => void response.writeHead(500).end("oops")],
    ["a dropped connection", (request: import("node:http").IncomingMessage) => void request.socket.destroy()],
  ])("never resends a message that %s may have taken, but sends the next one elsewhere", async (_, listener) => {
    let taken = 0;
    const broken = await listen((request, response) => {
      taken++;
      listener(request, response);
    });
    const plain = await rest();
    const client = await connect(cardOf([jsonRpcAt(broken), restAt(plain.url)]), soon);
    await expect(client.sendMessage("hi")).rejects.toMatchObject({ name: "A2AError" });
    expect(taken).toBe(1);
    expect(plain.paths).toHaveLength(0);
    await client.sendMessage("again");
    expect(plain.paths).toHaveLength(1);
  });

  test("repeats a safe request at the next interface at once", async () => {
    const broken = await listen((request) => void request.socket.destroy());
    const plain = await rest();
    const client = await connect(cardOf([jsonRpcAt(broken), restAt(plain.url)]), soon);
    expect((await client.getTask("t1")).id).toBe("t1");
    expect(plain.paths).toEqual(["GET /tasks/t1"]);
  });

  test("does not fall back to an older version when the server does not answer: it would keep that version", async () => {
    const versions: unknown[] = [];
    const starting = await listen((request, response) => {
      versions.push(request.headers["a2a-version"]);
      if (versions.length === 1) return void request.socket.destroy();
      const result = { id: "t1", contextId: "c1", status: { state: "TASK_STATE_WORKING" } };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id: versions.length, result }));
    });
    const older = jsonRpcAt(starting, { protocolVersion: "0.3" });
    const client = await connect(cardOf([jsonRpcAt(starting), older]), {
      ...soon,
      retry: { minDelay: 1 },
    });
    expect((await client.getTask("t1")).id).toBe("t1");
    expect(client.chosen.protocolVersion).toBe("1.0");
    expect(versions).toEqual(["1.0", "1.0"]);
  });

  test("tries the next interface if one speaks another JSON protocol, or lacks the method", async () => {
    const foreign = { error: { code: 404, status: "NOT_FOUND", message: "no such path" } };
    for (const [status, body] of [
      [404, foreign],
      [200, { jsonrpc: "2.0", id: 1, error: { code: -32601, message: "message/send is all there is" } }],
    ] as const) {
      const other = await listen((_, response) => {
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
      });
      const plain = await rest();
      const client = await connect(cardOf([jsonRpcAt(other), restAt(plain.url)]), soon);
      await client.sendMessage("hi");
      expect(plain.paths).toHaveLength(1);
    }
  });

  test("tries the next interface if one rejects the version of the card", async () => {
    const rpc = await rpcServer((call) => call.fail(-32009, "0.3 only"));
    const plain = await rest();
    const client = await connect(cardOf([jsonRpcAt(rpc.url), restAt(plain.url)]), soon);
    await client.sendMessage("hi");
    expect(plain.paths).toHaveLength(1);
  });

  test("keeps an interface that has answered, even with a protocol error", async () => {
    let up = true;
    const rpc = await rpcServer((call) => (up ? call.fail(-32001, "no") : call.page(500, {}, "down")));
    const plain = await rest();
    const card = cardOf([jsonRpcAt(rpc.url), restAt(plain.url)] satisfies AgentInterface[]);
    const client = await connect(card, soon);
    await expect(client.getTask("t1")).rejects.toMatchObject({ code: "TaskNotFound" });
    up = false;
    await expect(client.getTask("t1")).rejects.toMatchObject({ code: "InvalidResponse" });
    expect(plain.paths).toHaveLength(0);
  });

  test("begins with the first interface again after all have failed", async () => {
    let up = false;
    const rpc = await rpcServer((call) =>
      up ? call.answer(taskOf("TASK_STATE_WORKING")) : call.page(404, { "content-type": "text/html" }, "not yet"),
    );
    const client = await connect(cardOf([jsonRpcAt(rpc.url), restAt(await deadUrl())]), { ...soon, retry: false });
    await expect(client.getTask("t1")).rejects.toMatchObject({ code: "ConnectionFailed" });
    up = true;
    expect((await client.getTask("t1")).id).toBe("t1");
    expect(client.chosen.protocolBinding).toBe("JSONRPC");
  });
});
