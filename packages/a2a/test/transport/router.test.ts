import { describe, expect, test } from "vitest";
import { A2AError } from "../../src/model/index.ts";
import { createRouter } from "../../src/transport/router/router.ts";
import { ask, card, request, routerOptions, rpc, ScriptedService, serveMounts, settled } from "./support.ts";

const mount = (path: string, tenant?: string) => ({
  path,
  service: new ScriptedService(),
  card: card({ name: `${path}#${tenant ?? ""}` }),
  ...(tenant !== undefined && { tenant }),
});

describe("several agents behind one handler", () => {
  test("are found by the longest path", async () => {
    const mounts = [mount(""), mount("/weather"), mount("/weather/berlin"), mount("/news")];
    const handler = serveMounts(mounts);
    for (const [url, at] of [
      ["/tasks/t1", 0],
      ["/weather/tasks/t1", 1],
      ["/weather/berlin/tasks/t1", 2],
      ["/news/tasks/t1", 3],
    ] as const) {
      const before = mounts.map(({ service }) => service.calls.length);
      expect(await ask(handler, request("GET", url))).toMatchObject({ status: 200 });
      expect(mounts.map(({ service }, index) => service.calls.length - (before[index] ?? 0)).indexOf(1)).toBe(at);
      const base = url.slice(0, -"/tasks/t1".length);
      await ask(handler, request("POST", base === "" ? "/" : base, { body: rpc("GetTask", { id: "t1" }) }));
      expect(mounts[at]?.service.calls).toHaveLength(2);
      const asked = await ask(handler, request("GET", `${base}/.well-known/agent-card.json`));
      expect(asked.json.name).toBe(mounts[at]?.card.name);
    }
  });

  test("have a card each by tenant", async () => {
    const handler = serveMounts([mount("/w"), mount("/w", "acme"), mount("/w", "b c")]);
    for (const [url, name] of [
      ["/w/.well-known/agent-card.json", "/w#"],
      ["/w/acme/.well-known/agent-card.json", "/w#acme"],
      ["/w/b%20c/.well-known/agent-card.json", "/w#b c"],
    ] as const) {
      expect((await ask(handler, request("GET", url))).json.name).toBe(name);
    }
    expect(await ask(handler, request("GET", "/w/nobody/.well-known/agent-card.json"))).toMatchObject({ status: 404 });
  });

  test.each(["/", "/weatherman/tasks/t1", "/weathe", "", "/.well-known/agent-card.json", "/%77eather/tasks"])(
    "answer %j, which has no agent, with a 404 of the protocol",
    async (url) => {
      const answer = await ask(serveMounts([mount("/weather")]), request("GET", url));
      expect(answer).toMatchObject({
        status: 404,
        json: { error: { code: 404 } },
        headers: { "content-type": "application/json" },
      });
    },
  );

  test("answer a path of ten thousand slashes like any unknown path", async () => {
    const long = `/weather${"/".repeat(10_000)}`;
    expect(await ask(serveMounts([mount("/weather")]), request("GET", long))).toMatchObject({ status: 404 });
  });

  test.each([
    ["one path twice", [mount("/a"), mount("/a")]],
    ["one tenant twice", [mount("/a", "x"), mount("/a", "x")]],
    ["a path that is a tenant of the one above", [mount("", "acme"), mount("/acme")]],
    ["a path that is a route of the one above", [mount(""), mount("/tasks")]],
    ["a path below a route of the one above", [mount("/a"), mount("/a/tasks/x")]],
    ["a path at the card of the one above", [mount(""), mount("/.well-known/x")]],
    ["a path with a route's verb", [mount(""), mount("/message:send")]],
    ["a tenant named as a route", [mount("", "tasks")]],
    ["a tenant named as a verb", [mount("", "message:send")]],
    ["an empty tenant", [mount("", "")]],
    ["a tenant that is a dot", [mount("", "..")]],
    ["a path without its slash", [mount("weather")]],
    ["a path with a query", [mount("/a?b")]],
    ["a path with a blank", [mount("/a b")]],
    ["a path with dots", [mount("/a/../b")]],
    ["a path with an empty segment", [mount("/a//b")]],
  ])("reject %s when they are combined", (_, mounts) => {
    expect(() => serveMounts(mounts)).toThrow(A2AError);
    expect(() => serveMounts(mounts)).toThrow(/cannot be served/);
  });
});

test("report which URLs they serve, for frameworks that serve the others", () => {
  const knows = createRouter([mount("/a"), mount("/a", "acme"), mount("/b")], routerOptions()).answers;
  const own = [
    "/a",
    "/a/",
    "/a?x",
    "/a/tasks",
    "/a/tasks/t1:cancel?x",
    "/a/message:send",
    "/a/acme/tasks/t1",
    "/b/tasks",
  ];
  const cards = ["/a/.well-known/agent-card.json", "/a/acme/.well-known/agent-card.json"];
  const others = [
    "/",
    "/tasks",
    "/a/nope",
    "/a/users/7",
    "/a/other/tasks",
    "/b/acme/tasks",
    "/ab",
    "/b/x/.well-known/agent-card.json",
  ];
  expect([...own, ...cards].filter((url) => !knows(url))).toEqual([]);
  expect(others.filter(knows)).toEqual([]);
});

describe("CORS", () => {
  const preflight = (origin: string, url = "/message:send") =>
    request("OPTIONS", url, { headers: { origin, "access-control-request-method": "POST" } });

  test("is off by default", async () => {
    const handler = serveMounts([mount("")]);
    const answer = await ask(handler, request("GET", "/tasks/t1", { headers: { origin: "https://app.example" } }));
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    expect((await ask(handler, preflight("https://app.example"))).status).toBe(405);
  });

  test("allows any page with `true`: the A2A headers, credentials and Last-Event-ID", async () => {
    const handler = serveMounts([mount("")], {
      cors: true,
      authenticate: () => Promise.reject(new A2AError("Unauthenticated", undefined, { challenge: "Bearer" })),
    });
    const asked = await ask(handler, preflight("https://app.example"));
    expect(asked).toMatchObject({ status: 204, text: "", headers: { "access-control-allow-origin": "*" } });
    const allowed = asked.headers["access-control-allow-headers"]?.split(", ");
    for (const name of [
      "authorization",
      "content-type",
      "a2a-version",
      "a2a-extensions",
      "x-a2a-extensions",
      "last-event-id",
      "if-none-match",
    ]) {
      expect(allowed).toContain(name);
    }
    expect(asked.headers["access-control-allow-methods"]).toBe("GET, HEAD, POST, DELETE");
    // Pages must also be able to read errors.
    const refused = await ask(handler, request("GET", "/tasks/t1", { headers: { origin: "https://app.example" } }));
    expect(refused).toMatchObject({
      status: 401,
      headers: { "access-control-allow-origin": "*", "www-authenticate": "Bearer" },
    });
    for (const name of ["a2a-extensions", "x-a2a-extensions", "www-authenticate", "retry-after", "etag"]) {
      expect(refused.headers["access-control-expose-headers"]?.split(", ")).toContain(name);
    }
  });

  test("allows the origins of its list, and sends Vary", async () => {
    const handler = serveMounts([mount("")], {
      cors: { origins: ["https://app.example"], headers: ["x-api-key"], maxAge: 60 },
    });
    const good = await ask(handler, preflight("https://app.example"));
    expect(good.headers).toMatchObject({
      "access-control-allow-origin": "https://app.example",
      "access-control-max-age": "60",
      vary: "Origin",
    });
    expect(good.headers["access-control-allow-headers"]?.split(", ")).toContain("x-api-key");
    for (const origin of ["https://evil.example", "https://app.example.evil.example", "null"]) {
      const bad = await ask(handler, preflight(origin));
      expect(bad.headers).toEqual({ vary: "Origin" });
      const answer = await ask(handler, request("GET", "/tasks/t1", { headers: { origin } }));
      expect(answer.headers).not.toHaveProperty("access-control-allow-origin");
      expect(answer.headers["vary"]).toBe("Origin");
    }
  });

  test.each([
    ["https://app.example/", 'Write "https://app.example"'],
    ["https://App.example:443", 'Write "https://app.example"'],
    ["app.example", 'Write "https://app.example"'],
    ["*", 'Set cors.origins to "*", not to a list'],
  ])("rejects %s in its list, which no browser sends", (origin, cure) => {
    expect(() => serveMounts([mount("")], { cors: { origins: [origin] } })).toThrow(cure);
  });

  test("allows apps and browser extensions in its list", () => {
    const origins = ["null", "capacitor://localhost", "chrome-extension://abcdef", "http://[::1]:3000"];
    expect(() => serveMounts([mount("")], { cors: { origins } })).not.toThrow();
  });

  test("applies to cards and streams", async () => {
    const handler = serveMounts([mount("")], { cors: true });
    const headers = { origin: "https://app.example" };
    const asked = await ask(handler, request("GET", "/.well-known/agent-card.json", { headers }));
    expect(asked.headers).toMatchObject({ "access-control-allow-origin": "*", "cache-control": "public, max-age=300" });
    const stream = await handler(request("GET", "/tasks/t1:subscribe", { headers }));
    expect(stream.headers).toMatchObject({ "access-control-allow-origin": "*", "content-type": "text/event-stream" });
    await settled();
  });

  test("answers an OPTIONS request that is not a preflight with 405", async () => {
    const handler = serveMounts([mount("")], { cors: true });
    expect(
      (await ask(handler, request("OPTIONS", "/tasks", { headers: { origin: "https://app.example" } }))).status,
    ).toBe(405);
  });
});
