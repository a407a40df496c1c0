import { equals, fromBinary, fromJson, type JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as files from "../src/descriptors.ts";
import { decode } from "../src/protobuf/decode.ts";
import { encode } from "../src/protobuf/encode.ts";
import { readSchema, type Schema } from "../src/protobuf/descriptor.ts";
import type { MessageType } from "../src/protobuf/types.ts";
import { serviceV1 } from "../src/services.ts";
import { messageOf, oracleBytes, oracleJson, registry, valuesOf } from "./support/oracle.ts";

const schemas: readonly (readonly [string, Schema])[] = [
  ["lf.a2a.v1", readSchema([files.a2aV1])],
  ["a2a.v1", readSchema([files.a2aV03])],
  ["google.rpc", readSchema([files.status, files.errorDetails])],
  ["grpc.health.v1", readSchema([files.health])],
  ["grpc.reflection.v1", readSchema([files.reflectionV1])],
];

const messages: (readonly [string, MessageType])[] = schemas.flatMap(([prefix, schema]) =>
  [...registry]
    .filter((type) => type.kind === "message" && type.typeName.startsWith(`${prefix}.`))
    .map(({ typeName }) => [typeName, schema.message(typeName)] as const),
);

const [, v1] = schemas[0] as readonly [string, Schema];
const message = v1.message("lf.a2a.v1.Message");
const part = v1.message("lf.a2a.v1.Part");
const task = v1.message("lf.a2a.v1.Task");

function bytes(...values: readonly number[]): Uint8Array {
  return Uint8Array.from(values);
}

describe("messages", () => {
  test.each(messages)("%s is read as the library of buf reads it", (name, type) => {
    const oracle = messageOf(name);
    fc.assert(
      fc.property(valuesOf(oracle), (value) => {
        const sent = oracleBytes(oracle, value);
        expect(decode(type, sent)).toEqual(oracleJson(oracle, sent));
      }),
      { numRuns: 60 },
    );
  });

  test.each(messages)("%s is written as the library of buf writes it", (name, type) => {
    const oracle = messageOf(name);
    fc.assert(
      fc.property(valuesOf(oracle), (value) => {
        const read = fromBinary(oracle, encode(type, value));
        const options = { registry };
        expect(equals(oracle, read, fromJson(oracle, value as JsonValue, options), options)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  test("of every size are equal after encoding and decoding", () => {
    for (const length of [0, 1, 41, 42, 43, 127, 128, 129, 1023, 1024, 1025, 16_383, 16_384, 70_000, 3_000_000]) {
      for (const letter of ["a", "é", "漢"]) {
        const value = { messageId: "m", parts: [{ text: letter.repeat(length) }] };
        expect(decode(message, encode(message, value))).toEqual(value);
      }
    }
  });

  test("hold any data, also null and names with a meaning in JavaScript", () => {
    const data = JSON.parse('{"__proto__":{"a":null},"toString":[true,-1.5,"x",[],{}],"constructor":1}') as unknown;
    const read = decode(part, encode(part, { data, metadata: { __proto__: null, plain: 1 } }));
    expect(JSON.stringify(read["data"])).toBe(JSON.stringify(data));
    expect(decode(part, encode(part, { data: null }))).toEqual({ data: null });
  });

  test("have timestamps with milliseconds (§5.6.1)", () => {
    const status = v1.message("lf.a2a.v1.TaskStatus");
    const written = (timestamp: string) => decode(status, encode(status, { timestamp }))["timestamp"];
    expect(written("2026-01-02T03:04:05Z")).toBe("2026-01-02T03:04:05.000Z");
    expect(written("2026-01-02T05:04:05.120+02:00")).toBe("2026-01-02T03:04:05.120Z");
    expect(written("1969-12-31T23:59:59.999999999Z")).toBe("1969-12-31T23:59:59.999999999Z");
    expect(() => encode(status, { timestamp: "yesterday" })).toThrow(TypeError);
  });

  test("read base64 of either alphabet, with padding and without", () => {
    for (const raw of ["+/8=", "-_8", "-_8=", "+/8"]) {
      expect(decode(part, encode(part, { raw }))).toEqual({ raw: "+/8=" });
    }
  });

  test("leave out null and unknown members", () => {
    expect(encode(message, { messageId: null, kind: "message", parts: undefined, generation: 4 })).toEqual(bytes());
  });

  test("use numbers for unknown values of enumerations", () => {
    expect(decode(message, bytes(0x20, 0x63))).toEqual({ role: 99 });
    expect(encode(message, { role: 99 })).toEqual(bytes(0x20, 0x63));
    expect(() => encode(message, { role: "ROLE_KING" })).toThrow(TypeError);
  });

  test("cannot encode values of another type", () => {
    expect(() => encode(message, [])).toThrow(TypeError);
    expect(() => encode(message, { messageId: 7 })).toThrow(TypeError);
    expect(() => encode(message, { parts: {} })).toThrow(TypeError);
    expect(() => encode(part, { data: { x: Number.NaN } })).toThrow(TypeError);
    const config = v1.message("lf.a2a.v1.SendMessageConfiguration");
    for (const historyLength of [1.5, 2 ** 31, "many"])
      expect(() => encode(config, { historyLength })).toThrow(TypeError);
  });

  test("know the generations of the 1.1 draft as strings", () => {
    const draft = serviceV1().operations.get("GetTask");
    const generation = "9007199254740993";
    expect(decode(draft!.output, encode(draft!.output, { generation }))).toEqual({ generation });
    expect(decode(draft!.input, encode(draft!.input, { currentGeneration: "0" }))).toEqual({ currentGeneration: "0" });
    expect(decode(task, encode(draft!.output, { id: "t", generation }))).toEqual({ id: "t" });
  });
});

describe("messages of peers", () => {
  test("unknown fields of every kind are skipped", () => {
    const unknown = [
      0xf8, 0x07, 0x96, 0x01, 0xf9, 0x07, 1, 2, 3, 4, 5, 6, 7, 8, 0xfa, 0x07, 1, 0xff, 0xfd, 0x07, 1, 2, 3, 4,
    ];
    const group = [0xfb, 0x07, 0x08, 0x01, 0x0b, 0x0c, 0xfc, 0x07];
    expect(decode(message, bytes(...unknown, 0x0a, 1, 0x6d, ...group))).toEqual({ messageId: "m" });
    // A known field with another wire type counts as unknown.
    expect(decode(message, bytes(0x08, 1, 0x0a, 1, 0x6d))).toEqual({ messageId: "m" });
  });

  test("the last value of a field or a oneof counts", () => {
    expect(decode(part, bytes(0x0a, 1, 0x61, 0x1a, 1, 0x62))).toEqual({ url: "b" });
    expect(decode(message, bytes(0x0a, 1, 0x61, 0x0a, 0))).toEqual({});
  });

  test("a message field that occurs twice is merged", () => {
    const status = bytes(0x1a, 2, 0x08, 2, 0x1a, 4, 0x1a, 2, 0x08, 1);
    expect(decode(task, status)).toEqual({
      status: { state: "TASK_STATE_WORKING", timestamp: "1970-01-01T00:00:01.000Z" },
    });
  });

  test("numbers are read packed and one by one", () => {
    const numbers = readSchema([files.reflectionV1]).message("grpc.reflection.v1.ExtensionNumberResponse");
    expect(decode(numbers, bytes(0x12, 2, 1, 2, 0x10, 3))).toEqual({ extensionNumber: [1, 2, 3] });
    expect(encode(numbers, { extensionNumber: [1, 2] })).toEqual(bytes(0x12, 2, 1, 2));
  });

  test("an Any of an unknown type keeps its bytes", () => {
    const status = readSchema([files.status, files.errorDetails]).message("google.rpc.Status");
    const details = [{ "@type": "type.googleapis.com/x.Y", value: "AQI=" }];
    expect(decode(status, encode(status, { details }))).toEqual({ details });
  });

  test.each([
    ["a name of a field cut off", [0x80]],
    ["a string cut off", [0x0a, 5, 0x61]],
    ["a length beyond the message", [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]],
    ["a field of number 0", [0x02, 0]],
    ["a field of an unknown wire type", [0x0f]],
    ["a number without an end", [0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]],
    ["a message longer than what holds it", [0x2a, 2, 0x0a, 5, 0x61, 0x61, 0x61, 0x61, 0x61]],
    ["text that is not UTF-8", [0x0a, 2, 0xc3, 0x28]],
    ["text with half of a surrogate pair", [0x0a, 3, 0xed, 0xa0, 0x80]],
    ["an end of a group that never began", [0x0c]],
    ["a group that does not end", [0xfb, 0x07, 0x08, 1]],
    ["groups nested too deep", Array.from({ length: 200 }, () => 0x7b)],
    ["an infinite number", [0x2a, 11, 0x22, 9, 0x11, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f]],
  ])("%s is rejected", (_what, sent) => {
    expect(() => decode(message, bytes(...sent))).toThrow(expect.objectContaining({ code: "ParseError" }));
  });

  test("a timestamp outside of the years 1 to 9999 is rejected", () => {
    const status = v1.message("lf.a2a.v1.TaskStatus");
    expect(() => decode(status, bytes(0x1a, 7, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f))).toThrow(
      expect.objectContaining({ code: "ParseError" }),
    );
  });

  test("a byte order mark is part of the text", () => {
    expect(decode(message, bytes(0x0a, 4, 0xef, 0xbb, 0xbf, 0x6d))).toEqual({ messageId: "\ufeffm" });
  });

  test("nesting is limited as in JSON: objects and arrays count", () => {
    const nest = (levels: number): unknown =>
      levels === 0 ? 1 : levels % 2 === 0 ? [nest(levels - 1)] : { a: nest(levels - 1) };
    for (const levels of [1, 2, 7, 8]) {
      const sent = encode(part, { data: nest(levels) });
      expect(decode(part, sent, { depth: levels + 1 })).toEqual({ data: nest(levels) });
      expect(() => decode(part, sent, { depth: levels })).toThrow(expect.objectContaining({ code: "InvalidRequest" }));
    }
    const sent = encode(message, { parts: [{ metadata: {} }] });
    expect(decode(message, sent, { depth: 4 })).toEqual({ parts: [{ metadata: {} }] });
    expect(() => decode(message, sent, { depth: 3 })).toThrow(expect.objectContaining({ code: "InvalidRequest" }));
  });

  test("thousands of levels are rejected before the stack overflows", () => {
    let data: unknown = [];
    for (let level = 0; level < 2000; level++) data = [data];
    const sent = encode(part, { data });
    expect(() => decode(part, sent)).toThrow(expect.objectContaining({ code: "InvalidRequest" }));
  });

  test("random bytes decode, or fail with an A2AError", () => {
    fc.assert(
      fc.property(fc.constantFrom(...messages), fc.uint8Array({ maxLength: 64 }), ([, type], sent) => {
        expectSafe(type, sent);
      }),
      { numRuns: 2000 },
    );
  });

  test("a message with bytes changed or cut decodes, or fails with an A2AError", () => {
    fc.assert(
      fc.property(valuesOf(messageOf("lf.a2a.v1.Task")), fc.nat(), fc.nat(255), fc.nat(), (value, at, byte, cut) => {
        const sent = encode(task, value);
        if (sent.length === 0) return;
        sent[at % sent.length] = byte;
        expectSafe(task, sent);
        expectSafe(task, sent.subarray(0, cut % sent.length));
      }),
      { numRuns: 1000 },
    );
  });

  test("missing required values are filled in for an answer", () => {
    const list = v1.message("lf.a2a.v1.ListTasksResponse");
    expect(decode(list, bytes(), { fill: true })).toEqual({ tasks: [], nextPageToken: "", pageSize: 0, totalSize: 0 });
    expect(decode(list, bytes())).toEqual({});
    const card = decode(v1.message("lf.a2a.v1.AgentCard"), bytes(0x3a, 0), { fill: true });
    expect(card).toMatchObject({ skills: [], capabilities: {}, defaultInputModes: [] });
    expect(decode(message, bytes(), { fill: true })).toEqual({ messageId: "", parts: [] });
  });
});

function expectSafe(type: MessageType, sent: Uint8Array): void {
  try {
    JSON.stringify(decode(type, sent));
  } catch (error) {
    expect(error).toMatchObject({ name: "A2AError" });
  }
}
