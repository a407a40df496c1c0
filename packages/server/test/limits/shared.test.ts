import { describe, expect, onTestFinished, test, vi } from "vitest";
import { defineAgent } from "../../src/agent/index.ts";
import type { Authenticator } from "@parley/a2a/internal/auth/index";
import { deferred, silentLogger } from "@parley/a2a/internal/base/index";
import { createHandler } from "../../src/handler.ts";
import type { RateLimits } from "../../src/limits/port.ts";
import { Reports, sharedRateLimiter } from "../../src/limits/shared.ts";
import { A2AError } from "@parley/a2a/internal/model/index";
import { memoryStore } from "../../src/store/index.ts";
import { fakeClock } from "../../../testing/src/fake-clock.ts";
import { testRates } from "./store-rates.ts";

/* Tests limits of several servers on one store (docs/decisions/rate-limits.md). */

const agent = defineAgent({
  name: "Echo",
  description: "Says it again.",
  version: "1.0.0",
  skills: [],
  onMessage: (turn) => turn.reply(turn.text),
});

const minute = 60_000;
const hundred = { requests: 100, per: minute };

/** Creates servers on one store, and functions that list tasks through one server. `checked`: a promise that each credential check awaits. */
function cluster(rate: RateLimits, servers = 2) {
  const clock = fakeClock();
  const rates = testRates(clock);
  const log: string[] = [];
  const logger = { ...silentLogger, error: (message: string) => void log.push(message) };
  const cluster = { clock, rates, log, checks: 0, checked: (): Promise<void> => Promise.resolve() };
  const authenticator: Authenticator = {
    securitySchemes: { name: { apiKeySecurityScheme: { location: "header", name: "x-name" } } },
    securityRequirements: [{ schemes: { name: { list: [] } } }],
    async authenticate(request) {
      cluster.checks += 1;
      await cluster.checked();
      const subject = request.header("x-name");
      if (subject === undefined || subject === "wrong") throw new A2AError("Unauthenticated");
      return { subject };
    },
  };
  const handlers = Array.from({ length: servers }, () => {
    const handler = createHandler(agent, {
      publicUrl: "https://agents.example.com",
      store: Object.assign(memoryStore(), { rates }),
      facts: () => ({ remoteAddress: "192.0.2.1" }),
      authenticator,
      clock,
      logger,
      limits: { rate },
    });
    onTestFinished(() => handler.close());
    return handler;
  });
  /** Sends concurrent requests to the servers in turn. Returns the statuses. */
  const list = (count: number, name = "ada"): Promise<number[]> =>
    Promise.all(
      Array.from({ length: count }, async (_, at) => {
        const request = new Request("https://agents.example.com/tasks", { headers: { "x-name": name } });
        return (await (handlers[at % servers] as (typeof handlers)[0]).fetch(request)).status;
      }),
    );
  return Object.assign(cluster, { list });
}

const count = (statuses: readonly number[], status: number): number =>
  statuses.filter((each) => each === status).length;

/** Waits until the event loop has finished its pending work, because the clock is stopped. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 8; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1));
}

describe("limits.rate.principal over several servers", () => {
  test("100 a minute are exceeded by at most a fiftieth for each server, and the excess is paid back", async () => {
    const { clock, list } = cluster({ principal: hundred });
    const first = count(await list(200), 200);
    expect(first).toBeGreaterThanOrEqual(100);
    expect(first).toBeLessThanOrEqual(104);
    expect(count(await list(50), 200)).toBe(0);
    // Over five minutes, the rate holds.
    let all = first;
    for (let at = 0; at < 10; at += 1) {
      clock.advance(30_000);
      all += count(await list(60), 200);
    }
    expect(all).toBeGreaterThanOrEqual(595);
    expect(all).toBeLessThanOrEqual(604);
  });

  test("a limit below 50 holds exactly: each request asks the store", async () => {
    const { list } = cluster({ principal: { requests: 10, per: minute } }, 3);
    expect(count(await list(90), 200)).toBe(10);
  });

  test("a caller within its limit does not wait for the store, and a single request costs no call", async () => {
    const { clock, rates, list } = cluster({ principal: { requests: 600, per: minute } }, 1);
    expect(await list(1)).toEqual([200]);
    clock.advance(100);
    await settled();
    expect(rates.calls).toEqual([]);
    const gate = deferred<void>();
    rates.before = () => gate.promise;
    expect(count(await list(11), 200)).toBe(11);
    clock.advance(100);
    await settled();
    expect(rates.calls.map((uses) => uses.map(({ used, wanted }) => [used, wanted]))).toEqual([[[12, 0]]]);
    gate.resolve();
    await settled();
    // Ten callers send ten requests per second each, for two seconds. All requests within 100 ms share a call.
    rates.calls.length = 0;
    for (let at = 0; at < 20; at += 1) {
      for (let caller = 0; caller < 10; caller += 1) expect(await list(1, `caller ${caller}`)).toEqual([200]);
      clock.advance(100);
      await settled();
    }
    expect(rates.calls.length).toBeLessThanOrEqual(21);
  });

  test("a caller over the limit costs the store nothing", async () => {
    const { rates, list } = cluster({ principal: hundred }, 1);
    await list(150);
    rates.calls.length = 0;
    expect(count(await list(200), 429)).toBe(200);
    expect(rates.calls).toEqual([]);
  });

  test("while the store fails, each server limits on its own and logs it once; later all requests count", async () => {
    const { clock, rates, log, list } = cluster({ principal: hundred });
    rates.before = () => Promise.reject(new A2AError("Unavailable"));
    expect(count(await list(300), 200)).toBe(200);
    expect(log).toHaveLength(2);
    rates.before = () => Promise.resolve();
    clock.advance(1_500);
    // Each server uses its part of the refill locally, and reports it with the rest.
    expect(count(await list(20), 200)).toBeLessThanOrEqual(4);
    await settled();
    clock.advance(30_000);
    expect(count(await list(100), 200)).toBeLessThanOrEqual(4);
    clock.advance(60_000);
    expect(count(await list(100), 200)).toBeGreaterThan(10);
  });

  test("a store that does not answer delays a request by a second, and others not at all", async () => {
    const { clock, rates, list } = cluster({ principal: hundred }, 1);
    const gate = deferred<void>();
    rates.before = () => gate.promise;
    let answered = 0;
    const waiting = list(50).then((statuses) => {
      answered = count(statuses, 200);
    });
    await vi.waitFor(() => expect(rates.calls).toHaveLength(1));
    await settled();
    expect(answered).toBe(0);
    clock.advance(1_000);
    await waiting;
    expect(answered).toBe(50);
    // The call is still pending, but no request waits for the call.
    expect(count(await list(100), 200)).toBe(51);
    gate.resolve();
    await settled();
    expect(count(await list(10), 200)).toBe(0);
    // The call took longer than a second. The servers report each request that they allowed in that time once, 101 in all.
    clock.advance(100);
    await settled();
    const key = rates.calls[0]?.[0]?.key ?? "";
    const [answer] = await rates.take([{ key, ...hundred, used: 0, wanted: 0 }]);
    expect(Math.round(answer?.back ?? NaN)).toBe(101 * 600 - 100);
  });

  test("`shared: false` counts in each process", async () => {
    const { rates, list } = cluster({ principal: hundred, shared: false });
    expect(count(await list(300), 200)).toBe(200);
    expect(rates.calls).toEqual([]);
  });
});

describe("limits.rate.failures over several servers", () => {
  test("100 guesses a minute are exceeded by at most a tenth for each server, however many arrive at once", async () => {
    const shared = cluster({ failures: hundred });
    const statuses = await shared.list(400, "wrong");
    expect(count(statuses, 401)).toBeGreaterThanOrEqual(100);
    expect(count(statuses, 401)).toBeLessThanOrEqual(120);
    expect(shared.checks).toBe(count(statuses, 401));
    expect(count(statuses, 401) + count(statuses, 429)).toBe(400);
    // The server does not check valid credentials from that address, either.
    expect(await shared.list(2)).toEqual([429, 429]);
  });

  test("a failure at one server counts at the other before the other has checked a tenth of the limit", async () => {
    const { list } = cluster({ failures: { requests: 10, per: minute } });
    // Sends one request at a time, to both servers in turn.
    let failed = 0;
    for (let at = 0; at < 20; at += 1) failed += count(await list(2, "wrong"), 401);
    expect(failed).toBeGreaterThanOrEqual(10);
    expect(failed).toBeLessThanOrEqual(12);
  });

  test("an address with valid credentials asks nothing of the store, and is never rejected", async () => {
    const shared = cluster({ failures: { requests: 20, per: minute } });
    let most = 0;
    let running = 0;
    shared.checked = async () => {
      most = Math.max(most, (running += 1));
      await new Promise((resolve) => setTimeout(resolve, 1));
      running -= 1;
    };
    expect(count(await shared.list(100), 200)).toBe(100);
    expect(shared.rates.calls).toEqual([]);
    // Each server checks a tenth of the limit at a time.
    expect(most).toBe(4);
  });

  test("while the store fails, each server limits guesses on its own", async () => {
    const shared = cluster({ failures: hundred });
    shared.rates.before = () => Promise.reject(new A2AError("Unavailable"));
    expect(count(await shared.list(300, "wrong"), 401)).toBe(200);
    expect(shared.checks).toBe(200);
  });

  test("a store that does not answer delays guesses by a second", async () => {
    const shared = cluster({ failures: hundred }, 1);
    const gate = deferred<void>();
    shared.rates.before = () => gate.promise;
    const waiting = shared.list(300, "wrong");
    await vi.waitFor(() => expect(shared.rates.calls).toHaveLength(1));
    await settled();
    expect(shared.checks).toBe(10);
    shared.clock.advance(1_000);
    // In this second, the budget refilled by one attempt.
    expect(count(await waiting, 401)).toBe(101);
    gate.resolve();
  });
});

test("with more callers than can be reported, each is limited locally, and none waits in memory", async () => {
  const clock = fakeClock();
  const rates = testRates(clock);
  const gate = deferred<void>();
  rates.before = () => gate.promise;
  const reports = new Reports({ rates, clock, logger: silentLogger, isClosed: () => false });
  const limiter = sharedRateLimiter("address", { requests: 10, per: minute }, reports, clock);
  const answers = Array.from({ length: 25_000 }, (_, at) => limiter.take(`address ${at}`, 1));
  expect(answers.filter((answer) => answer instanceof Promise)).toHaveLength(20_000);
  const last = Array.from({ length: 12 }, () => limiter.take("address 24999", 1));
  expect(last.map((answer) => "ok" in answer && answer.ok)).toEqual([
    ...Array.from({ length: 9 }, () => true),
    false,
    false,
    false,
  ]);
  await settled();
  clock.advance(1_000);
  const all = await Promise.all(answers.map(async (answer) => answer));
  expect(all.every(({ ok }) => ok)).toBe(true);
  gate.resolve();
});

describe("a request that waits for a shared limit", () => {
  /** Creates limiters on a store with this latency in milliseconds. */
  function slow(ms: number) {
    const clock = fakeClock();
    const rates = testRates(clock);
    rates.before = () => new Promise((resolve) => clock.after(ms, resolve));
    const reports = new Reports({ rates, clock, logger: silentLogger, isClosed: () => false });
    const limiter = (requests: number) => sharedRateLimiter("limit", { requests, per: minute }, reports, clock);
    const advance = async (by: number): Promise<void> => {
      for (let at = 0; at < by; at += 100) {
        clock.advance(100);
        await settled();
      }
    };
    return { clock, rates, limiter, advance };
  }

  test("precedes five thousand reports that nothing waits for", async () => {
    const { rates, limiter, advance } = slow(400);
    const reported = limiter(100);
    for (let at = 0; at < 10_000; at += 1) void reported.take(`network ${at >> 1}`, 1);
    await advance(100);
    expect(rates.calls).toHaveLength(1);
    let isAnswered = false;
    void Promise.resolve(limiter(10).take("ada", 1)).then(() => (isAnswered = true));
    expect(isAnswered).toBe(false);
    await advance(800);
    expect(isAnswered).toBe(true);
    expect(rates.calls).toHaveLength(3);
    expect(rates.calls[1]).toHaveLength(500);
    expect(rates.calls[1]?.[0]).toMatchObject({ used: 0, wanted: 1 });
  });

  test("waits a second at most, even behind a slow call, and counts once", async () => {
    const { rates, limiter, advance } = slow(900);
    const { take } = limiter(10);
    const answered: string[] = [];
    const ask = (name: string): void => {
      void Promise.resolve(take("ada", 1)).then(({ ok }) =>
        answered.push(`${name} ${ok ? "continues" : "is refused"}`),
      );
    };
    ask("first");
    await settled();
    await advance(100);
    ask("second");
    await advance(800);
    expect(answered).toEqual(["first continues"]);
    await advance(200);
    expect(answered).toEqual(["first continues", "second continues"]);
    // The request that was counted late is not reported again.
    await advance(2_000);
    const counted = rates.calls.flat().reduce((sum, { used, wanted }) => sum + used + wanted, 0);
    expect(counted).toBe(2);
    for (let at = 0; at < 9; at += 1) ask(`${at}`);
    await advance(2_000);
    expect(answered.filter((each) => each.endsWith("continues"))).toHaveLength(10);
    // The limit rejects the eleventh request.
    expect(answered).toHaveLength(11);
  });
});
