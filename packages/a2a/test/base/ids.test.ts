import { expect, it } from "vitest";
import { timeOrderedIds } from "../../src/base/index.ts";

it("makes unique UUIDs of version 7 in the order of their time (RFC 9562 §5.7)", () => {
  const ids = timeOrderedIds();
  const before = Date.now();
  const made = Array.from({ length: 2_000 }, () => ids.next());
  const after = Date.now();
  expect(new Set(made).size).toBe(made.length);
  const times = made.map((id) => {
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
  });
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  for (const time of times) expect(time >= before && time <= after).toBe(true);
});
