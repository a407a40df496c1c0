import { describe, expect, test } from "vitest";
import type { A2AError } from "../../src/model/index.ts";
import { BodyBytes, GrowingBytes, type BodyReader } from "../../src/protocol/index.ts";
import { Unfinished } from "../../src/transport/server/unfinished.ts";
import { StillClock } from "./support.ts";

const kib = 1024;
const mib = 1024 * kib;

/** A body that the server is receiving, with a record of the reader's calls. */
class Sending implements BodyReader {
  readonly body: BodyBytes;
  resumed = 0;
  refused: A2AError | undefined;

  constructor(budget: Unfinished, announced: number | undefined, connection?: object) {
    this.body = new BodyBytes(mib, announced, budget.enter(this, connection));
  }

  resume(): void {
    this.resumed++;
  }

  refuse(error: A2AError): void {
    this.refused = error;
  }
}

const budgetOf = (bytes: number, clock = new StillClock()) => ({ budget: new Unfinished(bytes, mib, clock), clock });

describe("the bytes of a body", () => {
  test("are the same in any pieces, in one buffer of at most twice their size", () => {
    const whole = Uint8Array.from({ length: 100_000 }, (_, at) => at % 251);
    for (const size of [1, 7, 4096, 99_999]) {
      const bytes = new GrowingBytes(mib);
      for (let at = 0; at < whole.length; at += size) bytes.append(whole.subarray(at, at + size));
      expect(Buffer.compare(bytes.view(), whole)).toBe(0);
      expect(bytes.capacity).toBeLessThanOrEqual(2 * whole.length);
    }
  });

  test("are copied only a few times, even if more arrive than announced", () => {
    const bytes = new GrowingBytes(10);
    const capacities = new Set<number>();
    for (let count = 0; count < 100_000; count++) {
      bytes.append(Uint8Array.of(1));
      capacities.add(bytes.capacity);
    }
    expect(bytes.length).toBe(100_000);
    expect(capacities.size).toBeLessThan(12);
    expect(Math.min(...capacities)).toBe(10);
  });

  test("do not keep a large buffer that a small piece is a view of", () => {
    const slab = new Uint8Array(64 * kib);
    const body = new BodyBytes(mib, undefined);
    body.push(slab.subarray(0, 10));
    expect(body.take().buffer.byteLength).toBeLessThan(2 * kib);
    const whole = new BodyBytes(mib, undefined);
    whole.push(slab);
    expect(whole.take().buffer).toBe(slab.buffer);
  });

  test("are rejected over the limit, announced or not", () => {
    expect(() => new BodyBytes(10, 11).begin()).toThrow(expect.objectContaining({ code: "RequestTooLarge" }));
    const body = new BodyBytes(10, undefined);
    body.push(new Uint8Array(10));
    expect(() => body.push(new Uint8Array(1))).toThrow(expect.objectContaining({ code: "RequestTooLarge" }));
  });
});

describe("the memory of all unfinished bodies", () => {
  test("is limited: beyond the limit large bodies wait for memory before any of them is read", () => {
    const { budget } = budgetOf(8 * mib);
    const all = Array.from({ length: 200 }, () => new Sending(budget, 950 * kib));
    const begun = all.filter(({ body }) => body.begin());
    expect(begun).toHaveLength(5);
    expect(budget.used).toBeLessThanOrEqual(8 * mib);
    begun[0]!.body.leave();
    expect(all.filter(({ resumed }) => resumed === 1)).toHaveLength(1);
  });

  test("has a reserved part for small bodies", () => {
    const { budget } = budgetOf(8 * mib);
    for (let count = 0; count < 200; count++) new Sending(budget, mib).body.begin();
    const small = new Sending(budget, 100);
    expect(small.body.begin()).toBe(true);
    expect(small.body.push(new Uint8Array(100))).toBe(true);
    expect(small.body.take()).toHaveLength(100);
  });

  test("is given to the smallest waiting body first", () => {
    const { budget } = budgetOf(2 * mib);
    const first = new Sending(budget, mib);
    expect(first.body.begin()).toBe(true);
    const [large, middle] = [new Sending(budget, mib), new Sending(budget, mib / 2)];
    expect([large, middle].map(({ body }) => body.begin())).toEqual([false, false]);
    first.body.leave();
    expect([large.resumed, middle.resumed]).toEqual([0, 1]);
  });

  test("includes the queue, in which bodies of unknown size wait with the bytes that have arrived", () => {
    const { budget } = budgetOf(2 * mib);
    const all = Array.from({ length: 20 }, () => new Sending(budget, undefined));
    const ends = all.map(({ body }) => {
      try {
        return body.push(new Uint8Array(100 * kib));
      } catch (error) {
        return (error as A2AError).code;
      }
    });
    expect(new Set(ends)).toEqual(new Set([true, false, "Unavailable"]));
    expect(ends.filter((end) => end === true)).toHaveLength(1);
    expect(budget.used).toBeLessThanOrEqual(2 * mib);
  });

  test("is taken from slow senders only if others wait", () => {
    const { budget, clock } = budgetOf(2 * mib);
    const stalled = new Sending(budget, mib);
    stalled.body.begin();
    stalled.body.push(new Uint8Array(900 * kib));
    clock.advance(60_000);
    expect(stalled.refused).toBeUndefined();
    const waiting = new Sending(budget, mib);
    expect(waiting.body.begin()).toBe(false);
    clock.advance(4_000);
    expect(stalled.refused).toMatchObject({ code: "Unavailable", retryAfter: 5 });
    expect(waiting.resumed).toBe(1);
    const third = new Sending(budget, mib);
    expect(third.body.begin()).toBe(false);
    for (let second = 0; second < 8; second++) {
      waiting.body.push(new Uint8Array(50 * kib));
      clock.advance(1_000);
    }
    expect([waiting.refused, third.refused]).toEqual([undefined, undefined]);
    waiting.body.take();
    expect(third.resumed).toBe(1);
  });

  test("is waited for only for a limited time", () => {
    const { budget, clock } = budgetOf(2 * mib);
    const busy = new Sending(budget, mib);
    busy.body.begin();
    const waiting = new Sending(budget, mib);
    waiting.body.begin();
    for (let second = 0; second < 12; second++) {
      busy.body.push(new Uint8Array(10 * kib));
      clock.advance(1_000);
    }
    expect(waiting.refused).toMatchObject({ code: "Unavailable" });
    expect(clock.timers).toBe(0);
  });

  test("also limits how many bodies wait, although none of their bytes have arrived", () => {
    const { budget } = budgetOf(2 * mib);
    const outcomes = Array.from({ length: 1_000 }, () => {
      try {
        return new Sending(budget, mib).body.begin();
      } catch (error) {
        return (error as A2AError).code;
      }
    });
    expect(outcomes.filter((outcome) => outcome === false).length).toBeLessThanOrEqual(256);
    expect(outcomes.at(-1)).toBe("Unavailable");
    expect(budget.used).toBeLessThanOrEqual(2 * mib);
  });

  test("has a limit for each connection", () => {
    const { budget } = budgetOf(8 * mib);
    const connection = {};
    const own = Array.from({ length: 10 }, () => new Sending(budget, mib, connection));
    expect(own.filter(({ body }) => body.begin())).toHaveLength(2);
    expect(new Sending(budget, mib, {}).body.begin()).toBe(true);
  });

  test("is released when all bodies are complete", () => {
    const { budget, clock } = budgetOf(2 * mib);
    const all = [100, 100 * kib, mib, undefined].map((announced) => new Sending(budget, announced, {}));
    for (const { body } of all) if (body.begin()) body.push(new Uint8Array(100));
    for (const { body } of all) body.leave();
    expect(budget.used).toBe(0);
    clock.advance(5_000);
    expect(clock.timers).toBe(0);
  });
});
