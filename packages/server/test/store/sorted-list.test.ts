import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SortedList } from "../../src/store/memory/lists.ts";

describe("SortedList", () => {
  it("equals a sorted array (property)", () => {
    const operation = fc.tuple(fc.constantFrom("add", "add", "add", "delete"), fc.integer({ min: 0, max: 5000 }));
    fc.assert(
      fc.property(
        // These sequences are long enough for several chunks.
        fc.array(operation, { minLength: 1000, maxLength: 4000, size: "max" }),
        fc.array(fc.integer({ min: -1, max: 5001 }), { minLength: 20, maxLength: 20 }),
        (operations, probes) => {
          const list = new SortedList<number, number>((a, b) => a - b);
          const reference = new Set<number>();
          for (const [name, value] of operations) {
            if (name === "delete") expect(list.delete(value)).toBe(reference.delete(value));
            else if (!reference.has(value)) {
              reference.add(value);
              list.add(value);
            }
          }
          const sorted = [...reference].sort((a, b) => a - b);
          expect(list.size).toBe(sorted.length);
          expect(list.first()).toBe(sorted[0]);
          expect(list.after(undefined, 10_000)).toEqual(sorted);
          for (const probe of probes) {
            expect(list.rank(probe)).toBe(sorted.filter((value) => value < probe).length);
            expect(list.after(probe, 700)).toEqual(sorted.filter((value) => value > probe).slice(0, 700));
            expect(list.last(Math.abs(probe))).toEqual(sorted.slice(Math.max(0, sorted.length - Math.abs(probe))));
          }
        },
      ),
      { numRuns: 20 },
    );
  });
});
