import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { liveMemory } from "../../../../test/heap.ts";
import { SseParser, type ServerSentEvent } from "../../src/transport/client/events.ts";

/** Parses a whole stream with a literal, slow implementation of the HTML Living Standard §9.2.6. */
function reference(bytes: Uint8Array): ServerSentEvent[] {
  const text = new TextDecoder().decode(bytes);
  const lines = text.split(/\r\n|\n|\r/);
  // The last piece has no line ending, so it is not a line.
  lines.pop();
  const events: ServerSentEvent[] = [];
  let data = "";
  let hasData = false;
  let fields: { event?: string; id?: string } = {};
  for (const line of lines) {
    if (line === "") {
      if (hasData) events.push({ ...fields, data: data.slice(0, -1) });
      data = "";
      hasData = false;
      fields = {};
      continue;
    }
    if (line.startsWith(":")) continue;
    const [, name, value = ""] = /^([^:]*)(?:: ?([^]*))?$/.exec(line) as unknown as [string, string, string?];
    if (name === "data") {
      data += `${value}\n`;
      hasData = true;
    } else if (name === "event") fields = { ...fields, event: value };
    else if (name === "id" && !value.includes("\0")) fields = { ...fields, id: value };
  }
  return events;
}

function inPieces(bytes: Uint8Array, cuts: readonly number[]): ServerSentEvent[] {
  const parser = new SseParser();
  const decoder = new TextDecoder();
  const events: ServerSentEvent[] = [];
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  let from = 0;
  for (const to of [...places, bytes.length]) {
    events.push(...parser.push(decoder.decode(bytes.subarray(from, to), { stream: true })));
    from = to;
  }
  return events;
}

function parse(text: string): ServerSentEvent[] {
  return new SseParser().push(text);
}

const lineEnd = fc.constantFrom("\n", "\r", "\r\n");
const value = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 8 }),
  fc.constantFrom("", " ", ":", "{}", "\u{1F600}é"),
);
const line = fc.oneof(
  fc
    .tuple(fc.constantFrom("data", "event", "id", "retry", "", "dat", "data2"), fc.constantFrom(":", ": ", ""), value)
    .map((all) => all.join("")),
  fc.constantFrom("data", "id: 1\0", "id"),
  value,
);
const stream = fc
  .tuple(
    fc.constantFrom("", "\uFEFF"),
    fc.array(fc.tuple(fc.oneof(line, fc.constant("")), lineEnd), { maxLength: 30 }),
    fc.constantFrom("", "data: unfinished"),
  )
  .map(([mark, lines, rest]) => new TextEncoder().encode(mark + lines.flat().join("") + rest));

describe("an event stream (HTML Living Standard §9.2)", () => {
  test("yields the same events however its bytes are split, also inside characters and line ends", () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 40 }), (bytes, cuts) => {
        expect(inPieces(bytes, cuts)).toEqual(reference(bytes));
      }),
      { numRuns: 2_000 },
    );
  });

  test("yields the same events byte by byte", () => {
    fc.assert(
      fc.property(stream, (bytes) => {
        expect(inPieces(bytes, [...bytes.keys()])).toEqual(reference(bytes));
      }),
    );
  });

  test("joins the lines of data, and removes one leading space", () => {
    expect(parse("data: one\ndata:two\ndata\ndata:  three\n\n")).toEqual([{ data: "one\ntwo\n\n three" }]);
  });

  test("gives id and name to their own event only", () => {
    expect(parse("event: error\nid: 7\ndata: a\n\ndata: b\n\n")).toEqual([
      { data: "a", id: "7", event: "error" },
      { data: "b" },
    ]);
  });

  test("skips comments, unknown fields, ids with NUL and events without data", () => {
    expect(parse(": keep-alive\n\nfoo: bar\n\nid: 1\0\ndata: x\n\nid: 9\n\n")).toEqual([{ data: "x" }]);
  });

  test("keeps the last integer of retry", () => {
    const parser = new SseParser();
    parser.push("retry: 1500\nretry: soon\nretry: 1e3\n");
    expect(parser.retry).toBe(1500);
  });

  test("rejects an event over the limit, in one line or many, before it ends", () => {
    const long = new SseParser(10);
    expect(() => long.push("data: 0123456789abcdef")).toThrow(expect.objectContaining({ code: "InvalidResponse" }));
    const many = new SseParser(40);
    many.push("data: 0123456789\ndata: 0123456789\n");
    expect(() => many.push("data: 0123456789\n")).toThrow(expect.objectContaining({ code: "InvalidResponse" }));
    const whole = new SseParser(20);
    expect(() => whole.push("data: 0123456789abcdef\n\n")).toThrow(
      expect.objectContaining({ code: "InvalidResponse" }),
    );
  });

  test("counts all bytes of an event, with short lines, comments and field names", () => {
    for (const line of ["data:\n", ":\n", "data: \u{1F600}\n", "unknown: x\n", "id: 1\n"]) {
      const parser = new SseParser(10_000);
      const bytes = new TextEncoder().encode(line).length;
      let taken = 0;
      expect(() => {
        for (; taken < 20_000; taken += bytes) parser.push(line, bytes);
      }).toThrow(expect.objectContaining({ message: expect.stringContaining("10000 bytes") }));
      expect(taken).toBeGreaterThan(10_000 - 2 * bytes);
    }
  });

  test("counts each event separately, also within one chunk", () => {
    const parser = new SseParser(20);
    for (let count = 0; count < 100; count++) {
      expect(parser.push("data: 012345678\n\ndata: 9\n\nda", 32)).toHaveLength(2);
      expect(parser.push("ta: x\n\n", 8)).toEqual([{ data: "x" }]);
    }
  });

  test("holds an event of very many lines or chunks in little more than its own size", () => {
    const held = (feed: (parser: SseParser) => void): number => {
      const parser = new SseParser();
      const before = liveMemory().heapUsed;
      feed(parser);
      const after = liveMemory().heapUsed;
      expect(parser.push("\n\n")).toHaveLength(1);
      return after - before;
    };
    // Both events have a million characters. A rope with a node for each character would take 32 MB.
    const lines = "data:\n".repeat(1_000);
    const piece = "x";
    expect(
      held((parser) => {
        for (let count = 0; count < 1_000; count++) parser.push(lines);
      }),
    ).toBeLessThan(2 << 20);
    expect(
      held((parser) => {
        parser.push("data: ");
        for (let count = 0; count < 1_000_000; count++) parser.push(piece);
      }),
    ).toBeLessThan(2 << 20);
  });

  test("parses a long line in many chunks in linear time", () => {
    const parser = new SseParser();
    const piece = "x".repeat(1024);
    expect(parser.push("data: ")).toEqual([]);
    // The text has eight times 2 ** 20 characters. If the parser searched from the start again for each piece, this would take minutes.
    for (let count = 0; count < 8 * 1024; count++) parser.push(piece);
    const [event] = parser.push("\n\n");
    expect(event?.data.length).toBe(8 * 2 ** 20);
  });
});
