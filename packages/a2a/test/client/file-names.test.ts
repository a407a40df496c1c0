import { join, sep } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { safeFileName } from "../../src/files/content.ts";

const hostile = [
  "../../etc/passwd",
  "..\\..\\windows\\system32\\x",
  "/etc/passwd",
  "C:\\x",
  "C:x",
  "..",
  ".",
  "",
  "a/../../b",
  ".bashrc",
  "...",
  "-rf",
  "nul",
  "COM1.txt",
  "a\u0000b",
  "a\nb",
  "\u001b[2Jx",
  "x\u202egpj",
  "file:stream",
  "x".repeat(5000),
  `${"x".repeat(300)}.${"y".repeat(300)}`,
  "trailing. ",
  "日本語".repeat(100),
  "CON",
  "NUL .txt",
  "COM¹",
  "lpt³.log",
  "conin$",
  "\ud83d",
];

describe("the name of a file", () => {
  test.each(hostile)("%j becomes one harmless path segment", (name) => {
    const safe = safeFileName(name);
    expect(safe).toMatch(/^[^./\\:\p{Cc}\p{Cf}-][^/\\:\p{Cc}\p{Cf}]*$/u);
    expect(safe).not.toMatch(/^(?:con|prn|aux|nul|conin\$|conout\$|com[\d¹²³]|lpt[\d¹²³]) *(?:\.|$)/i);
    expect(Buffer.byteLength(safe)).toBeLessThanOrEqual(201);
  });

  test("cannot leave the folder", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (name) => {
        const path = join("/base", safeFileName(name));
        expect(path.startsWith(`/base${sep}`)).toBe(true);
        expect(path.split(sep)).toHaveLength(3);
        expect(Buffer.byteLength(path)).toBeLessThan(220);
      }),
    );
  });

  test("stays as it is if it is ordinary", () => {
    expect(["chart.svg", "Bericht 2026 – März.pdf", "a.tar.gz"].map((name) => safeFileName(name))).toEqual([
      "chart.svg",
      "Bericht 2026 – März.pdf",
      "a.tar.gz",
    ]);
  });
});
