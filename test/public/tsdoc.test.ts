import { describe, expect, test } from "vitest";
import { documentedOf } from "./docs.ts";
import { Declarations, entries } from "./entries.ts";

/** Most users read only an editor's hover text, so each public name and each of its members must have a documentation comment. */
const declarations = new Declarations();
const all = entries().map(({ name, file }) => ({
  name,
  documented: [...declarations.exportsOf(file).values()].flatMap((exported) => documentedOf(declarations, exported)),
}));

describe("TSDoc", () => {
  test.each(all)("of $name documents every name and member", ({ documented }) => {
    expect(documented.filter(({ doc }) => doc === undefined).map(({ name }) => name)).toEqual([]);
  });

  test.each(all)("of $name cites only what its readers can open", ({ documented }) => {
    expect(documented.filter(({ doc = "" }) => /\bD\d{1,2}\b/.test(doc)).map(({ name }) => name)).toEqual([]);
  });
});
