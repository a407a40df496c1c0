import { describe, expect, test } from "vitest";
import { connect, type ConnectOptions } from "../../src/client/index.ts";
import type { ObservedRetry } from "../../src/protocol/index.ts";
import { cardOf, errorOf, HandClock, jsonRpcAt, listen, replayExtensions, rpcServer, taskEvent } from "./support.ts";

/** Creates a client whose server answers 503, with a clock that advances to the end of each wait. */
async function outage(retryAfter: readonly number[] = [], options: ConnectOptions = {}) {
  const clock = new HandClock();
  const begun = clock.elapsed();
  const retries: ObservedRetry[] = [];
  const attempts: number[] = [];
  const server = await rpcServer((call) => {
    if (call.method === "SendStreamingMessage") {
      call.events.send(taskEvent());
      return call.events.drop();
    }
    attempts.push(clock.elapsed() - begun);
    const wait = retryAfter[attempts.length - 1];
    call.page(503, wait === undefined ? {} : { "retry-after": String(wait) }, "");
  });
  const observer = {
    retry(retry: ObservedRetry) {
      retries.push(retry);
      void clock.armed(retry.delay).then(() => clock.advance(retry.delay));
    },
  };
  const card = cardOf([jsonRpcAt(server.url)], { capabilities: { streaming: true, ...replayExtensions } });
  const client = await connect(card, { clock, connectTimeout: false, idleTimeout: false, observer, ...options });
  return { client, clock, retries, attempts };
}

describe("the retry budget", () => {
  test("is 30 s a call: delays double from 0.2 s to 5 s, half of each is random, and the last attempt is at its end", async () => {
    const { client, retries, attempts } = await outage();
    const error = await errorOf(client.getTask("t1"));
    for (const [at, { delay, attempt, elapsed, operation, error: cause }] of retries.entries()) {
      const full = Math.min(5_000, 200 * 2 ** at);
      expect(delay).toBeLessThanOrEqual(full);
      expect(delay).toBeGreaterThanOrEqual(Math.min(full / 2, 30_000 - elapsed));
      expect({ attempt, operation, code: cause.code }).toEqual({
        attempt: at + 1,
        operation: "GetTask",
        code: "Unavailable",
      });
      expect(elapsed).toBeCloseTo(attempts[at] ?? NaN, 6);
    }
    expect(attempts.at(-1)).toBeCloseTo(30_000, 6);
    expect(retries.length).toBeGreaterThanOrEqual(10);
    expect(error).toMatchObject({
      code: "Unavailable",
      message: expect.stringMatching(
        new RegExp(`Temporarily unavailable \\(gave up after ${attempts.length} attempts in 30 s\\)$`),
      ) as string,
    });
  });

  test("waits as long as Retry-After says, within the budget, and fails at once beyond it", async () => {
    const { client, attempts } = await outage([12, 3, 16]);
    const error = await errorOf(client.getTask("t1"));
    expect(attempts).toEqual([0, 12_000, 15_000]);
    expect(error).toMatchObject({
      code: "Unavailable",
      retryAfter: 16,
      message: expect.stringContaining(
        "gave up after 3 attempts in 15 s: Retry-After is 16 s, the retry budget 30 s",
      ) as string,
    });
  });

  test("covers connect(), which reports the request for the card to the observer", async () => {
    const clock = new HandClock();
    const retries: ObservedRetry[] = [];
    const url = await listen((_, response) => void response.writeHead(502).end());
    const retry = (each: ObservedRetry): void => {
      retries.push(each);
      void clock.armed(each.delay).then(() => clock.advance(each.delay));
    };
    const error = await errorOf(
      connect(url, { clock, connectTimeout: false, idleTimeout: false, observer: { retry } }),
    );
    expect(error).toMatchObject({ code: "InvalidResponse" });
    expect((error as Error).message).toMatch(/gave up after \d+ attempts in 30 s\)$/);
    expect(new Set(retries.map(({ operation }) => operation))).toEqual(new Set(["AgentCard"]));
  });

  test("is 2 minutes for a stream that lost its connection, and names the task to the observer", async () => {
    const { client, retries, attempts } = await outage();
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const event of client.sendStreamingMessage("go")) seen.push(event.task?.id);
    })();
    const error = await errorOf(reading);
    expect(seen).toEqual(["t1"]);
    expect(attempts.at(-1)).toBeCloseTo(120_000, 6);
    expect(new Set(retries.map(({ taskId }) => taskId))).toEqual(new Set(["t1"]));
    expect((error as Error).message).toMatch(/gave up after \d+ attempts in 120 s\)$/);
  });

  test("ends with the call's signal, or with its timeout, whose error names the earlier failure", async () => {
    const { client, clock } = await outage([20], { retry: { budget: Infinity } });
    const late = errorOf(client.getTask("t1", { timeout: 5_000 }));
    await clock.armed(20_000);
    expect(await late).toMatchObject({
      code: "Timeout",
      message: expect.stringMatching(
        /^The call took longer than 5000 ms; before: [^]*Temporarily unavailable$/,
      ) as string,
    });
    const controller = new AbortController();
    const held = await outage([], { observer: { retry: () => controller.abort() } });
    expect(await errorOf(held.client.getTask("t1", { signal: controller.signal }))).toMatchObject({ code: "Aborted" });
    expect(held.attempts).toHaveLength(1);
  });

  test("replaces the count of attempts, and a JavaScript caller gets an error that says so", async () => {
    const retry = { attempts: 5 } as object;
    expect(await errorOf(connect("https://agent.example", { retry }))).toMatchObject({
      code: "InvalidParams",
      fields: [{ field: "retry.attempts", description: "was replaced by retry.budget, in milliseconds" }],
    });
  });

  test("is not spent on permanent failures: `false` and certificate errors fail at once", async () => {
    const { client, attempts } = await outage([], { retry: false });
    expect(await errorOf(client.getTask("t1"))).toMatchObject({
      message: expect.not.stringContaining("gave up") as string,
    });
    expect(attempts).toHaveLength(1);
    let tries = 0;
    const fetch = (): Promise<never> => {
      tries += 1;
      const cause = Object.assign(new Error("self-signed certificate"), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
      return Promise.reject(new TypeError("fetch failed", { cause }));
    };
    expect(await errorOf(connect("https://agent.example", { fetch }))).toMatchObject({ code: "ConnectionFailed" });
    expect(tries).toBe(1);
  });
});
