import { describe, expect, onTestFinished, test } from "vitest";
import { bearer } from "../../src/auth/index.ts";
import type { LogFields } from "../../src/base/index.ts";
import { createHandler, type HandlerOptions } from "@parley/server/internal/handler";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import { fakeClock } from "../../../testing/src/fake-clock.ts";
import { collect } from "../../../../test/secrets.ts";

/* Tests the default log of rejected requests, which has one line per minute for any number of requests. */

const trace = "0af7651916cd43dd8448eb211c80319c";
const secret = "secret-of-ada-0123456789";
const url = "http://localhost:4000";

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

/** A request from a caller. */
interface Sent {
  readonly token?: string;
  readonly address?: string;
  readonly path?: string;
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

function serving(options: Partial<HandlerOptions> = {}) {
  const clock = fakeClock();
  const lines: Line[] = [];
  const write =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      collect(message, fields);
      lines.push({ level, message, fields });
    };
  const logger = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
  const agent = defineAgent({
    name: "Vault",
    description: "Keeps things",
    version: "1.0.0",
    skills: [],
    onMessage: (turn) => turn.reply("Hello"),
  });
  let address: string | undefined;
  const handler = createHandler([{ agent, id: "vault" }], {
    publicUrl: url,
    store: memoryStore(),
    clock,
    logger,
    authenticator: bearer({ [secret]: { subject: "ada", organization: "acme" } }),
    facts: () => (address === undefined ? {} : { remoteAddress: address }),
    ...options,
  });
  onTestFinished(() => handler.close());
  const ask = async ({
    token,
    path = "/tasks",
    method = "GET",
    body,
    headers = {},
    ...from
  }: Sent): Promise<number> => {
    address = from.address ?? "192.0.2.7";
    const request = new Request(url + path, {
      method,
      headers: {
        "a2a-version": "1.0",
        "content-type": "application/json",
        traceparent: `00-${trace}-b7ad6b7169203331-01`,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return (await handler.fetch(request)).status;
  };
  return { clock, lines, ask, handler, refused: () => lines.filter(({ message }) => message === "Refused requests") };
}

describe("rejected requests", () => {
  test("are logged at warn by default: the first one at once, with its details", async () => {
    const { ask, refused } = serving();
    expect(await ask({ token: "wrong-token-0123456789" })).toBe(401);
    const fields = {
      count: 1,
      authentication: 1,
      code: "Unauthenticated",
      address: "192.0.2.7",
      traceId: trace,
    };
    expect(refused()).toEqual([{ level: "warn", message: "Refused requests", fields }]);
  });

  test("become one line a minute with counts if there are many", async () => {
    const { ask, clock, refused } = serving();
    for (let minute = 0; minute < 3; minute += 1) {
      for (let each = 0; each < 200; each += 1) await ask({});
      clock.advance(60_000);
    }
    const counts = refused().map(({ fields }) => [fields["count"], fields["seconds"]]);
    // The server logs the first request immediately, and the rest of its minute at the end of the minute.
    expect(counts).toEqual([
      [1, undefined],
      [199, 60],
      [200, 60],
      [200, 60],
    ]);
    clock.advance(600_000);
    expect(refused()).toHaveLength(4);
  });

  test("are counted by denial, limit and unknown caller, and name the task", async () => {
    const { ask, clock, refused } = serving({
      authorizer: ({ operation }) => (operation === "GetTask" ? "deny" : "allow"),
      limits: { rate: { principal: { requests: 4, per: 60_000 } } },
    });
    await ask({});
    for (let each = 0; each < 3; each += 1) await ask({ token: secret, path: "/tasks/t-1" });
    await ask({ token: secret });
    expect(await ask({ token: secret })).toBe(429);
    const message = { messageId: "m", contextId: "c-1", taskId: "t-2", role: "ROLE_USER", parts: [{ text: "hi" }] };
    await ask({ method: "POST", path: "/message:send", body: { message } });
    clock.advance(60_000);
    const [, line] = refused();
    expect(line?.fields).toMatchObject({ count: 5, authorization: 3, limit: 1, authentication: 1 });
    const callers = line?.fields["callers"] as readonly LogFields[];
    const ada = { subject: "ada", organization: "acme", address: "192.0.2.7", traceId: trace };
    expect(callers[0]).toEqual({
      count: 3,
      event: "authorization",
      code: "PermissionDenied",
      agent: "vault",
      operation: "GetTask",
      taskId: "t-1",
      ...ada,
    });
    expect(callers).toContainEqual({ count: 1, event: "limit", code: "TooManyRequests", ...ada });
  });

  test("from any number of addresses, names and ids do not add lines or memory", async () => {
    const { ask, clock, refused } = serving({ authorizer: () => "deny" });
    await ask({});
    const long = "x".repeat(5_000);
    for (let each = 0; each < 500; each += 1) {
      await ask({ address: `198.51.100.${each}`, headers: { origin: `https://${long}${each}.example` } });
      await ask({ token: secret, path: `/tasks/${long.slice(0, 200)}${each}`, address: `203.0.113.${each}` });
    }
    clock.advance(60_000);
    expect(refused()).toHaveLength(2);
    const { fields } = refused()[1] as Line;
    expect(fields).toMatchObject({ authentication: 500, authorization: 500, origin: 500 });
    expect(fields["callers"]).toHaveLength(5);
    expect(JSON.stringify(fields).length).toBeLessThan(5_000);
    const listed = (fields["callers"] as readonly { readonly count: number }[]).reduce(
      (sum, one) => sum + one.count,
      0,
    );
    expect(listed + Number(fields["others"])).toBe(fields["count"]);
  });

  test("that are not logged yet are logged when the server closes", async () => {
    const { ask, handler, refused } = serving();
    await ask({});
    await ask({});
    expect(refused()).toHaveLength(1);
    await handler.close();
    expect(refused().map(({ fields }) => fields["count"])).toEqual([1, 1]);
  });

  test("do not include accepted callers", async () => {
    const { ask, clock, lines } = serving();
    expect(await ask({ token: secret })).toBe(200);
    clock.advance(120_000);
    expect(lines).toEqual([]);
  });

  test("do not show a credential", async () => {
    const { ask, clock, lines } = serving();
    const sent = ["wrong-secret-0123456789", "another-secret-0123456789"];
    for (const token of sent) await ask({ token, path: `/tasks?key=${token}`, headers: { "x-api-key": token } });
    clock.advance(60_000);
    expect(JSON.stringify(lines)).not.toMatch(new RegExp(sent.join("|")));
  });
});

describe("a page whose origin CORS does not allow", () => {
  const page = "https://app.example.com";

  test.each([
    ["with a list of other origins", { cors: { origins: ["https://other.example"] } }],
    ["without CORS", {}],
  ] as const)("is logged with its origin and the option that allows it, %s", async (_name, options) => {
    const { ask, refused } = serving(options);
    await ask({ token: secret, headers: { origin: page, "sec-fetch-site": "cross-site" } });
    const fields = { count: 1, origin: page, address: "192.0.2.7", option: "cors.origins" };
    expect(refused()).toEqual([
      { level: "warn", message: "Refused requests", fields: expect.objectContaining(fields) },
    ]);
  });

  test("is logged for its preflight too, once a minute with counts", async () => {
    const { ask, clock, refused } = serving({ cors: { origins: ["https://other.example"] } });
    for (let each = 0; each < 50; each += 1) {
      await ask({ method: "OPTIONS", headers: { origin: page, "access-control-request-method": "POST" } });
    }
    clock.advance(60_000);
    expect(refused().map(({ fields }) => fields["count"])).toEqual([1, 49]);
  });

  test("an allowed page, a page of the server itself and a program are not logged", async () => {
    const { ask, clock, lines } = serving({ cors: { origins: [page] } });
    await ask({ token: secret, headers: { origin: page, "sec-fetch-site": "cross-site" } });
    await ask({ token: secret, headers: { origin: url, "sec-fetch-site": "same-origin" } });
    await ask({ token: secret });
    clock.advance(60_000);
    expect(lines).toEqual([]);
  });

  test("a host that the server does not serve is logged with the option that allows it", async () => {
    const { ask, refused } = serving({ allowedHosts: ["agents.example.com"] });
    expect(await ask({ token: secret, headers: { host: "evil.example" } })).toBeGreaterThanOrEqual(400);
    expect(refused()[0]?.fields).toMatchObject({ host: 1, option: "allowedHosts" });
  });
});
