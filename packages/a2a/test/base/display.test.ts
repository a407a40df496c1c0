import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cut, escapeControls, html, jsonLine, line, plain } from "../../src/base/display.ts";

/** Matches characters on which a terminal or a page acts, or that carry hidden text. */
const acting =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\u{e0000}-\u{e00ff}\u{e01f0}-\u{e0fff}]/u;

/** Matches one half of a surrogate pair. */
const halfCharacter = /\p{Cs}/u;

/** Any text, with more special characters than random text has. */
const hostile = fc
  .array(
    fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("\u001b[2J", "\r", "\u202e", "\u2066", "\u{e0041}", "\u{1f3f4}", "\ud800", "<script>", "\u009b"),
    ),
  )
  .map((pieces) => pieces.join(""));

/** Removes flags that consist of tag characters, because these flags are allowed. */
const withoutFlags = (text: string): string => text.replace(/\u{1f3f4}[\u{e0061}-\u{e007a}]{5}\u{e007f}/gu, "");

describe("untrusted text on a terminal", () => {
  test("shows escape sequences as harmless text", () => {
    expect(plain("\u001b[2J\u001b]0;title\u0007red\u009b31m")).toBe("␛[2J␛]0;title␇red<U+009B>31m");
  });

  test("does not let a carriage return overwrite a line; a Windows line break stays a line break", () => {
    expect(plain("safe\rhacked")).toBe("safe␍hacked");
    expect(plain("a\r\nb\tc\n")).toBe("a\nb\tc\n");
  });

  test("shows marks that change text direction", () => {
    expect(plain("a\u202egpj.exe")).toBe("a<U+202E>gpj.exe");
  });

  test("shows text that is hidden in tags, variation selectors or annotations", () => {
    expect(plain("Hi\u{e0041}\u{e0042}")).toBe("Hi<U+E0041><U+E0042>");
    expect(plain("Hi\u{e0151}")).toBe("Hi<U+E0151>");
    expect(plain("Hi\ufff9x\ufffb")).toBe("Hi<U+FFF9>x<U+FFFB>");
    expect(plain("\u845b\u{e0100}\u{e0101}")).toBe("\u845b\u{e0100}<U+E0101>");
  });

  test("keeps letters and emoji of any language", () => {
    const text =
      "Grüße, 你好, שלום, 👩‍👩‍👧, 🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}, 葛\u{e0100}, می‌خواهم, ❤️";
    expect(plain(text)).toBe(text);
    expect(jsonLine(text)).toBe(`"${text}"`);
  });

  test("contains no control character, whatever the input, and one line stays one line", () => {
    fc.assert(
      fc.property(hostile, (text) => {
        expect(withoutFlags(plain(text))).not.toMatch(acting);
        expect(plain(text)).not.toMatch(halfCharacter);
        expect(line(text)).not.toMatch(/[\n\t]/);
        expect(withoutFlags(line(text))).not.toMatch(acting);
        expect(withoutFlags(escapeControls(text))).not.toMatch(acting);
      }),
    );
  });
});

describe("long untrusted text", () => {
  test("is truncated, and says how much is left out", () => {
    expect(plain("x".repeat(12), 10)).toBe("xxxxxxxxxx… (2 more characters)");
    expect(line("x".repeat(1001))).toBe(`${"x".repeat(1000)}… (1 more characters)`);
    expect(html("x".repeat(1001))).toBe(`${"x".repeat(1000)}… (1 more characters)`);
    expect(plain("x".repeat(10_000))).toHaveLength(10_000);
  });

  test("is never cut inside a character", () => {
    expect(cut("a👩b", 2)).toBe("a… (3 more characters)");
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.nat(20), (text, limit) => {
        const shown = cut(text, limit);
        expect(halfCharacter.test(shown)).toBe(halfCharacter.test(text));
        if (text.length > limit) expect(text.startsWith(shown.slice(0, shown.indexOf("…")))).toBe(true);
      }),
    );
  });
});

test("a line of JSON keeps its value, and contains no control character", () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
      const text = jsonLine(value);
      expect(withoutFlags(text)).not.toMatch(acting);
      expect(text).not.toContain("\n");
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
  expect(JSON.parse(jsonLine({ "\u{e0041}": "\u202e" }))).toEqual({ "\u{e0041}": "\u202e" });
});

describe("untrusted text on a page", () => {
  test("is escaped, in an element and in a quoted attribute", () => {
    expect(html(`<img src=x onerror="alert('1')"> & more`)).toBe(
      "&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt; &amp; more",
    );
  });

  test("has no character that begins markup, whatever the input", () => {
    fc.assert(
      fc.property(hostile, (text) => {
        expect(html(text)).not.toMatch(/[<>"']|&(?!(?:amp|lt|gt|quot|#39);)/);
        expect(withoutFlags(html(text))).not.toMatch(acting);
      }),
    );
  });
});
