import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { StreamResponse } from "../../src/model/index.ts";
import { chunkDecoder } from "../../src/transport/client/events.ts";
import { Utf8Pieces } from "../../src/base/bytes.ts";
import { decodeEvent } from "../../src/wire/v1/index.ts";

const plain = (data: string): StreamResponse => decodeEvent(JSON.parse(data));

/** Returns the decoder under test, and how many times the decoder has decoded a whole event. */
function counting() {
  const counter = { asked: 0 };
  const chunks = chunkDecoder((data) => {
    counter.asked += 1;
    return plain(data);
  });
  return { chunks, counter };
}

const chunk = (text: unknown, more: object = {}, artifact: object = {}): string =>
  JSON.stringify({
    artifactUpdate: {
      taskId: "t1",
      contextId: "c1",
      artifact: { artifactId: "a1", parts: [{ text }], ...artifact },
      append: true,
      ...more,
    },
  });

/** Returns the result or the error of a call, for comparison. */
function outcome(work: () => unknown): unknown {
  try {
    return { value: work() };
  } catch (thrown) {
    return { thrown: (thrown as Error).message };
  }
}

describe("chunks of one artifact", () => {
  test("are fully parsed and checked only once", () => {
    const { chunks, counter } = counting();
    for (let number = 0; number < 100; number++) {
      const data = chunk(`word ${number}`);
      expect(chunks(data)).toEqual(plain(data));
    }
    expect(counter.asked).toBe(2);
  });

  test("share no object that a reader could change", () => {
    const { chunks } = counting();
    const [first, second, third] = [chunk("a"), chunk("b"), chunk("c")].map((data) => chunks(data));
    const artifact = second?.artifactUpdate?.artifact;
    Object.assign(artifact ?? {}, { name: "of the reader's own" });
    Object.assign(artifact?.parts ?? [], { length: 0 });
    expect(first).toEqual(plain(chunk("a")));
    expect(third).toEqual(plain(chunk("c")));
  });

  test.each([
    ["a text that also occurs elsewhere", [chunk("a1"), chunk("t1"), chunk("append"), chunk("b"), chunk("c")]],
    ["a text that another member repeats", [chunk("x", {}, { name: "x" }), chunk("y", {}, { name: "y" })]],
    ["escapes", [chunk("a"), chunk('"'), chunk("\\"), chunk("\n\u2028\u0000"), chunk("\u{1f600}"), chunk("\ud800")]],
    ["the empty text", [chunk(""), chunk("a"), chunk("")]],
    ["metadata", [chunk("a", { metadata: { n: 1 } }), chunk("b", { metadata: { n: 1 } })]],
    ["a part with two members", [chunk("a"), chunk("b").replace('"b"', '"b","filename":"f"')]],
    ["parts that are not text", [chunk("a"), chunk("b"), chunk(1), chunk(null), chunk({}), chunk(["c"])]],
    ["invalid JSON", [chunk("a"), chunk("b").replace('"b"', '"b'), chunk("c").replace('"c"', "")]],
    ["an event of another kind", [chunk("a"), '{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[]}}']],
    ["white space", [chunk("a").replaceAll(":", " : "), chunk("b").replaceAll(":", " : "), ` ${chunk("b")}`]],
  ])("decode as if each were alone: %s", (_, events) => {
    const { chunks } = counting();
    for (const data of [...events, ...events]) expect(outcome(() => chunks(data))).toEqual(outcome(() => plain(data)));
  });

  test("decode as if each were alone, in any order", () => {
    const text = fc.oneof(fc.constantFrom("a1", "t1", "text", '"', "\\", ""), fc.string({ unit: "binary" }));
    const few = fc.constantFrom("a1", "a2");
    const data = fc.oneof(
      { weight: 5, arbitrary: text.map((one) => chunk(one)) },
      fc.tuple(text, few).map(([one, artifactId]) => chunk(one, {}, { artifactId })),
      fc.tuple(text, text).map(([one, name]) => chunk(one, {}, { name })),
      fc.tuple(text, text).map(([one, other]) => chunk(one, { metadata: { text: other } })),
      fc.tuple(text, text).map(([one, other]) => chunk(one, {}, { parts: [{ text: one }, { text: other }] })),
      text.map((one) => chunk(one, { lastChunk: true })),
      fc
        .tuple(text, fc.nat(200), fc.nat(9))
        .map(([one, at, by]) => chunk(one).slice(0, at) + chunk(one).slice(at + by)),
    );
    fc.assert(
      fc.property(fc.array(data, { maxLength: 30 }), (events) => {
        const { chunks } = counting();
        for (const one of events) expect(outcome(() => chunks(one))).toEqual(outcome(() => plain(one)));
      }),
    );
  });

  test("cost eight attempts at most in a stream without two similar events", () => {
    const { chunks, counter } = counting();
    for (let number = 0; number < 100; number++) chunks(chunk("a", {}, { artifactId: `a${number}` }));
    expect(counter.asked).toBe(108);
  });

  test("of a peer that repeats almost the same text do not block the client", () => {
    const { chunks } = counting();
    // A quadratic search would exceed the time limit of the test many times.
    const quotes = '"'.repeat(1_000_000);
    const event = chunk(undefined, {}, { parts: [{ text: `${quotes}x`, filename: quotes + quotes }] });
    expect(chunks(event)).toEqual(plain(event));
  });
});

describe("bytes that are split anywhere", () => {
  const cut = (bytes: Uint8Array, places: readonly number[]): string => {
    const utf8 = new Utf8Pieces();
    const ends = [...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
    return ends.map((end, at) => utf8.push(bytes.subarray(at === 0 ? 0 : ends[at - 1], end))).join("");
  };
  /** Decodes bytes, without a character that the end of the stream splits. */
  const whole = (bytes: Uint8Array): string => new TextDecoder().decode(bytes, { stream: true });

  test("decode to their text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.array(fc.nat()), (text, places) => {
        const bytes = new TextEncoder().encode(text);
        expect(cut(bytes, places)).toBe(whole(bytes));
      }),
    );
  });

  test("become replacement characters if they are not UTF-8, as many as in one piece", () => {
    const byte = fc.constantFrom(0x41, 0x80, 0xbf, 0xc2, 0xe2, 0x82, 0xed, 0xa0, 0xef, 0xbb, 0xf0, 0x9f, 0xf8, 0xff);
    fc.assert(
      fc.property(fc.array(byte), fc.array(fc.nat()), (values, places) => {
        const bytes = new Uint8Array([...values, 0x41]);
        expect(cut(bytes, places)).toBe(whole(bytes));
      }),
      { numRuns: 1000 },
    );
  });

  test("lose a byte order mark only at the beginning", () => {
    const bytes = new TextEncoder().encode("\ufeffa\ufeffb");
    for (let place = 0; place <= bytes.length; place++) expect(cut(bytes, [place])).toBe("a\ufeffb");
  });
});
