import fc from "fast-check";
import { expect, expectTypeOf, test } from "vitest";
import {
  artifact,
  bytesOf,
  check,
  contentHash,
  data,
  file,
  fromBase64,
  isDataPart,
  isFilePart,
  isRawPart,
  isTextPart,
  isUrlPart,
  message,
  messageSchema,
  partsOf,
  text,
  textOf,
  toBase64,
  type JsonObject,
  type Message,
  type Part,
  type RawPart,
  type UrlPart,
} from "../../src/model/index.ts";
import { messageOf } from "./arbitraries.ts";

test("builders of parts return the JSON of A2A 1.0 (§4.1.6)", () => {
  expect(text("hi")).toEqual({ text: "hi" });
  expect(text("# hi", { mediaType: "text/markdown" })).toEqual({ text: "# hi", mediaType: "text/markdown" });
  expect(data(null)).toEqual({ data: null });
  expect(data({ a: [1] }, { metadata: { b: 2 } })).toEqual({ data: { a: [1] }, metadata: { b: 2 } });
  const options = { filename: "a.bin", mediaType: "application/octet-stream" };
  const bytes = Uint8Array.of(251, 255, 191);
  expect(file(bytes, options)).toEqual({ raw: "+/+/", ...options });
  expect(file(bytes.buffer)).toEqual({ raw: "+/+/" });
  expect(file(bytes.subarray(1, 2))).toEqual({ raw: "/w==" });
  expect(file({ base64: "+/+/" })).toEqual({ raw: "+/+/" });
  expect(file({ url: "https://example.com/a" })).toEqual({ url: "https://example.com/a" });
  expect(file(new URL("https://example.com/a b"), options)).toEqual({ url: "https://example.com/a%20b", ...options });
  expectTypeOf(file(bytes)).toEqualTypeOf<RawPart>();
  expectTypeOf(file(new URL("https://example.com"))).toEqualTypeOf<UrlPart>();
});

test("messages and artifacts get a random id unless one is given", () => {
  const made = message("hi");
  expect(made).toEqual({ messageId: made.messageId, role: "ROLE_USER", parts: [{ text: "hi" }] });
  expect(made.messageId).toMatch(/^[0-9a-f-]{36}$/);
  expect(message("hi").messageId).not.toBe(made.messageId);
  expect(message(text("hi"), { messageId: "m", role: "ROLE_AGENT", contextId: "c" })).toEqual({
    messageId: "m",
    role: "ROLE_AGENT",
    parts: [{ text: "hi" }],
    contextId: "c",
  });
  expect(artifact([text("a"), data(1)], { artifactId: "a", name: "n" })).toEqual({
    artifactId: "a",
    name: "n",
    parts: [{ text: "a" }, { data: 1 }],
  });
  expect(check(messageSchema, made, "request").ok).toBe(true);
});

test("content is text, a part or parts", () => {
  expect(partsOf("a")).toEqual([{ text: "a" }]);
  expect(partsOf({ url: "u" })).toEqual([{ url: "u" }]);
  expect(partsOf([{ url: "u" }, { text: "a" }])).toEqual([{ url: "u" }, { text: "a" }]);
});

test("guards tell parts apart by the member that is present", () => {
  const parts: readonly Part[] = [{ text: "" }, { raw: "" }, { url: "u" }, { data: null }, { data: false }];
  expect(parts.map(isTextPart)).toEqual([true, false, false, false, false]);
  expect(parts.map(isRawPart)).toEqual([false, true, false, false, false]);
  expect(parts.map(isUrlPart)).toEqual([false, false, true, false, false]);
  expect(parts.map(isFilePart)).toEqual([false, true, true, false, false]);
  expect(parts.map(isDataPart)).toEqual([false, false, false, true, true]);
  const part = parts[0] as Part;
  if (isDataPart(part)) expectTypeOf(part.data).not.toBeUndefined();
  if (isFilePart(part)) expectTypeOf(part).toEqualTypeOf<RawPart | UrlPart>();
});

test("text parts are joined by line breaks in a message, and without a separator in an artifact", () => {
  const parts: readonly Part[] = [{ text: "one" }, { url: "u" }, { text: "two" }];
  expect(textOf({ messageId: "m", parts })).toBe("one\ntwo");
  expect(textOf({ artifactId: "a", parts })).toBe("onetwo");
  expect(textOf({ messageId: "m", parts: [{ data: 1 }] })).toBe("");
});

/** Compares bytes. `toEqual` would take seconds for this many bytes. */
function isSame(one: Uint8Array | undefined, other: Uint8Array): boolean {
  return one instanceof Uint8Array && Buffer.compare(one, other) === 0;
}

test("bytes of any length are the same after base64", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      expect(toBase64(bytes)).toBe(Buffer.from(bytes).toString("base64"));
      expect(isSame(fromBase64(toBase64(bytes)), bytes)).toBe(true);
    }),
  );
  const many = new Uint8Array(300_001).fill(7);
  expect(isSame(bytesOf(file(many)), many)).toBe(true);
});

/** Returns the same JSON with the members of all objects in reverse order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, member]) => [name, reversed(member)])
      .toReversed(),
  );
}

test("the content hash of a message ignores the order of members, and treats an absent list like an empty one", () => {
  fc.assert(
    fc.property(messageOf("Message"), (original) => {
      const hash = contentHash(original);
      expect(hash).toMatch(/^[0-9a-f]{16}$/);
      expect(contentHash(reversed(original) as Message)).toBe(hash);
      const { extensions = [], referenceTaskIds = [], ...rest } = original;
      expect(contentHash({ extensions, referenceTaskIds, ...rest })).toBe(hash);
    }),
  );
});

test("different messages have different content hashes", () => {
  const hashes = new Set<string>();
  const texts = new Set<string>();
  fc.assert(
    fc.property(messageOf("Message"), (original) => {
      texts.add(JSON.stringify(original, (_, value: unknown) => sorted(value)));
      hashes.add(contentHash(original));
    }),
    { numRuns: 2000 },
  );
  expect(hashes.size).toBe(texts.size);
  const of = (...parts: readonly Part[]): string => contentHash({ messageId: "m", role: "ROLE_USER", parts });
  const near = [
    of({ text: "1" }),
    of({ data: "1" }),
    of({ data: 1 }),
    of({ data: [1] }),
    of({ data: ["1"] }),
    of({ data: [] }),
    of({ data: {} }),
    of({ data: null }),
    of({ data: "null" }),
    of({ data: false }),
    of({ data: { a: null } }),
    of({ data: [[], []] }),
    of({ data: [[[]]] }),
    of({ text: "ab" }, { text: "c" }),
    of({ text: "a" }, { text: "bc" }),
    of({ text: "a\0" }),
    of({ text: "a" }),
  ];
  expect(new Set(near).size).toBe(near.length);
});

test("changing any one letter changes about half of the bits of a content hash", () => {
  const base = "The quick brown fox jumps over the lazy dog";
  const bits = (letters: string): bigint =>
    BigInt(`0x${contentHash({ messageId: "m", role: "ROLE_USER", parts: [{ text: letters }] })}`);
  let flipped = 0;
  for (let i = 0; i < base.length; i += 1) {
    const changed = `${base.slice(0, i)}${String.fromCharCode(base.charCodeAt(i) ^ 1)}${base.slice(i + 1)}`;
    flipped += (bits(base) ^ bits(changed)).toString(2).replaceAll("0", "").length;
  }
  const average = flipped / base.length;
  expect(average).toBeGreaterThan(26);
  expect(average).toBeLessThan(38);
});

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const members = value as JsonObject;
  return Object.fromEntries(
    Object.keys(members)
      .sort()
      .map((name) => [name, members[name]]),
  );
}
