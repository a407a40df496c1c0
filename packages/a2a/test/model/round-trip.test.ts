import * as sdk from "@a2a-js/sdk";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { times } from "../../../../test/counts.ts";
import { check } from "../../src/model/index.ts";
import { messageOf } from "./arbitraries.ts";
import { fieldsOf, messageNames, oneOfOf, type MessageName } from "./proto.ts";
import { schemas } from "./schema-table.ts";

/** The members of the official SDK's codec for each message. */
interface OfficialCodec {
  fromJSON(value: unknown): Record<string, unknown>;
  toJSON(message: unknown): unknown;
}

function official(name: MessageName): OfficialCodec {
  return (sdk as unknown as Record<string, OfficialCodec>)[name] as OfficialCodec;
}

function checked(name: MessageName, value: unknown, mode: "request" | "copy" | "answer"): unknown {
  const result = check<unknown>(schemas[name], value, mode);
  return result.ok ? result.value : result.violations;
}

describe.each(messageNames)("%s and the official codec", (name) => {
  test("know the same fields", () => {
    const choice = oneOfOf(name);
    const known = Object.keys(official(name).fromJSON({}));
    // An empty message omits fields with the keyword `optional`.
    const explicit = fieldsOf(name).flatMap(([field, kind]) => (kind.explicit ? [field] : []));
    const mine = fieldsOf(name)
      .map(([field]) => field)
      .filter((field) => !choice?.of.includes(field));
    expect(new Set([...mine, ...(choice ? [choice.sdk] : [])])).toEqual(new Set([...known, ...explicit]));
  });

  test.each(fieldsOf(name))("carry %s in the same way", (field) => {
    const withField = messageOf(name, true).filter((message) => field in message);
    fc.assert(
      fc.property(withField, (message) => {
        expect(official(name).toJSON(official(name).fromJSON(message))).toEqual(message);
      }),
      { numRuns: 10 },
    );
  });

  test("carry every message in the same way", () => {
    fc.assert(
      fc.property(messageOf(name), (message) => {
        const codec = official(name);
        expect(codec.toJSON(codec.fromJSON(message))).toEqual(message);
      }),
      { numRuns: times(60, 200) },
    );
  });

  test("accept every message unchanged, in each mode", () => {
    fc.assert(
      fc.property(messageOf(name), (message) => {
        const before = structuredClone(message);
        expect(checked(name, message, "copy")).toEqual(before);
        expect(checked(name, message, "answer")).toEqual(before);
        expect(checked(name, message, "request")).toEqual(before);
        expect(message).toEqual(before);
      }),
      { numRuns: times(60, 200) },
    );
  });
});

test("a data part with null, which the official codec loses, is read as a data part", () => {
  const lost = official("Part").toJSON(official("Part").fromJSON({ data: null, filename: "a.json" }));
  expect(lost).toEqual({ filename: "a.json" });
  expect(checked("Part", lost, "answer")).toEqual({ data: null, filename: "a.json" });
});
