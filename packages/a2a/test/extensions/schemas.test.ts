import { describe, expect, test } from "vitest";
import { standardSchema } from "../../src/extensions/schemas.ts";
import type { SchemaResult, StandardSchema } from "../../src/model/index.ts";
import { list, number, object, optional, record, required, satisfying, string } from "../../src/model/schema.ts";

interface Trip {
  readonly to: string;
  readonly stops?: readonly { readonly km: number }[];
  readonly notes?: Readonly<Record<string, string>>;
}

const trip = standardSchema(
  object<Trip>({
    to: required(satisfying(string, "must be the name of a place", (text) => /^[A-Z]/.test(text))),
    stops: optional(list(object({ km: required(number(0)) }))),
    notes: optional(record(string)),
  }),
);

const validate = <T>(schema: StandardSchema<T>, value: unknown): SchemaResult<T> => {
  const result = schema["~standard"].validate(value);
  if (result instanceof Promise) throw new TypeError("It must answer at once");
  return result;
};

describe("schemas of packaged extensions, as Standard Schemas", () => {
  test("a valid value is copied, without unknown members, and stays unchanged", () => {
    const value = { to: "Oslo", stops: [{ km: 1.5, other: 1 }], other: true };
    const before = structuredClone(value);
    expect(validate(trip, value)).toEqual({ value: { to: "Oslo", stops: [{ km: 1.5 }] } });
    expect(value).toEqual(before);
  });

  test("an invalid value is named with its path, in members and in lists", () => {
    const { issues } = validate(trip, { to: "oslo", stops: [{ km: 1 }, { km: -1 }, {}], notes: { a: 1 } });
    expect(issues).toEqual([
      { message: "must be the name of a place", path: ["to"] },
      { message: "must be a number, 0 or more", path: ["stops", 1, "km"] },
      { message: "is required", path: ["stops", 2, "km"] },
      { message: "must be a string", path: ["notes", "a"] },
    ]);
  });

  test("a value of another type, and undefined, yield issues and never throw", () => {
    for (const value of [undefined, null, 5, "x", [], () => 1, new Date()]) {
      expect(validate(trip, value).issues?.length, String(value)).toBe(1);
    }
    expect(validate(standardSchema(number()), Number.NaN).issues).toEqual([{ message: "must be a number", path: [] }]);
  });

  test("issues are limited, however much is wrong", () => {
    const stops = Array.from({ length: 10_000 }, () => ({ km: "far" }));
    expect(validate(trip, { to: "Oslo", stops }).issues?.length).toBe(32);
  });
});
