import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ChurnMap } from "../../src/engine/shared/collections.ts";

it("works like a Map while thousands of entries come and go", () => {
  const step = fc.tuple(fc.constantFrom("set", "delete"), fc.integer({ min: 0, max: 100 }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 2_000, size: "max" }), (steps) => {
      const map = new ChurnMap<number, number>();
      const model = new Map<number, number>();
      steps.forEach(([what, key], at) => {
        if (what === "set") {
          map.set(key, at);
          model.set(key, at);
        } else {
          map.delete(key);
          model.delete(key);
        }
        expect([map.size, map.get(key), map.has(key)]).toEqual([model.size, model.get(key), model.has(key)]);
      });
      expect([...map.values()]).toEqual([...model.values()]);
    }),
    { numRuns: 30 },
  );
});

it("can be iterated while entries are deleted", () => {
  const map = new ChurnMap<number, number>();
  for (let key = 0; key < 1_000; key++) map.set(key, key);
  const seen: number[] = [];
  for (const value of map.values()) {
    seen.push(value);
    map.delete(value);
  }
  expect(seen).toEqual(Array.from({ length: 1_000 }, (_, key) => key));
  expect(map.size).toBe(0);
});
