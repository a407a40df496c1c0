import { describe, expect, it } from "vitest";
import { fakeClock } from "@parley/testing";
import { Pace } from "../../src/engine/run/drive.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the time slice of agents", () => {
  it("is a millisecond of each turn of the event loop for all agents together; then they wait for the next turn", async () => {
    const clock = fakeClock();
    const pace = new Pace(clock);
    expect(pace.rest()).toBeUndefined();
    expect(pace.rest()).toBeUndefined();
    clock.advance(1);
    let over = 0;
    const rests = [pace.rest(), pace.rest()].map(async (rest) => {
      expect(rest).toBeInstanceOf(Promise);
      await rest;
      over += 1;
    });
    for (let microtask = 0; microtask < 100; microtask += 1) await Promise.resolve();
    expect(over).toBe(0);
    await Promise.all(rests);
    // The next millisecond starts when the callers continue.
    expect(pace.rest()).toBeUndefined();
    clock.advance(1);
    expect(pace.rest()).toBeInstanceOf(Promise);
  });

  it("begins a new millisecond in each turn", async () => {
    const clock = fakeClock();
    const pace = new Pace(clock);
    expect(pace.rest()).toBeUndefined();
    await turn();
    await turn();
    clock.advance(5);
    expect(pace.rest()).toBeUndefined();
  });
});
