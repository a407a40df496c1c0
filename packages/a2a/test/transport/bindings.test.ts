import { describe, expect, test } from "vitest";
import { createHandler } from "@parley/server/internal/handler";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import { A2AError } from "../../src/model/index.ts";
import type { ServerBinding } from "../../src/transport/server/binding.ts";
import { jsonRpcBinding } from "../../src/transport/jsonrpc/handler.ts";
import { restBinding } from "../../src/transport/rest/handler.ts";
import type { ServiceMount } from "../../src/transport/router/claims.ts";
import { createRouter } from "../../src/transport/router/router.ts";
import { codecV03 } from "../../src/wire/v03/index.ts";
import { codecV1 } from "../../src/wire/v1/index.ts";
import { ask, card, request, routerOptions, rpc, ScriptedService, serveAlone } from "./support.ts";

/** Tests a server's custom bindings (A2A 1.0 §5.8, §12): which requests they claim, and which claims the server rejects. */

const mount = (more: Partial<ServiceMount> = {}): ServiceMount => ({
  path: "",
  service: new ScriptedService(),
  card: card(),
  ...more,
});

/** Creates a binding that answers with its name on the paths of its claim. */
function named(name: string, claim: ReturnType<NonNullable<ServerBinding["http"]>["claim"]>): ServerBinding {
  return {
    name,
    interfaces: () => [],
    http: {
      claim: () => claim,
      open: ({ services }) => ({
        answer: (_, { path, query }) => ({
          status: 200,
          headers: {},
          body: JSON.stringify({ name, path, query, tenants: [...services.keys()] }),
        }),
        refuse: (error) => ({ status: 403, headers: {}, body: JSON.stringify({ name, refused: error.code }) }),
      }),
    },
  };
}

const router = (
  bindings: readonly ServerBinding[],
  mounts = [mount()],
  more: Parameters<typeof routerOptions>[0] = {},
) => createRouter(mounts, routerOptions({ ...more, bindings }));

describe("a custom binding", () => {
  const own = named("urn:own", { paths: [{ path: "/own" }, { path: "/own/acme", tenant: "acme" }] });

  test("answers at the paths that it claims, beside JSON-RPC and REST", async () => {
    const { handle } = router([jsonRpcBinding(), restBinding(), own]);
    const answer = await ask(handle, request("GET", "/own?a=1"));
    expect(answer.json).toEqual({ name: "urn:own", path: "/own", query: "a=1", tenants: [null] });
    expect((await ask(handle, request("POST", "/own/"))).json).toMatchObject({ path: "/own/" });
    expect((await ask(handle, request("GET", "/tasks/t1"))).status).toBe(200);
    const body = rpc("GetTask", { id: "t1" });
    expect((await ask(handle, request("POST", "/", { body }))).json).toMatchObject({ id: 1 });
  });

  test("gets one tenant at the path of that tenant, and all tenants elsewhere", async () => {
    const { handle } = router([own], [mount({ tenant: "acme" }), mount({ tenant: "bolt" })]);
    expect((await ask(handle, request("GET", "/own"))).json.tenants).toEqual(["acme", "bolt"]);
    expect((await ask(handle, request("GET", "/own/acme"))).json.tenants).toEqual([null, "acme"]);
  });

  test("may claim everything below a path; the longest path takes precedence", async () => {
    const { handle, answers } = router([
      named("urn:all", { below: "", reserves: () => false }),
      named("urn:deep", { below: "/deep", owns: (path) => path === "/deep/here" }),
    ]);
    expect((await ask(handle, request("GET", "/x/y"))).json).toMatchObject({ name: "urn:all", path: "/x/y" });
    expect((await ask(handle, request("GET", "/deep/er"))).json).toMatchObject({ name: "urn:deep", path: "/er" });
    expect(answers("/deep/here")).toBe(true);
  });

  test("is found by the URL of a connection that it could take over", () => {
    const { find } = router([own, restBinding()]);
    expect(find("/own?x")?.target).toEqual({ path: "/own", query: "x" });
    expect(find("/.well-known/agent-card.json")?.target.path).toBe("/.well-known/agent-card.json");
    expect(router([own]).find("/elsewhere")).toBeUndefined();
  });

  test("does not get a rejected request, and writes that error itself", async () => {
    const admit = () => {
      throw new A2AError("PermissionDenied");
    };
    const { handle } = router([own, jsonRpcBinding()], [mount()], { admit });
    expect((await ask(handle, request("GET", "/own"))).json).toEqual({ name: "urn:own", refused: "PermissionDenied" });
    expect((await ask(handle, request("POST", "/"))).json).toMatchObject({ jsonrpc: "2.0", id: null });
    expect((await ask(handle, request("GET", "/nowhere"))).json).toMatchObject({ error: { code: 403 } });
  });

  test("may be the only one: other paths get a 404 in the form of the version", async () => {
    const { handle } = router([own]);
    for (const url of ["/", "/tasks/t1"]) {
      expect(await ask(handle, request("GET", url))).toMatchObject({ status: 404, json: { error: { code: 404 } } });
    }
  });
});

test("a binding without an entry in a version does not speak it, and the shapes of the version are for all others", async () => {
  const silent = { ...codecV1, bindings: {} };
  expect(() => serveAlone(new ScriptedService(), { codecs: [silent] })).toThrow(
    "bindings has JSONRPC, which does not support the versions of this server: 1.0",
  );
  expect(silent.shapes.decodeRequest("GetTask", { id: "t" })).toEqual({ id: "t" });
  const handle = serveAlone(new ScriptedService(), { codecs: [silent, codecV03] });
  const headers = { "a2a-version": "1.0" };
  const refused = await ask(handle, request("POST", "/", { body: rpc("tasks/get", { id: "t1" }), headers }));
  expect(refused.json.error).toMatchObject({ code: -32009 });
});

describe("rejected when the server is created:", () => {
  const exact = (name: string, path: string) => named(name, { paths: [{ path }] });
  const cases: readonly [string, readonly ServerBinding[], ServiceMount[]?][] = [
    ["bindings must have at least one binding, such as jsonRpcBinding()", []],
    ['bindings[1] is a second binding with the name "JSONRPC"', [jsonRpcBinding(), jsonRpcBinding()]],
    [
      'bindings[0] has the name "WEBSOCKET". The name of a binding is JSONRPC, HTTP+JSON, GRPC or a URI',
      [exact("WEBSOCKET", "/ws")],
    ],
    ["bindings[0] must be a binding", [{} as ServerBinding]],
    ["bindings[1] must be a binding", [jsonRpcBinding(), undefined as unknown as ServerBinding]],
    ['urn:a: "ws" is not a valid path. A path begins with a slash', [exact("urn:a", "ws")]],
    ['urn:a: "/ws/" is not a valid path', [exact("urn:a", "/ws/")]],
    ['urn:a: "/a/../ws" is not a valid path', [exact("urn:a", "/a/../ws")]],
    ["urn:a: 5 is not a valid path", [exact("urn:a", 5 as never)]],
    ['urn:a: "ws" is not a valid path', [named("urn:a", { below: "ws" })]],
    ["interfaces.urn:b: urn:b and urn:a both have the address /ws", [exact("urn:a", "/ws"), exact("urn:b", "/ws")]],
    ["interfaces.urn:a: urn:a and JSONRPC both have the address /", [jsonRpcBinding(), exact("urn:a", "")]],
    ["interfaces.urn:a: urn:a and HTTP+JSON both have the address /tasks", [restBinding(), exact("urn:a", "/tasks")]],
    [
      "interfaces.urn:a: urn:a and HTTP+JSON both have the address /tasks/x",
      [exact("urn:a", "/tasks/x"), restBinding()],
    ],
    [
      "interfaces: a card and urn:a both have the address /.well-known/agent-card.json",
      [exact("urn:a", "/.well-known/agent-card.json")],
    ],
    [
      "interfaces.HTTP+JSON: HTTP+JSON and urn:a both have the address /",
      [restBinding(), named("urn:a", { below: "" })],
    ],
    [
      "interfaces.urn:a: urn:a and HTTP+JSON both have the address /tasks",
      [restBinding(), named("urn:a", { below: "/tasks" })],
    ],
    [
      "path /own conflicts with an address of the agent at /",
      [exact("urn:a", "/own/x"), restBinding()],
      [mount(), mount({ path: "/own" })],
    ],
    [
      'interfaces has a path for the binding "REST", which is not served. The bindings of this server are JSONRPC, HTTP+JSON',
      [jsonRpcBinding(), restBinding()],
      [mount({ interfaces: { REST: "/rest" } })],
    ],
  ];

  test.each(cases)("%s", (says, bindings, mounts = [mount()]) => {
    expect(() => router(bindings, [...mounts])).toThrow(A2AError);
    expect(() => router(bindings, [...mounts])).toThrow(`This cannot be served: ${says}`);
  });
});

describe("a custom binding that fails when a server is created is named:", () => {
  const name = "urn:own";
  const agent = defineAgent({ name: "a", description: "a", version: "1", skills: [], onMessage: () => {} });
  const own = (http: object): object => ({
    name,
    interfaces: () => [{ url: "https://agents.example/own" }],
    http: { claim: () => ({ paths: [{ path: "/own" }] }), open: () => ({ answer() {} }), ...http },
  });
  const defect = (): never => {
    throw new TypeError("a defect");
  };

  test.each<[string, object]>([
    ["interfaces() failed: a defect", { name, interfaces: defect }],
    ["interfaces() must return a list of addresses", { name, interfaces: () => undefined }],
    ["interfaces() must return a list of addresses", { name, interfaces: () => Promise.reject(new Error("late")) }],
    [
      "interfaces() must return a list of addresses",
      { name, interfaces: () => [{ url: new URL("https://a.example") }] },
    ],
    ["claim() failed: a defect", own({ claim: defect })],
    ["claim() failed: http.claim is not a function", own({ claim: undefined })],
    ["claim() must return the addresses that it claims", own({ claim: () => null })],
    ["claim() must return the addresses that it claims", own({ claim: () => ({ paths: 5 }) })],
    ["claim() must return the addresses that it claims", own({ claim: () => ({ paths: ["/own"] }) })],
    ["claim() is empty, but a card names this binding", own({ claim: () => ({}) })],
    ["claim() is empty, but a card names this binding", own({ claim: () => ({ paths: [] }) })],
    ["open() failed: a defect", own({ open: defect })],
    ["open() must return an endpoint, which has the function answer()", own({ open: () => undefined })],
    ["open() must return an endpoint, which has the function answer()", own({ open: async () => ({ answer() {} }) })],
    ["openAnyPath() failed: a defect", { name, interfaces: () => [], openAnyPath: defect }],
    ["openAnyPath() must return an endpoint", { name, interfaces: () => [], openAnyPath: () => ({ answer() {} }) }],
  ])("%s", (says, binding) => {
    const bindings = [jsonRpcBinding(), binding as ServerBinding];
    const make = () => createHandler(agent, { publicUrl: "https://agents.example", store: memoryStore(), bindings });
    expect(make).toThrow(A2AError);
    expect(make).toThrow(`This cannot be served: urn:own: ${says}`);
  });

  test("an A2AError of the binding is passed on", () => {
    const claim = () => {
      throw new A2AError("InvalidParams", "No tenants here");
    };
    expect(() => router([own({ claim }) as ServerBinding])).toThrow("No tenants here");
  });

  test("a binding that claims nothing is valid if no card names it", () => {
    expect(() => router([jsonRpcBinding(), own({ claim: () => ({}) }) as ServerBinding])).not.toThrow();
  });
});

test("an invalid binding is named even if the handler creates the card first", () => {
  const agent = defineAgent({
    name: "a",
    description: "a",
    version: "1",
    skills: [],
    onMessage: (turn) => turn.reply(""),
  });
  for (const wrong of [null, undefined, 5, {}] as unknown as ServerBinding[]) {
    const bindings = [jsonRpcBinding(), wrong];
    const make = () => createHandler(agent, { publicUrl: "http://localhost:4000", store: memoryStore(), bindings });
    expect(make).toThrow("This cannot be served: bindings[1] must be a binding");
  }
});
