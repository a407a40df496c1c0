import { expect, it } from "vitest";
import { Generations, memoryOf } from "../../src/sqlite/generations.ts";

it("keeps what was kept last, and never more than twice the bytes that it may have (D17)", () => {
  const kept = new Generations<string>(100_000);
  const names = Array.from({ length: 1000 }, (_, n) => `${n}`);
  for (const name of names) {
    const value = "x".repeat(5000);
    kept.keep(name, value, memoryOf(name, value));
    expect(kept.find(name)).toBe(value);
    const held = names.filter((each) => kept.find(each) !== undefined);
    expect(held.length * 10_000).toBeLessThanOrEqual(200_000);
    // The last of them are there, whatever went.
    expect(held).toEqual(names.slice(Number(name) + 1 - held.length, Number(name) + 1));
  }
  kept.forget();
  expect(names.some((name) => kept.find(name) !== undefined)).toBe(false);
});

it("counts a name once, however often it is kept", () => {
  const kept = new Generations<number>(10_000);
  kept.keep("first", 1, memoryOf("first"));
  for (let n = 0; n < 1000; n += 1) kept.keep("same", n, memoryOf("same"));
  expect([kept.find("first"), kept.find("same")]).toEqual([1, 999]);
});
