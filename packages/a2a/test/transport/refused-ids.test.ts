import { describe, expect, test } from "vitest";
import { A2AError } from "../../src/model/index.ts";
import { ask, type GivenOptions, request, rpc, ScriptedService, serveAlone, settled, StillClock } from "./support.ts";

/* Errors for rejected callers repeat the request's id (JSON-RPC 2.0 §5). The server reads a rejected body only for this id. */

const limits = { bodyBytes: 10_000_000, depth: 64 };

function refusing(code: "Unauthenticated" | "PermissionDenied", options: GivenOptions = {}) {
  const service = new ScriptedService();
  const authenticate = () => Promise.reject(new A2AError(code, undefined, { challenge: 'Bearer realm="x"' }));
  return { service, handler: serveAlone(service, { limits, authenticate, ...options }) };
}

const padded = (bytes: number): string => {
  const empty = rpc("SendMessage", { text: "" }, 7).length;
  return rpc("SendMessage", { text: "x".repeat(bytes - empty) }, 7);
};

describe.each([
  ["Unauthenticated", 401],
  ["PermissionDenied", 403],
] as const)("%s", (code, status) => {
  test.each([
    ["a string", "x-1"],
    ["a number", 7],
    ["null", null],
  ])("repeats the id of the request: %s", async (_, id) => {
    const { handler, service } = refusing(code);
    const answer = await ask(handler, request("POST", "/", { body: rpc("GetTask", { id: "t1" }, id) }));
    expect(answer).toMatchObject({ status, headers: { "www-authenticate": 'Bearer realm="x"' }, json: { id } });
    expect(service.calls).toEqual([]);
  });

  test.each([
    ["a batch", `[${rpc("GetTask", { id: "t1" })}]`],
    ["not JSON", "hello"],
    ["half an object", '{"jsonrpc":"2.0","id":7,'],
    ["empty", ""],
    ["without an id", '{"jsonrpc":"2.0","method":"GetTask"}'],
    ["with an id of another type", rpc("GetTask", {}, {})],
    ["nested too deep", rpc("GetTask", JSON.parse("[".repeat(100) + "]".repeat(100)), 7)],
    ["over 64 KiB", padded(64 * 1024 + 1)],
  ])("has no id if the body is %s", async (_, body) => {
    const { handler } = refusing(code);
    expect(await ask(handler, request("POST", "/", { body }))).toMatchObject({ status, json: { id: null } });
  });

  test("has the id of a body of 64 KiB", async () => {
    const { handler } = refusing(code);
    expect(await ask(handler, request("POST", "/", { body: padded(64 * 1024) }))).toMatchObject({
      status,
      json: { id: 7 },
    });
  });

  test("has no id if the body does not arrive within 5 s", async () => {
    const clock = new StillClock();
    const { handler } = refusing(code, { clock });
    const slow = { ...request("POST", "/", { body: rpc("GetTask") }), text: () => new Promise<string>(() => {}) };
    const answer = ask(handler, slow);
    await expect.poll(() => clock.timers).toBe(1);
    let answered = false;
    void answer.then(() => (answered = true));
    clock.advance(4_999);
    await settled();
    expect(answered).toBe(false);
    clock.advance(1);
    expect(await answer).toMatchObject({ status, json: { id: null } });
    expect(clock.timers).toBe(0);
  });

  test.each([
    ["is not JSON", { "content-type": "text/plain" }],
    ["waits for 100 Continue", { expect: "100-continue" }],
  ])("does not read a body that %s", async (_, headers) => {
    const { handler } = refusing(code);
    const asked = request("POST", "/", { body: rpc("GetTask"), headers });
    let read = false;
    const spied = { ...asked, text: (limit: number) => ((read = true), asked.text(limit)) };
    expect(await ask(handler, spied)).toMatchObject({ status, json: { id: null } });
    expect(read).toBe(false);
  });
});

test("a request to a host that the server does not serve is rejected with its id", async () => {
  const admit = (): never => {
    throw new A2AError("PermissionDenied");
  };
  const handler = serveAlone(new ScriptedService(), { admit });
  expect(await ask(handler, request("POST", "/", { body: rpc("GetTask", {}, "a") }))).toMatchObject({
    status: 403,
    json: { jsonrpc: "2.0", id: "a" },
  });
});

test("an authenticated caller without permission gets the id of a body of any size", async () => {
  const { handler, service } = refusing("PermissionDenied", { authenticate: () => ({ subject: "ann" }) });
  service.script = () => {
    throw new A2AError("PermissionDenied");
  };
  const body = rpc("GetTask", { id: "t1", metadata: { text: "x".repeat(100_000) } }, 7);
  expect(await ask(handler, request("POST", "/", { body }))).toMatchObject({ status: 403, json: { id: 7 } });
});
