import { describe, expect, test } from "vitest";
import { intercept, operations, type Interceptor } from "../../src/protocol/index.ts";
import type { JsonRpcCodec, RestCodec } from "../../src/wire/codec.ts";
import { codecV1 } from "../../src/wire/v1/index.ts";
import { ask, message, post, request, rpc, ScriptedService, serveAlone, type Answer } from "./support.ts";

/** A later version with its own method and path, to test the choice of a version. */
const codecV9: JsonRpcCodec & RestCodec = {
  ...codecV1,
  version: "9.1",
  bindings: {
    JSONRPC: {
      ...codecV1.bindings.JSONRPC,
      operation: (method) => (method === "tasks/nine" ? "GetTask" : undefined),
    },
    "HTTP+JSON": {
      ...codecV1.bindings["HTTP+JSON"],
      routes: [{ operation: "GetTask", methods: ["GET"], path: "/nine/{id}", body: false }],
    },
  },
};

type Send = (headers?: Readonly<Record<string, string>>, query?: string) => Promise<Answer>;

function bindings(options: Parameters<typeof serveAlone>[1] = {}) {
  const service = new ScriptedService();
  const handler = serveAlone(service, options);
  const jsonrpc: Send = (headers = {}, query = "") =>
    ask(handler, request("POST", `/${query}`, { body: rpc("GetTask", { id: "t1" }), headers }));
  const rest: Send = (headers = {}, query = "") => ask(handler, request("GET", `/tasks/t1${query}`, { headers }));
  return {
    service,
    handler,
    both: [
      ["JSON-RPC", jsonrpc],
      ["REST", rest],
    ] as const,
  };
}

const codeOf = ({ json }: Answer): unknown => json.error?.data?.[0]?.reason ?? json.error?.details?.[0]?.reason;

describe("the version of a request (A2A 1.0 §3.6)", () => {
  test.each([["1.0"], ["1.0.3"], ["1.0.0"], [" 1.0 "]])(
    "%j is 1.0, by header and by query parameter",
    async (version) => {
      const { both, service } = bindings();
      for (const [, send] of both) {
        expect(await send({ "a2a-version": version })).toMatchObject({ status: 200 });
        expect(await send({}, `?A2A-Version=${encodeURIComponent(version)}`)).toMatchObject({ status: 200 });
        expect(await send({}, `?a2a-version=${encodeURIComponent(version)}`)).toMatchObject({ status: 200 });
        expect(service.last.context.version).toBe("1.0");
      }
    },
  );

  test.each([["0.3"], ["1.1"], ["2.0"], ["10.0"], ["1"], ["v1.0"], ["1.0-beta"], ["1.0, 1.0"], ["latest"]])(
    "%j is VersionNotSupported, which names the supported ones",
    async (version) => {
      const { both, service } = bindings();
      for (const [, send] of both) {
        for (const answer of [
          await send({ "a2a-version": version }),
          await send({}, `?A2A-Version=${encodeURIComponent(version)}`),
        ]) {
          expect(codeOf(answer)).toBe("VERSION_NOT_SUPPORTED");
          expect(answer.json.error.message).toContain("supported: 1.0");
          expect(answer.text).toContain('"supportedVersions":"1.0"');
        }
      }
      expect(service.calls).toEqual([]);
    },
  );

  test("that is not supported is an error with the id of the request and the status of the binding", async () => {
    const [[, jsonrpc], [, rest]] = bindings().both;
    expect(await jsonrpc({ "a2a-version": "0.5" })).toMatchObject({
      status: 200,
      json: { id: 1, error: { code: -32009 } },
    });
    expect(await rest({ "a2a-version": "0.5" })).toMatchObject({
      status: 400,
      json: { error: { code: 400, status: "FAILED_PRECONDITION" } },
    });
  });

  test("without a name is 1.0 by its method or path", async () => {
    const { both, service } = bindings();
    for (const [, send] of both) {
      for (const answer of [await send(), await send({ "a2a-version": "" }), await send({}, "?A2A-Version=")]) {
        expect(answer.status).toBe(200);
        expect(codeOf(answer)).toBeUndefined();
      }
    }
    expect(service.calls.every(({ context }) => context.version === "1.0")).toBe(true);
  });

  test("without a name is 0.3 with strictVersion (§3.6.2)", async () => {
    const { both } = bindings({ strictVersion: true });
    for (const [, send] of both) {
      expect(codeOf(await send())).toBe("VERSION_NOT_SUPPORTED");
      expect(codeOf(await send({ "a2a-version": "" }))).toBe("VERSION_NOT_SUPPORTED");
      expect(codeOf(await send({ "a2a-version": "1.0" }))).toBeUndefined();
    }
  });

  test("is the header's if the query names another version", async () => {
    const { both } = bindings();
    for (const [, send] of both)
      expect(codeOf(await send({ "a2a-version": "1.0" }, "?A2A-Version=7.0"))).toBeUndefined();
  });

  test("follows from the method or the path; a header that names another version is an error", async () => {
    const { handler, service } = bindings({ codecs: [codecV1, codecV9], operations });
    await post(handler, rpc("tasks/nine", { id: "t1" }));
    expect(service.last.context.version).toBe("9.1");
    await ask(handler, request("GET", "/nine/t1"));
    expect(service.last.context.version).toBe("9.1");
    await post(handler, rpc("GetTask", { id: "t1" }));
    expect(service.last.context.version).toBe("1.0");
    const calls = service.calls.length;
    expect(await post(handler, rpc("tasks/nine", { id: "t1" }), { "a2a-version": "1.0" })).toMatchObject({
      json: { error: { code: -32601 } },
    });
    expect(await post(handler, rpc("GetTask", { id: "t1" }), { "a2a-version": "9.1" })).toMatchObject({
      json: { error: { code: -32601 } },
    });
    expect(await ask(handler, request("GET", "/nine/t1", { headers: { "a2a-version": "1.0" } }))).toMatchObject({
      status: 404,
    });
    const refused = await post(handler, rpc("GetTask", { id: "t1" }), { "a2a-version": "3.0" });
    expect(refused.json.error.message).toContain("supported: 1.0, 9.1");
    expect(service.calls.length).toBe(calls);
  });
});

describe("other service parameters (A2A 1.0 §3.2.6)", () => {
  test("A2A-Extensions is a comma-separated list without duplicates", async () => {
    const { both, service } = bindings();
    for (const [, send] of both) {
      await send({ "a2a-extensions": "https://x.example/a,https://x.example/b , ,https://x.example/a, urn:c" });
      expect(service.last.context.extensions).toEqual(["https://x.example/a", "https://x.example/b", "urn:c"]);
      await send();
      expect(service.last.context.extensions).toEqual([]);
    }
  });

  test("A2A-Extensions may have thousands of URIs; beyond 64 Ki characters it is rejected, never cut", async () => {
    const { both, service } = bindings();
    for (const [binding, send] of both) {
      const many = Array.from({ length: 2_000 }, (_, at) => `urn:x:${at}`);
      await send({ "a2a-extensions": [...many, ...many].join(", "), "x-a2a-extensions": "urn:y" });
      expect(service.last.context.extensions, binding).toEqual([...many, "urn:y"]);
      const calls = service.calls.length;
      const { status, json } = await send({ "a2a-extensions": `urn:${"x".repeat(1 << 16)}` });
      expect([binding, status]).toEqual([binding, 413]);
      expect((json as { error: { message: string } }).error.message).toBe(
        "A2A-Extensions must not exceed 65536 characters",
      );
      expect(service.calls, binding).toHaveLength(calls);
    }
  });

  test("activated extensions are in the response header, which is absent without any", async () => {
    const { both, service } = bindings();
    for (const [, send] of both) {
      service.extensions = ["https://x.example/a", "urn:c"];
      expect((await send()).headers["a2a-extensions"]).toBe("https://x.example/a, urn:c");
      service.extensions = [];
      expect((await send()).headers).not.toHaveProperty("a2a-extensions");
    }
  });

  test("the trace, the headers and the signal of the request reach the service, also through an interceptor that spreads its context", async () => {
    const service = new ScriptedService();
    const spreading: Interceptor = (next) => ({
      call: (operation, request, context) => next.call(operation, request, { ...context }),
      stream: (operation, request, context) => next.stream(operation, request, { ...context }),
    });
    const handler = serveAlone(intercept(service, [spreading]));
    const leaving = new AbortController();
    const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const headers = { traceparent: trace, "x-api-key": "k" };
    await ask(
      handler,
      request("POST", "/message:send", { body: JSON.stringify({ message }), headers, signal: leaving.signal }),
    );
    const { context } = service.last;
    expect(context.trace).toBe(trace);
    expect(context.headers?.("x-api-key")).toBe("k");
    leaving.abort();
    expect(context.signal?.aborted).toBe(true);
  });
});
