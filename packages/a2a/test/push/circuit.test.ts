import { describe, expect, it } from "vitest";
import { Origin } from "../../src/push/circuit.ts";

const most = 16;
const random = 0.5;

/** An origin that has answered many requests in 20 ms each. */
function answering(): Origin<string> {
  const origin = new Origin<string>("https://receiver.example.com");
  for (let at = 0; at < 20; at += 1)
    origin.ended({ health: "alive", took: 20 }, { since: at, most, elapsed: at + 20, random });
  return origin;
}

describe("requests to an origin", () => {
  it("that were under way together and fail together, as when it starts again, are one failure", () => {
    const origin = answering();
    for (let at = 0; at < most; at += 1)
      origin.ended({ health: "dead", took: 5 }, { since: 1_000 + at, most, elapsed: 1_100 + at, random });
    expect(origin.closedFor(1_200)).toBe(0);
  });

  it("that fail one after the other close it after five, for twice as long each time", () => {
    const origin = answering();
    const closed = [];
    for (let at = 1; at <= 7; at += 1) {
      const elapsed = at * 1_000;
      origin.ended({ health: "dead", took: 5 }, { since: elapsed - 5, most, elapsed, random });
      closed.push(origin.closedFor(elapsed));
    }
    expect(closed).toEqual([0, 0, 0, 0, 10_000, 20_000, 40_000]);
  });

  it("that a process found unanswered when it went on, after it stood still for eight seconds, put off no event for long", () => {
    const origin = answering();
    origin.running.push(1_000);
    origin.waiting.push(...Array.from({ length: 300 }, String));
    expect(origin.putOffFor(9_000, random)).toBeLessThan(10_000);
    origin.running.pop();
    origin.ended({ health: "alive", took: 8_000 }, { since: 1_000, most, elapsed: 9_000, random });
    expect(origin.trusted).toBe(true);
    expect(origin.putOffFor(9_000, random)).toBeLessThan(10_000);
  });

  it("that take longer than before, one after the other, are believed", () => {
    const origin = answering();
    for (let at = 0; at < 12; at += 1)
      origin.ended({ health: "alive", took: 8_000 }, { since: at, most, elapsed: at, random });
    expect(origin.trusted).toBe(false);
  });
});
