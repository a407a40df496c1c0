import { describe, expect, it, test } from "vitest";
import { canonicalJson } from "../../src/cards/index.ts";

/** Returns the number with these 64 bits. */
function fromBits(hex: string): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(`0x${hex}`));
  return view.getFloat64(0);
}

/** Numbers and their texts (RFC 8785, appendix B). */
const numbers: readonly (readonly [string, string])[] = [
  ["0000000000000000", "0"],
  ["8000000000000000", "0"],
  ["0000000000000001", "5e-324"],
  ["8000000000000001", "-5e-324"],
  ["7fefffffffffffff", "1.7976931348623157e+308"],
  ["ffefffffffffffff", "-1.7976931348623157e+308"],
  ["4340000000000000", "9007199254740992"],
  ["c340000000000000", "-9007199254740992"],
  ["4430000000000000", "295147905179352830000"],
  ["44b52d02c7e14af5", "9.999999999999997e+22"],
  ["44b52d02c7e14af6", "1e+23"],
  ["44b52d02c7e14af7", "1.0000000000000001e+23"],
  ["444b1ae4d6e2ef4e", "999999999999999700000"],
  ["444b1ae4d6e2ef4f", "999999999999999900000"],
  ["444b1ae4d6e2ef50", "1e+21"],
  ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
  ["3eb0c6f7a0b5ed8d", "0.000001"],
  ["41b3de4355555553", "333333333.3333332"],
  ["41b3de4355555554", "333333333.33333325"],
  ["41b3de4355555555", "333333333.3333333"],
  ["41b3de4355555556", "333333333.3333334"],
  ["41b3de4355555557", "333333333.33333343"],
  ["becbf647612f3696", "-0.0000033333333333333333"],
  ["43143ff3c1cb0959", "1424953923781206.2"],
];

describe("canonicalJson (RFC 8785)", () => {
  test.each(numbers)("writes the number with the bits %s as %s (appendix B)", (bits, text) => {
    expect(canonicalJson(fromBits(bits))).toBe(text);
  });

  it("writes values without spaces, and escapes only what must be escaped (§3.2.2)", () => {
    const value: unknown = JSON.parse(
      String.raw`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],` +
        String.raw`"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
    );
    expect(canonicalJson(value)).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],` +
        String.raw`"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  it("sorts members by UTF-16 code units, so that an emoji comes before U+FB33 (§3.2.3)", () => {
    const names = ["\u20ac", "\r", "\ufb33", "1", "\u{1f600}", "\u0080", "\u00f6"];
    const value = Object.fromEntries(names.map((name) => [name, name]));
    const sorted = Object.keys(JSON.parse(canonicalJson(value)) as object);
    // `JSON.parse` moves the member `1` to the front, but the canonical form does not.
    expect(canonicalJson(value).indexOf('"\\r"')).toBe(1);
    expect(sorted.filter((name) => name !== "1")).toEqual(["\r", "\u0080", "\u00f6", "\u20ac", "\u{1f600}", "\ufb33"]);
  });

  it("sorts the members of objects within lists too", () => {
    expect(canonicalJson([{ b: 1, a: [{ d: 1, c: 2 }] }, null])).toBe('[{"a":[{"c":2,"d":1}],"b":1},null]');
  });

  it("keeps a member with the name of the prototype", () => {
    expect(canonicalJson(JSON.parse('{"__proto__":{"z":1},"a":1}'))).toBe('{"__proto__":{"z":1},"a":1}');
  });

  test.each([
    ["a number that is not finite", JSON.parse("[1e999]") as unknown],
    ["no number", Number.NaN],
    ["half of a surrogate pair", { text: "\ud800" }],
    ["half of a surrogate pair in a name", { "\udfff": 1 }],
    ["a function", { run: () => 1 }],
    ["a bigint", { count: 1n }],
    ["more levels than the stack holds", JSON.parse(`${"[".repeat(50_000)}${"]".repeat(50_000)}`) as unknown],
  ])("rejects %s (§3.1)", (_name, value) => {
    expect(() => canonicalJson(value)).toThrow(/There is no canonical form/);
  });
});
