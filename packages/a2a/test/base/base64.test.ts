import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fromBase64Url, fromCanonicalBase64, isBase64Url, isCompactJws, toBase64Url } from "../../src/base/bytes.ts";

/* Values that are compared or revoked as text must have only one spelling (RFC 4648 §3.5). */

const bytes = fc.uint8Array({ maxLength: 80 });
const character = fc.constantFrom(
  ...Array.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=. \n\0é"),
);

/** One change of a text: a character is replaced, inserted or removed, or padding and white space is added at the end. */
const change = fc.record({
  kind: fc.constantFrom("replace", "insert", "remove", "append"),
  at: fc.nat(),
  character,
  tail: fc.constantFrom("=", "==", "===", "A", "\n", " ", "."),
});
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

function changed(text: string, { kind, at, character: put, tail }: Change): string {
  if (kind === "append") return text + tail;
  const place = text === "" ? 0 : at % (text.length + (kind === "insert" ? 1 : 0));
  return text.slice(0, place) + (kind === "remove" ? "" : put) + text.slice(place + (kind === "insert" ? 0 : 1));
}

describe.each([
  ["base64url", (from: Uint8Array) => Buffer.from(from).toString("base64url"), fromBase64Url],
  ["base64 with padding", (from: Uint8Array) => Buffer.from(from).toString("base64"), fromCanonicalBase64],
] as const)("canonical %s", (_name, write, read) => {
  test("is decoded as by Node", () => {
    fc.assert(
      fc.property(bytes, (given) => {
        expect(read(write(given))).toEqual(given);
      }),
      { numRuns: 500 },
    );
  });

  test("after any change is rejected, or has other bytes", () => {
    const holds = fc.property(bytes, change, (given, how) => {
      const text = changed(write(given), how);
      const found = read(text);
      // If the decoder accepts a text, that text is the only encoding of its bytes.
      if (found !== undefined) expect(write(found)).toBe(text);
    });
    fc.assert(holds, { numRuns: 5_000 });
  });

  test("is rejected with every last character whose unused bits are not zero", () => {
    for (const length of [1, 2, 4, 5, 16, 32, 64]) {
      const text = write(new Uint8Array(length).fill(0xa5));
      const body = text.replace(/=+$/, "");
      const padding = text.slice(body.length);
      const accepted = Array.from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/").filter((last) =>
        Buffer.from(read(body.slice(0, -1) + last + padding) ?? []).equals(Buffer.alloc(length, 0xa5)),
      );
      expect([length, accepted]).toEqual([length, [body.at(-1)]]);
    }
  });
});

test("base64url is encoded as by Node", () => {
  fc.assert(
    fc.property(bytes, (given) => {
      expect(toBase64Url(given)).toBe(Buffer.from(given).toString("base64url"));
    }),
  );
});

test("a compact JWS has three parts, each with one valid spelling", () => {
  expect(["YQ.YQ.YQ", "YWI.YWJj.YQ"].filter((text) => !isCompactJws(text))).toEqual([]);
  const refused = ["", "YQ.YQ", "YQ.YQ.YQ.YQ", "YR.YQ.YQ", "YQ.YQ.YR", "YQ==.YQ.YQ", "YQ.YQ.YQ==", "YQ.YQ.Y"];
  expect(refused.filter(isCompactJws)).toEqual([]);
  expect(isBase64Url("")).toBe(true);
});
