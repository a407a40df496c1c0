import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { schemaOf, operatorRoutes, type OperatorRoute } from "../../src/operate/routes.ts";
import { times } from "../../../../test/counts.ts";
import { document, gate, serve, unlike, unlikeSchema, until, type Served } from "./support.ts";

/* Generates requests of every kind from the OpenAPI document. The responses must be documented, and must not be server errors. */

const url = "http://127.0.0.1:4000/ops";

/** Starts a server with tasks that run, that wait for an event or for their user, that have failed, and that are done. */
async function busy(): Promise<{ readonly on: Served; readonly ids: readonly string[] }> {
  const hold = gate();
  const on = serve(async function* (turn) {
    yield turn.working("On it");
    await turn.step("book", () => 1);
    if (turn.text === "run") await hold.passed;
    if (turn.text === "wait") yield* turn.waitFor("paid");
    if (turn.text === "ask") return yield turn.inputRequired("Which one?");
    if (turn.text === "fail") throw new Error("the printer burns");
    yield turn.completed("Done");
  });
  onTestFinished(hold.open);
  const ids = await Promise.all(["run", "wait", "ask", "fail", "end"].map((text) => on.send(text)));
  const kinds = ["running", "event", "input", "done", "done"];
  await until(async () => {
    const found = await Promise.all(ids.map(async (id) => (await on.why(id)).kind));
    return found.join() === kinds.join();
  });
  return { on, ids };
}

interface Sent {
  readonly route: OperatorRoute;
  readonly method: string;
  readonly inputs: Readonly<Record<string, unknown>>;
}

/** Generates valid, nearly valid and invalid values for a route's input. */
function valueOf(name: string, route: OperatorRoute, ids: readonly string[]): fc.Arbitrary<unknown> {
  const schema = schemaOf(route.inputs[name] ?? { type: "string", description: "" });
  const isText = schema["type"] === "string";
  const known: Readonly<Record<string, readonly unknown[]>> = {
    agent: ["/", "no such"],
    taskId: ids,
    step: ["book"],
    wait: ["1.event.1", "event:paid"],
    order: ["oldest", "newest"],
    states: [["TASK_STATE_WORKING"], ["TASK_STATE_FAILED", "TASK_STATE_WORKING"]],
    since: ["2026-11-28T20:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:60+23:59"],
    suspended: [true, false],
    limit: [1, 500, 501, 0, -1, 1.5, 1e21, Number.MAX_SAFE_INTEGER],
    seq: [1, 2, 3, 4, 5, 0, 2 ** 53],
  };
  const right = known[name] ?? known["since"] ?? [];
  const hostile = ["", "\u0000", "\ud800", "../..", "'; DROP TABLE tasks", "ä".repeat(680), "\u0000".repeat(680)];
  const long = isText ? [681, 4_096, 4_097].map((length) => "x".repeat(length)) : ["9".repeat(400)];
  return fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...right) },
    { weight: 2, arbitrary: fc.constantFrom(...hostile, ...long) },
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  );
}

function requests(ids: readonly string[]): fc.Arbitrary<Sent> {
  return fc.constantFrom(...operatorRoutes).chain((route) =>
    fc.record({
      route: fc.constant(route),
      method: fc.oneof(
        { weight: 9, arbitrary: fc.constant(route.method) },
        { weight: 1, arbitrary: fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS") },
      ),
      inputs: fc.oneof(
        {
          weight: 9,
          arbitrary: fc.record(
            Object.fromEntries(Object.keys(route.inputs).map((name) => [name, valueOf(name, route, ids)])),
            { requiredKeys: Object.keys(route.inputs).filter((name) => route.inputs[name]?.required === true) },
          ),
        },
        { weight: 1, arbitrary: fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 1 })) },
      ),
    }),
  );
}

/** Returns the reason why a body does not match the document, or `undefined` if it matches. */
function unlikeBody({ path }: OperatorRoute, body: unknown): string | undefined {
  const schema = document.paths[path]?.["post"]?.requestBody?.content["application/json"].schema;
  return unlikeSchema(schema ?? false, body);
}

async function send(on: Served, { route, method, inputs }: Sent): Promise<Response> {
  const json = { "content-type": "application/json" };
  if (method === "POST")
    return on.handler.fetch(
      new Request(`${url}${route.path}`, { method, headers: json, body: JSON.stringify(inputs) }),
    );
  const query = new URLSearchParams(
    Object.entries(inputs).map(([name, value]): [string, string] => {
      const text = Array.isArray(value) ? value.join(",") : JSON.stringify(value);
      return [name, typeof value === "string" ? value : text];
    }),
  );
  return on.handler.fetch(new Request(`${url}${route.path}?${query.toString()}`, { method }));
}

describe("any request", () => {
  it("gets a documented answer, and is rejected if its inputs are invalid", async () => {
    const { on, ids } = await busy();
    const seen = new Map<number, number>();
    await fc.assert(
      fc.asyncProperty(requests(ids), async (sent) => {
        const { route, method, inputs } = sent;
        const response = await send(on, sent);
        const { status } = response;
        seen.set(status, (seen.get(status) ?? 0) + 1);
        if (method !== route.method) {
          expect([status, response.headers.get("allow")]).toEqual([405, route.method]);
          return;
        }
        const body: unknown = await response.json();
        expect(unlike(method, route.path, status, body)).toBeUndefined();
        expect(status).toBeLessThan(500);
        // Query values are always text, so the next test checks numbers and lists in a query.
        if (method !== "POST") return;
        const wrong = unlikeBody(route, inputs);
        expect([status === 400, wrong ?? "right"]).toEqual([wrong !== undefined, wrong ?? "right"]);
      }),
      { numRuns: times(150, 3_000) },
    );
    for (const status of [200, 400, 404, 405, 409]) expect([status, seen.get(status) ?? 0]).not.toEqual([status, 0]);
  });

  it("that the API does not have is rejected as documented", async () => {
    const { on } = await busy();
    const json = { "content-type": "application/json" };
    const large = JSON.stringify({ agent: "/", taskId: "t", reason: "x".repeat(70_000) });
    const bodies: readonly (readonly [body: string | Uint8Array, headers: Record<string, string>, status: number])[] = [
      ["", json, 400],
      ["{", json, 400],
      ["null", json, 400],
      ["7", json, 400],
      ['["agent"]', json, 400],
      [`${"[".repeat(30_000)}`, json, 400],
      [new Uint8Array([0xff, 0xfe]), json, 400],
      ["agent=/", { "content-type": "application/x-www-form-urlencoded" }, 400],
      ['{"agent":"/","agent":7,"taskId":"t"}', json, 400],
      ['{"__proto__":{"agent":"/"},"taskId":"t"}', json, 400],
      [large, json, 413],
    ];
    for (const route of operatorRoutes.filter(({ method }) => method === "POST")) {
      for (const [body, headers, expected] of bodies) {
        const response = await on.handler.fetch(new Request(`${url}${route.path}`, { method: "POST", headers, body }));
        const answer: unknown = await response.json();
        expect([route.path, body.slice(0, 40), response.status]).toEqual([route.path, body.slice(0, 40), expected]);
        expect(unlike("POST", route.path, response.status, answer)).toBeUndefined();
      }
    }
    for (const path of ["/v1/acts/explode", "/v1/tasks/t", "/v2/tasks", "/v1/%2e%2e/task", "/"]) {
      const response = await on.handler.fetch(new Request(url + path));
      expect([path, response.status]).toEqual([path, 404]);
    }
  });
});
