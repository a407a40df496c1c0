import { describe, expect, it } from "vitest";
import { Origin, type Known } from "../../src/push/circuit.ts";

const most = 16;
const random = 0.5;

/** Returns an origin that has answered many requests in 20 ms each. */
function answering(): Origin<string> {
  const origin = new Origin<string>("https://receiver.example.com");
  for (let at = 0; at < 20; at += 1)
    origin.ended({ health: "alive", took: 20 }, { since: at, most, elapsed: at + 20, wall: at + 20, random });
  return origin;
}

describe("requests to an origin", () => {
  it("that fail together, for example during a restart, count as one failure", () => {
    const origin = answering();
    for (let at = 0; at < most; at += 1)
      origin.ended({ health: "dead", took: 5 }, { since: 1_000 + at, most, elapsed: 1_100 + at, wall: 1_100, random });
    expect(origin.openForMs(1_200)).toBe(0);
  });

  it("that fail one after the other close the origin after the fifth, each time for twice as long", () => {
    const origin = answering();
    const closed = [];
    for (let at = 1; at <= 7; at += 1) {
      const elapsed = at * 1_000;
      origin.ended({ health: "dead", took: 5 }, { since: elapsed - 5, most, elapsed, wall: elapsed, random });
      closed.push(origin.openForMs(elapsed));
    }
    expect(closed).toEqual([0, 0, 0, 0, 10_000, 20_000, 40_000]);
  });

  it("that seem unanswered because the process was paused for eight seconds defer no event for long", () => {
    const origin = answering();
    origin.running.push(1_000);
    origin.waiting.push(...Array.from({ length: 300 }, String));
    expect(origin.deferralMs(9_000, random)).toBeLessThan(10_000);
    origin.running.pop();
    origin.ended({ health: "alive", took: 8_000 }, { since: 1_000, most, elapsed: 9_000, wall: 9_000, random });
    expect(origin.trusted).toBe(true);
    expect(origin.deferralMs(9_000, random)).toBeLessThan(10_000);
  });

  it("that take longer than before update the estimate", () => {
    const origin = answering();
    for (let at = 0; at < 12; at += 1)
      origin.ended({ health: "alive", took: 8_000 }, { since: at, most, elapsed: at, wall: at, random });
    expect(origin.trusted).toBe(false);
  });
});

describe("another process's report on an origin", () => {
  const fail = (origin: Origin<string>, elapsed: number) =>
    origin.ended({ health: "dead", took: 5 }, { since: elapsed - 5, most, elapsed, wall: elapsed, random });
  const repeat = 60_000;

  /** Returns an origin that gets no requests for 10 s, starting at second 5. */
  function failing(): Origin<string> {
    const origin = new Origin<string>("https://receiver.example.com");
    for (let at = 1; at <= 5; at += 1) fail(origin, at * 1_000);
    return origin;
  }

  /** Returns a process's report about an origin. */
  function told(origin: Origin<string>, at: number): Known {
    const known = origin.news({ wall: at, elapsed: at }, repeat);
    if (known === undefined) throw new Error("nothing is told");
    return known;
  }

  it("applies to a fresh process: the pause, its remainder, and the concurrency", () => {
    const fresh = new Origin<string>("https://receiver.example.com");
    fresh.learn(told(failing(), 6_000), { wall: 7_000, elapsed: 0 }, most);
    expect(fresh.openForMs(0)).toBe(8_000);
    fail(fresh, 8_001);
    expect(fresh.openForMs(8_001)).toBe(20_000);
    const other = new Origin<string>("https://receiver.example.com");
    other.learn(told(answering(), 100), { wall: 100, elapsed: 0 }, 8);
    expect([other.allowed, other.trusted, other.openForMs(0)]).toEqual([8, true, 0]);
  });

  it("that answers is tried once by the process that failed, and closed for longer if that fails too", () => {
    const origin = failing();
    expect(origin.openForMs(6_000)).toBe(9_000);
    origin.learn({ ...told(answering(), 6_000), at: 6_000 }, { wall: 6_000, elapsed: 6_000 }, most);
    expect(origin.openForMs(6_000)).toBe(0);
    origin.waiting.push("one");
    expect(origin.deferralMs(6_000, random)).toBeGreaterThan(0);
    fail(origin, 6_500);
    expect(origin.openForMs(6_500)).toBe(20_000);
  });

  it("of a failure is checked by this process's next request, which decides", () => {
    for (const health of ["alive", "dead"] as const) {
      const origin = answering();
      origin.learn(told(failing(), 6_000), { wall: 6_000, elapsed: 6_000 }, most);
      expect([origin.openForMs(6_000), origin.allowed, origin.trusted]).toEqual([0, 1, false]);
      origin.ended({ health, took: 5 }, { since: 6_001, most, elapsed: 6_100, wall: 6_100, random });
      expect(origin.openForMs(6_100)).toBe(health === "dead" ? 20_000 : 0);
      expect(origin.news({ wall: 6_100, elapsed: 6_100 }, repeat)).toMatchObject({ succeeded: health === "alive" });
    }
  });

  it("changes nothing if this process has learned something since; no pause exceeds the maximum", () => {
    const origin = answering();
    origin.learn({ ...told(failing(), 6_000), at: 10 }, { wall: 6_000, elapsed: 6_000 }, most);
    expect([origin.trusted, origin.allowed]).toEqual([true, most]);
    const fresh = new Origin<string>("https://receiver.example.com");
    const odd = { ...told(failing(), 6_000), until: 1e15, pause: 1e15, at: 1e15, allowed: 1e15 };
    fresh.learn(odd, { wall: 6_000, elapsed: 0 }, most);
    expect(fresh.openForMs(0)).toBeLessThanOrEqual(6 * 60_000);
    expect(fresh.allowed).toBe(1);
  });

  it("is published when it changes, and otherwise once in a while", () => {
    const origin = answering();
    expect(origin.news({ wall: 100, elapsed: 100 }, repeat)).toMatchObject({ allowed: most, failures: 0 });
    expect(origin.news({ wall: 200, elapsed: 200 }, repeat)).toBeUndefined();
    expect(origin.news({ wall: 100 + repeat, elapsed: 0 }, repeat)).toBeDefined();
    fail(origin, 200_000);
    expect(origin.news({ wall: 200_000, elapsed: 200_000 }, repeat)).toMatchObject({ failures: 1 });
    const fresh = new Origin<string>("https://receiver.example.com");
    expect(fresh.news({ wall: 1, elapsed: 1 }, repeat)).toBeUndefined();
  });
});
