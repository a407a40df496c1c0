import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { elementsOf, membersOf, objectOf } from "../../src/base/json-text.ts";

describe("members and elements", () => {
  it("return each member of an object as its original text (property)", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue({ maxDepth: 2 })), (whole) => {
        for (const space of [undefined, 2]) {
          const found = membersOf(JSON.stringify(whole, undefined, space));
          expect([...found.keys()].sort()).toEqual(Object.keys(whole).sort());
          for (const [key, text] of found)
            expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(Reflect.get(whole, key))));
          expect(JSON.parse(objectOf(found))).toEqual(JSON.parse(JSON.stringify(whole)));
        }
      }),
    );
  });

  it("return each element of an array as its original text (property)", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue({ maxDepth: 2 })), fc.constantFrom(undefined, 3), (value, space) => {
        const found = elementsOf(JSON.stringify(value, undefined, space));
        expect(found.map((text) => JSON.parse(text) as unknown)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it("decode escaped names, use the last of two equal names, and ignore brackets and quotes in strings", () => {
    expect(membersOf(String.raw`{ "\u0061" : "}],{\"" , "b\\":[{"c":"\\"}], "a":2 }`)).toEqual(
      new Map([
        ["a", "2"],
        ["b\\", '[{"c":"\\\\"}]'],
      ]),
    );
    expect(membersOf("{}")).toEqual(new Map());
    expect(elementsOf(" [ ] ")).toEqual([]);
  });
});
