import { expect, it } from "vitest";
import { utf8Length } from "../../src/base/index.ts";

const encoder = new TextEncoder();

it.each([0, 1, 3, 500, 1_023, 1_024, 1_025, 21_845, 70_000])(
  "counts the UTF-8 bytes of texts of %i characters of each kind",
  (length) => {
    for (const sample of ["a", "\u0000", "ü", "字", "😀", "\ud800", "\udc00", "a😀", "\ud800a", "\udc00\ud800"]) {
      const text = sample.repeat(length);
      expect(utf8Length(text)).toBe(encoder.encode(text).length);
      // The end of the text splits a surrogate pair.
      expect(utf8Length(text.slice(0, -1))).toBe(encoder.encode(text.slice(0, -1)).length);
    }
  },
);
