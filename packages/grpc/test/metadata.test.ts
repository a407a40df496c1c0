import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeMessage, encodeMessage, formatTimeout, parseTimeout } from "../src/metadata.ts";

describe("deadlines", () => {
  test.each([
    ["1H", 3_600_000],
    ["2M", 120_000],
    ["3S", 3_000],
    ["100m", 100],
    ["1500u", 2],
    ["1n", 1],
    ["0m", 0],
    // Longer than a timer allows, about three weeks: no deadline.
    ["99999999H", undefined],
    [undefined, undefined],
  ])("%s is %s ms", (text, milliseconds) => {
    expect(parseTimeout(text)).toBe(milliseconds);
  });

  test.each(["", "10", "m", "1.5S", "-1S", "123456789m", "1s", "1 S"])("%j is invalid", (text) => {
    expect(parseTimeout(text)).toBeNaN();
  });

  test("are written within eight digits, and read back the same", () => {
    expect(formatTimeout(1500.2)).toBe("1501m");
    expect(formatTimeout(-4)).toBe("0m");
    expect(formatTimeout(100_000_000)).toBe("100000S");
    expect(parseTimeout(formatTimeout(99_999_999))).toBe(99_999_999);
    expect(formatTimeout(Number.POSITIVE_INFINITY)).toBe("99999999S");
  });
});

describe("grpc-message", () => {
  test("is encoded as printable ASCII, and decoded", () => {
    expect(encodeMessage("100 % sûr\n")).toBe("100 %25 s%C3%BBr%0A");
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const encoded = encodeMessage(text);
        expect(encoded).toMatch(/^[ -~]*$/);
        expect(decodeMessage(encoded)).toBe(text);
      }),
    );
  });

  test("of a peer that does not escape is read unchanged", () => {
    expect(decodeMessage("100 % sure, %zz and %2")).toBe("100 % sure, %zz and %2");
    expect(decodeMessage("%ff")).toBe("\ufffd");
  });
});
