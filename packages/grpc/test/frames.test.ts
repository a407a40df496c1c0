import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { beginFrame, endFrame, frameOf, FrameReader } from "../src/frames.ts";
import { Writer } from "../src/protobuf/wire.ts";

describe("frames", () => {
  test("are read from pieces of any size", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 }),
        (payloads, sizes) => {
          const sent = Buffer.concat(payloads.map((payload, at) => frameOf(payload, at % 2)));
          const reader = new FrameReader(40);
          const frames = [];
          for (let at = 0, turn = 0; at < sent.length; turn++) {
            const size = sizes[turn % sizes.length] as number;
            frames.push(...reader.push(sent.subarray(at, at + size)));
            at += size;
          }
          expect(frames.map(({ payload }) => [...payload])).toEqual(payloads.map((payload) => [...payload]));
          expect(frames.map(({ flags }) => flags)).toEqual(payloads.map((_, at) => at % 2));
          expect(reader.partial).toBe(false);
        },
      ),
    );
  });

  test("that are incomplete are reported", () => {
    const reader = new FrameReader(10);
    reader.push(Uint8Array.of(0, 0));
    expect(reader.partial).toBe(true);
    reader.push(Uint8Array.of(0, 0, 1));
    expect(reader.partial).toBe(true);
    expect(reader.push(Uint8Array.of(7))).toHaveLength(1);
    expect(reader.partial).toBe(false);
  });

  test("over the limit are rejected by their head", () => {
    const reader = new FrameReader(10);
    expect(reader.push(frameOf(new Uint8Array(10)))).toHaveLength(1);
    expect(() => reader.push(Uint8Array.of(0, 0, 0, 0, 11))).toThrow(
      expect.objectContaining({ code: "RequestTooLarge" }),
    );
    expect(() => new FrameReader(10).push(Uint8Array.of(0, 0xff, 0xff, 0xff, 0xff))).toThrow(
      expect.objectContaining({ code: "RequestTooLarge" }),
    );
    const slow = new FrameReader(10);
    slow.push(Uint8Array.of(0, 0, 0, 1));
    expect(() => slow.push(Uint8Array.of(0))).toThrow(expect.objectContaining({ code: "RequestTooLarge" }));
  });

  test("are written around each message", () => {
    const writer = new Writer(1);
    for (const size of [0, 3, 300]) {
      const begun = beginFrame(writer);
      for (let at = 0; at < size; at++) writer.uint8(at & 0xff);
      endFrame(writer, begun, size === 3 ? 1 : 0);
    }
    const frames = new FrameReader(300).push(writer.written());
    expect(frames.map(({ flags, payload }) => [flags, payload.length])).toEqual([
      [0, 0],
      [1, 3],
      [0, 300],
    ]);
  });
});
