import { describe, expect, onTestFinished, test } from "vitest";
import { defineAgent } from "../../src/agent/index.ts";
import { anyOf, apiKey, basic, bearer, hashPassword, type Authenticator } from "@parley/a2a/internal/auth/index";
import { deferred } from "@parley/a2a/internal/base/index";
import { createHandler, type HandlerOptions } from "../../src/handler.ts";
import type { RateLimiter } from "../../src/limits/port.ts";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { AuditRecord } from "@parley/a2a/internal/protocol/index";
import { memoryStore } from "../../src/store/index.ts";
import { fakeClock } from "../../../testing/src/fake-clock.ts";

const agent = defineAgent({
  name: "Echo",
  description: "Says it again.",
  version: "1.0.0",
  skills: [],
  onMessage: (turn) => turn.reply(turn.text),
});

/** Creates an authenticator that takes the caller's name from a header. `later`: delays the authentication until the test resolves it. */
function names(later?: Promise<void>): Authenticator & { asked: number } {
  const authenticator: Authenticator & { asked: number } = {
    asked: 0,
    securitySchemes: { name: { apiKeySecurityScheme: { location: "header", name: "x-name" } } },
    securityRequirements: [{ schemes: { name: { list: [] } } }],
    authenticate(request) {
      authenticator.asked++;
      const answer = (): { subject: string } => {
        const subject = request.header("x-name");
        if (subject === undefined) throw new A2AError("Unauthenticated");
        if (subject === "banned") throw new A2AError("PermissionDenied");
        return { subject };
      };
      return later === undefined ? answer() : later.then(answer);
    },
  };
  return authenticator;
}

/** Starts a server. Returns a function that lists tasks under a name and from an address. */
function serving(options: Partial<HandlerOptions>) {
  const handler = createHandler(agent, {
    publicUrl: "https://agents.example.com",
    store: memoryStore(),
    facts: (_request, remoteAddress) => ({ remoteAddress: remoteAddress as string }),
    ...options,
  });
  onTestFinished(() => handler.close());
  const send = (name?: string, address = "192.0.2.1"): Promise<Response> =>
    handler.fetch(
      new Request("https://agents.example.com/tasks", { headers: name === undefined ? {} : { "x-name": name } }),
      address,
    );
  const list = async (name?: string, address?: string): Promise<number> => (await send(name, address)).status;
  return { handler, send, list };
}

const minute = 60_000;

describe("limits.rate.principal", () => {
  test("limits each caller separately, whatever its address is", async () => {
    const clock = fakeClock();
    const rate = { principal: { requests: 2, per: minute } };
    const { list, send } = serving({ authenticator: names(), clock, limits: { rate } });
    expect([await list("ada"), await list("ada", "192.0.2.2"), await list("ada", "192.0.2.3")]).toEqual([
      200, 200, 429,
    ]);
    expect(await list("bob")).toBe(200);
    const refused = await send("ada");
    expect(refused.headers.get("retry-after")).toBe("30");
    expect(await refused.json()).toMatchObject({ error: { code: 429, status: "RESOURCE_EXHAUSTED" } });
    clock.advance(30_000);
    expect([await list("ada"), await list("ada")]).toEqual([200, 429]);
  });

  test("takes nothing from a caller if others use its name without its credentials", async () => {
    const rate = { principal: { requests: 1, per: minute } };
    const { list } = serving({ authenticator: names(), clock: fakeClock(), limits: { rate } });
    expect([await list(), await list("banned"), await list("ada")]).toEqual([401, 403, 200]);
  });

  test("distinguishes anonymous callers by their addresses; of an IPv6 address, the first 64 bits count", async () => {
    const { list } = serving({ clock: fakeClock(), limits: { rate: { principal: { requests: 1, per: minute } } } });
    expect([await list(undefined, "2001:db8::1"), await list(undefined, "2001:db8::2")]).toEqual([200, 429]);
    expect(await list(undefined, "2001:db8:0:1::1")).toBe(200);
  });
});

describe("limits.rate.address", () => {
  test("rejects before authentication", async () => {
    const authenticator = names();
    const rate = { address: { requests: 2, per: minute } };
    const { list } = serving({ authenticator, clock: fakeClock(), limits: { rate } });
    expect([await list("ada"), await list(), await list("bob")]).toEqual([200, 401, 429]);
    expect(authenticator.asked).toBe(2);
    expect(await list("bob", "192.0.2.2")).toBe(200);
  });

  test("does not count if the host does not report addresses", async () => {
    const { handler } = serving({ limits: { rate: { address: { requests: 1, per: minute } } } });
    const silent = createHandler(agent, {
      publicUrl: "https://agents.example.com",
      store: memoryStore(),
      limits: { rate: { address: { requests: 1, per: minute }, failures: { requests: 1, per: minute } } },
    });
    onTestFinished(() => silent.close());
    expect(handler.agents).toHaveLength(1);
    const list = async (): Promise<number> =>
      (await silent.fetch(new Request("https://agents.example.com/tasks"))).status;
    expect([await list(), await list(), await list()]).toEqual([200, 200, 200]);
  });
});

describe("limits.rate.failures", () => {
  const limits = { rate: { failures: { requests: 3, per: minute } } };

  test("blocks an address after guesses for some time, even with valid credentials", async () => {
    const clock = fakeClock();
    const authenticator = names();
    const { list, send } = serving({ authenticator, clock, limits });
    expect([await list(), await list(), await list("ada"), await list()]).toEqual([401, 401, 200, 401]);
    const refused = await send("ada");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "20"]);
    expect(authenticator.asked).toBe(4);
    expect(await list("ada", "192.0.2.2")).toBe(200);
    clock.advance(20_000);
    expect([await list("ada"), await list(), await list("ada")]).toEqual([200, 401, 429]);
  });

  test("counts neither successes nor known callers without permission", async () => {
    const { list } = serving({ authenticator: names(), clock: fakeClock(), limits });
    for (let at = 0; at < 10; at++) expect([await list("ada"), await list("banned")]).toEqual([200, 403]);
  });

  test("lets no more concurrent guesses through than sequential ones", async () => {
    const later = deferred<void>();
    const authenticator = names(later.promise);
    const { list } = serving({ authenticator, clock: fakeClock(), limits });
    const guesses = Array.from({ length: 100 }, () => list());
    later.resolve();
    const statuses = await Promise.all(guesses);
    expect(statuses.filter((status) => status === 401)).toHaveLength(3);
    expect(statuses.filter((status) => status === 429)).toHaveLength(97);
    expect(authenticator.asked).toBe(3);
  });

  test("rejects no valid credentials, however many arrive at the same time", async () => {
    const later = deferred<void>();
    const authenticator = names(later.promise);
    const { list } = serving({ authenticator, clock: fakeClock(), limits });
    const calls = Array.from({ length: 900 }, () => list("ada"));
    later.resolve();
    expect(new Set(await Promise.all(calls))).toEqual(new Set([200]));
    expect(authenticator.asked).toBe(900);
  });

  describe("with several credentials in a request (A2A 1.0 §4.5: one of the requirements)", () => {
    const passwordOf = (password: string): string => `Basic ${btoa(`ada:${password}`)}`;

    async function several(): Promise<{
      readonly audits: AuditRecord[];
      list(headers: Record<string, string>): Promise<number>;
    }> {
      const audits: AuditRecord[] = [];
      const authenticator = anyOf(
        basic({ ada: { password: await hashPassword("right", { iterations: 1 }) } }),
        bearer({ "token-of-ada": { subject: "ada" } }, { scopes: ["more"] }),
        bearer({ "token-of-bob": { subject: "bob" } }, { name: "other" }),
        apiKey({ "key-of-eve": { subject: "eve" } }),
      );
      const audit = (record: AuditRecord): void => void audits.push(record);
      const { handler } = serving({ authenticator, clock: fakeClock(), limits, audit });
      const list = async (headers: Record<string, string>): Promise<number> =>
        (await handler.fetch(new Request("https://agents.example.com/tasks", { headers }), "192.0.2.1")).status;
      return { audits, list };
    }

    test("counts a caller's guesses beside its own credentials, and audits them", async () => {
      const { audits, list } = await several();
      const guess = (password: string): Promise<number> =>
        list({ authorization: passwordOf(password), "x-api-key": "key-of-eve" });
      expect([await guess("a"), await guess("b"), await guess("c"), await guess("right")]).toEqual([
        200, 200, 200, 429,
      ]);
      const wrong = { event: "authentication", outcome: "refused", code: "Unauthenticated", subject: "eve" };
      expect(audits.slice(0, 3)).toEqual([1, 2, 3].map(() => expect.objectContaining(wrong) as unknown));
    });

    test("counts guesses beside credentials that are rejected before they are checked", async () => {
      const { list } = await several();
      const guess = (key: string): Promise<number> =>
        list({ authorization: passwordOf("x"), "sec-fetch-site": "cross-site", "x-api-key": key });
      expect([await guess("a"), await guess("b"), await guess("c"), await guess("key-of-eve")]).toEqual([
        403, 403, 403, 429,
      ]);
    });

    test("does not count a token that the first scheme rejects and another accepts", async () => {
      const { audits, list } = await several();
      for (let at = 0; at < 10; at++) {
        expect(await list({ authorization: "Bearer token-of-bob" })).toBe(200);
        expect(await list({ authorization: "Bearer token-of-ada" })).toBe(403);
      }
      expect(audits.filter(({ event }) => event === "authentication")).toEqual([]);
    });
  });

  test("keeps few requests waiting for others of their address", async () => {
    const later = deferred<void>();
    const authenticator = names(later.promise);
    const { list } = serving({ authenticator, clock: fakeClock(), limits });
    const calls = Array.from({ length: 2_000 }, () => list("ada"));
    later.resolve();
    const statuses = await Promise.all(calls);
    // The server checks 3 requests, and 1,000 wait.
    expect(statuses.filter((status) => status === 200)).toHaveLength(1_003);
    expect(statuses.filter((status) => status === 429)).toHaveLength(997);
  });
});

describe("a custom limiter", () => {
  /** Creates a limiter that records the keys of the budgets, and always gives this answer. */
  function spent(answer: Awaited<ReturnType<RateLimiter["take"]>>): RateLimiter & { readonly keys: string[] } {
    const keys: string[] = [];
    return {
      keys,
      take: (key, cost) => {
        keys.push(`${cost} ${key}`);
        return Promise.resolve(answer);
      },
    };
  }

  test("gets the caller, and the server awaits its answer", async () => {
    const principal = spent({ ok: false, retryAfter: 1500 });
    const address = spent({ ok: true, retryAfter: 0 });
    const { send } = serving({ authenticator: names(), limits: { rate: { principal, address } } });
    const refused = await send("ada");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "2"]);
    expect([address.keys, principal.keys]).toEqual([["1 address 192.0.2.1"], ['1 principal [null,"ada"]']]);
  });

  test.each([
    [
      "throws",
      () => {
        throw new Error("no store");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no store"))],
  ] as const)("that %s limits nothing, and is logged once a minute", async (_how, take) => {
    const clock = fakeClock();
    const errors: string[] = [];
    const quiet = (): void => {};
    const logger = { debug: quiet, info: quiet, warn: quiet, error: (message: string) => void errors.push(message) };
    const { list } = serving({ clock, logger, limits: { rate: { address: { take } } } });
    expect([await list(), await list()]).toEqual([200, 200]);
    expect(errors).toEqual(["Rate limiter failed; requests are not limited"]);
    clock.advance(minute);
    expect(await list()).toBe(200);
    expect(errors).toHaveLength(2);
  });
});

test.each([
  [{ principal: { requests: 0, per: 1 } }, "limits.rate.principal.requests"],
  [{ address: { requests: 1, per: Number.NaN } }, "limits.rate.address.per"],
  [{ failures: { requests: -1, per: 1 } }, "limits.rate.failures.requests"],
  [{ principal: { requests: 1, per: Infinity } }, "limits.rate.principal.per"],
  [{ address: { requests: "many", per: 1 } as never }, "limits.rate.address.requests"],
  [{ shared: "no" as never }, "limits.rate.shared"],
])("a server rejects %j at startup", (rate, field) => {
  expect(() => serving({ limits: { rate } })).toThrow(field);
});

test("requests that a limit rejects are audited, with the address and without credentials", async () => {
  const records: unknown[] = [];
  const rate = { principal: { requests: 1, per: minute }, failures: { requests: 1, per: minute } };
  const audit = (record: unknown): void => void records.push(record);
  const { list } = serving({ authenticator: names(), clock: fakeClock(), limits: { rate }, audit });
  expect([await list("ada"), await list("ada"), await list(), await list("ada")]).toEqual([200, 429, 401, 429]);
  const refused = { outcome: "refused", address: "192.0.2.1" };
  expect(records).toEqual([
    expect.objectContaining({ event: "limit", code: "TooManyRequests", ...refused }),
    expect.objectContaining({ event: "authentication", code: "Unauthenticated", ...refused }),
    expect.objectContaining({ event: "limit", code: "TooManyRequests", ...refused }),
  ]);
});
