import { describe, expect, test } from "vitest";
import { connect, type ConnectOptions } from "../../src/client/index.ts";
import type { Interceptor } from "../../src/protocol/index.ts";
import {
  cardOf,
  deadUrl,
  errorOf,
  jsonRpcAt,
  listen,
  restAt,
  type RpcCall,
  rpcServer,
  soon,
  taskOf,
} from "./support.ts";

/** Clients send credentials only to the origin that the user named, whatever a card says (D18, A2A 1.0 §13.1). */

const headers = { Authorization: "Bearer secret", cookie: "session=1" };

/** Serves an agent whose card and interface have different origins. */
async function apart(script: (call: RpcCall) => void = (call) => call.answer(taskOf("TASK_STATE_WORKING"))) {
  const elsewhere = await rpcServer(script);
  const asked: (string | undefined)[] = [];
  const url = await listen((request, response) => {
    asked.push(request.headers.authorization);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(cardOf([jsonRpcAt(elsewhere.url)])));
  });
  return { url, elsewhere, asked };
}

const sent = (calls: readonly RpcCall[]) => calls.map((call) => [call.headers.authorization, call.headers.cookie]);

describe("headers", () => {
  test("are sent to the origin of the agent's URL, and to no other origin of its card", async () => {
    const { url, elsewhere, asked } = await apart();
    const client = await connect(url, { headers });
    await client.getTask("t1");
    expect(asked).toEqual(["Bearer secret"]);
    expect(sent(elsewhere.calls)).toEqual([[undefined, undefined]]);
  });

  test("of single calls and interceptors are withheld too, and the function for headers is not called", async () => {
    const { url, elsewhere } = await apart();
    const asked: string[] = [];
    const sign: Interceptor = (next) => ({
      call: (operation, request, context) =>
        next.call(operation, request, { ...context, outgoing: { headers: { authorization: "Bearer mine" } } }),
      stream: (operation, request, context) => next.stream(operation, request, context),
    });
    const client = await connect(url, {
      interceptors: [sign],
      headers: (request) => {
        asked.push(request.operation);
        return headers;
      },
    });
    await client.getTask("t1", { headers: { cookie: "mine" } });
    await errorOf(client.subscribeToTask("t1", { headers })[Symbol.asyncIterator]().next());
    expect(sent(elsewhere.calls)).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ]);
    expect(asked).toEqual(["AgentCard"]);
  });

  test("are sent to the origins that the user names", async () => {
    const { url, elsewhere } = await apart();
    const client = await connect(url, { headers, credentialOrigins: [`${elsewhere.url}/any/path`] });
    await client.getTask("t1");
    expect(sent(elsewhere.calls)).toEqual([["Bearer secret", "session=1"]]);
  });

  test("are not sent after a redirect of the card, nor to the next interface", async () => {
    const rpc = await rpcServer((call) => call.answer(taskOf("TASK_STATE_WORKING")));
    const home = await listen((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(cardOf([jsonRpcAt(dead), jsonRpcAt(rpc.url)])));
    });
    const dead = await deadUrl();
    const front = await listen((request, response) =>
      response.writeHead(301, { location: home + String(request.url) }).end(),
    );
    const client = await connect(front, soon);
    await client.getTask("t1", { headers: { authorization: "Bearer secret" } });
    expect(sent(rpc.calls)).toEqual([[undefined, undefined]]);
  });

  test("are not sent to another scheme, host or port, which is another origin (RFC 6454 §5)", async () => {
    const called: [string, string | undefined][] = [];
    for (const other of ["https://agent.example", "http://agent.example:8080", "http://api.agent.example"]) {
      const fetch: ConnectOptions["fetch"] = async (url, init) => {
        called.push([new URL(url).origin, init.headers["authorization"]]);
        const body = url.endsWith(".json") ? cardOf([restAt(other)]) : taskOf("TASK_STATE_WORKING");
        return Response.json(body);
      };
      await (await connect("http://agent.example/", { fetch, headers })).getTask("t1");
    }
    expect(called.filter(([, secret]) => secret !== undefined).map(([origin]) => origin)).toEqual(
      Array(3).fill("http://agent.example"),
    );
  });

  test("of a client with a given card are sent to all its interfaces, or only to the named origins", async () => {
    const rpc = await rpcServer((call) => call.answer(taskOf("TASK_STATE_WORKING")));
    await (await connect(cardOf([jsonRpcAt(rpc.url)]), { headers })).getTask("t1");
    const strict = { headers, credentialOrigins: ["https://good.example"] };
    await (await connect(cardOf([jsonRpcAt(rpc.url)]), strict)).getTask("t1");
    expect(sent(rpc.calls)).toEqual([
      ["Bearer secret", "session=1"],
      [undefined, undefined],
    ]);
  });

  test("with invalid origins are rejected", async () => {
    expect(await errorOf(connect("http://good.example", { credentialOrigins: ["good.example"] }))).toMatchObject({
      code: "InvalidParams",
      message: expect.stringContaining("good.example"),
    });
  });
});

describe("a rejection because headers are missing", () => {
  const refuse = (call: RpcCall): void =>
    call.page(401, { "www-authenticate": "Bearer" }, call.method === "GetTask" ? "" : "<p>no");

  test.each([401, 403])("(%i) says that they were not sent, and which option sends them", async (status) => {
    const { url, elsewhere } = await apart((call) => call.page(status, { "www-authenticate": "Bearer" }, ""));
    const client = await connect(url, { headers });
    for (const work of [client.getTask("t1"), client.subscribeToTask("t1")[Symbol.asyncIterator]().next()]) {
      expect(await errorOf(work)).toMatchObject({
        code: status === 401 ? "Unauthenticated" : "PermissionDenied",
        challenge: "Bearer",
        metadata: { withheldFrom: elsewhere.url },
        message: expect.stringMatching(`not sent to ${elsewhere.url}, .*credentialOrigins`),
      });
    }
  });

  test("is unchanged if there are no headers, or they were sent", async () => {
    const { url, elsewhere } = await apart(refuse);
    const options = [{}, { headers, credentialOrigins: [elsewhere.url] }] satisfies ConnectOptions[];
    for (const option of options) {
      const error = (await errorOf((await connect(url, option)).getTask("t1"))) as Error;
      expect(error).toMatchObject({ code: "Unauthenticated", metadata: {} });
      expect(error.message).not.toContain("credentialOrigins");
    }
  });
});
