import { describe, expect, it } from "vitest";
import { BoundedMap, memoryOf } from "../../src/base/bounded-map.ts";

function heldOf(map: BoundedMap<string>, names: readonly string[]): readonly string[] {
  return names.filter((name) => map.get(name) !== undefined);
}

describe("a bounded map", () => {
  it("keeps the newest entries within its byte limit", () => {
    const map = new BoundedMap<string>({ bytes: 200_000, bytesOf: memoryOf });
    const names = Array.from({ length: 1000 }, (_, n) => `${n}`);
    for (const name of names) {
      const value = "x".repeat(5000);
      map.set(name, value);
      expect(map.get(name)).toBe(value);
      const held = heldOf(map, names);
      expect(held.length * memoryOf(name, value)).toBeLessThanOrEqual(200_000 + 1000);
      // The map keeps the newest entries.
      expect(held).toEqual(names.slice(Number(name) + 1 - held.length, Number(name) + 1));
    }
    map.clear();
    expect(heldOf(map, names)).toEqual([]);
  });

  it("keeps at least the given number of the newest entries, and at most twice as many", () => {
    const map = new BoundedMap<string>({ bytes: Infinity, entries: 10, bytesOf: memoryOf });
    const names = Array.from({ length: 100 }, (_, n) => `${n}`);
    for (const [at, name] of names.entries()) {
      map.set(name, name);
      const held = heldOf(map, names);
      expect(held.length).toBeGreaterThanOrEqual(Math.min(at + 1, 10));
      expect(held.length).toBeLessThanOrEqual(20);
    }
  });

  it("counts a key once, however often it is set", () => {
    const map = new BoundedMap<number>({ bytes: 20_000, bytesOf: (key) => memoryOf(key) });
    map.set("first", 1);
    for (let n = 0; n < 1000; n += 1) map.set("same", n);
    expect([map.get("first"), map.get("same")]).toEqual([1, 999]);
  });

  it("does not keep a value larger than half of its limit, and drops the previous value", () => {
    const map = new BoundedMap<string>({ bytes: 10_000, bytesOf: memoryOf });
    map.set("a", "small");
    map.set("b", "small");
    map.set("a", "x".repeat(5000));
    expect([map.get("a"), map.get("b")]).toEqual([undefined, "small"]);
  });
});
