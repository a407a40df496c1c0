import { describe, expect, test } from "vitest";
import { answerOperators, type ConsoleOperators, type OperatorsRequest } from "../src/operators.ts";
import { bytesOf, webhookRoute } from "../src/webhooks.ts";
import { WireLog } from "../src/wire-log.ts";

/* A console relays the operators' API, and receives webhooks. */

const path = "/console/api";
const url = `http://127.0.0.1:4000/base${path}`;

async function asked(operators: ConsoleOperators | undefined, below: string, init: RequestInit = {}) {
  const [bare = ""] = below.split("?");
  const response = await answerOperators(operators, new Request(url + below, init), { below: bare, path });
  return response && { status: response.status, body: (await response.json()) as object };
}

function relay(answer: () => Promise<Response>): ConsoleOperators & { readonly asked: OperatorsRequest[] } {
  const requests: OperatorsRequest[] = [];
  return {
    asked: requests,
    url: "http://127.0.0.1:4001/ops",
    ask(request) {
      requests.push(request);
      return answer();
    },
  };
}

describe("the API of operators", () => {
  test("is on the console's server, and its description says how operators sign in", async () => {
    expect(await asked(undefined, "/operators")).toEqual({ status: 200, body: { operators: null } });
    const authenticator = {
      securitySchemes: {
        token: { httpAuthSecurityScheme: { scheme: "Bearer" } },
        key: { apiKeySecurityScheme: { location: "header", name: "x-key" } },
      },
    } as const;
    expect(await asked({ path: "/ops", authenticator }, "/operators")).toEqual({
      status: 200,
      body: {
        operators: {
          path: "/base/ops",
          url: "http://127.0.0.1:4000/base/ops",
          bearer: true,
          basic: false,
          apiKeys: ["x-key"],
        },
      },
    });
    // The browser calls it directly.
    expect(await asked({ path: "/ops" }, "/operators/v1/nodes")).toBeUndefined();
  });

  test("is relayed with its path, body and answer", async () => {
    const on = relay(() => Promise.resolve(Response.json({ ok: false, message: "changed" }, { status: 409 })));
    expect(await asked(on, "/operators/v1/task?agent=%2F&taskId=a%26b")).toMatchObject({ status: 409 });
    const body = JSON.stringify({ agent: "/" });
    expect(await asked(on, "/operators/v1/acts/pause", { method: "POST", body })).toEqual({
      status: 409,
      body: { ok: false, message: "changed" },
    });
    expect(on.asked).toEqual([
      { method: "GET", path: "/v1/task?agent=%2F&taskId=a%26b" },
      { method: "POST", path: "/v1/acts/pause", body },
    ]);
  });

  test.each([
    ["a path outside of it", "/operators/../session", {}],
    ["another version", "/operators/v2/nodes", {}],
    ["an encoded path outside of it", "/operators/v1/%2e%2e/secret", {}],
    ["another method", "/operators/v1/nodes", { method: "DELETE" }],
  ])("is not asked for %s", async (_what, below, init) => {
    const on = relay(() => Promise.resolve(Response.json({})));
    expect(await asked(on, below, init)).toBeUndefined();
    expect(on.asked).toEqual([]);
  });

  test("is not sent a large body, and says that it does not answer", async () => {
    const on = relay(() => Promise.reject(new Error("connect ECONNREFUSED")));
    const large = { method: "POST", body: "x".repeat((64 << 10) + 1) };
    expect(await asked(on, "/operators/v1/acts/pause", large)).toMatchObject({ status: 413 });
    expect(on.asked).toEqual([]);
    expect(await asked(on, "/operators/v1/nodes")).toEqual({
      status: 502,
      body: {
        error: {
          code: 502,
          message: "The operators' API at http://127.0.0.1:4001/ops does not answer: connect ECONNREFUSED",
        },
      },
    });
  });
});

test("an answer without end is not read to its end", async () => {
  let pulled = 0;
  const body = new ReadableStream<Uint8Array>({ pull: (to) => (pulled++, to.enqueue(new Uint8Array(1 << 20))) });
  const on = relay(() => Promise.resolve(new Response(body)));
  expect(await asked(on, "/operators/v1/nodes")).toMatchObject({ status: 502 });
  expect(pulled).toBeLessThan(20);
});

describe("a webhook", () => {
  const headers = { authorization: "Bearer s3cret", "x-a2a-notification-token": "t0ken", "x-note": "shown" };

  async function received(body: string | undefined, below = "", method = "POST") {
    const log = new WireLog();
    const route = webhookRoute(log, "/webhooks/guess");
    const request = new Request("http://127.0.0.1:1/webhooks/guess", {
      method,
      headers,
      ...(body !== undefined && { body }),
    });
    const context = {
      below,
      principal: { subject: "anyone" },
      facts: {},
      closing: new AbortController().signal,
      agents: () => Promise.resolve([]),
      page: () => Promise.reject(new Error("no page")),
    };
    const response = await route.answer(request, context);
    if (response === undefined) return { response, record: "" };
    const stop = new AbortController();
    const reader = log.lines(0, stop.signal).getReader();
    const { value } = await reader.read();
    stop.abort();
    await reader.cancel();
    return { response, record: new TextDecoder().decode(value) };
  }

  test("is written into the log with secrets masked", async () => {
    const { response, record } = await received('{"statusUpdate":{}}');
    expect(response?.status).toBe(204);
    expect(record).toContain("shown");
    expect(record).toContain("statusUpdate");
    expect(record).not.toMatch(/s3cret|t0ken|guess/);
  });

  test("is received in time linear in its size, also a byte at a time, and refused beyond the limit", async () => {
    const bytes = (count: number) => {
      let left = count;
      const byte = new Uint8Array(1);
      return new Response(
        new ReadableStream<Uint8Array>({ pull: (to) => (left-- > 0 ? to.enqueue(byte) : to.close()) }),
      );
    };
    const before = process.cpuUsage();
    expect((await bytesOf(bytes(1 << 17), 1 << 20))?.length).toBe(1 << 17);
    const small = process.cpuUsage(before).user;
    expect((await bytesOf(bytes(1 << 20), 1 << 20))?.length).toBe(1 << 20);
    // Eight times as many bytes. Quadratic time would be 64 times.
    expect(process.cpuUsage(before).user).toBeLessThan(32 * Math.max(small, 50_000));
    expect(await bytesOf(bytes(1 << 12), 1 << 11)).toBeUndefined();
  });

  test("is only a POST to its own path", async () => {
    expect((await received("{}", "/more")).response).toBeUndefined();
    expect((await received(undefined, "", "GET")).response).toBeUndefined();
  });
});
