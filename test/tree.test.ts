import { join } from "node:path";
import { expect, test } from "vitest";
import { measure } from "./tree/measure.mjs";

/** The limits of the sources that a reader meets. `node test/tree/measure.mjs` prints the figures. */

const { functions, longestFile, cycles, casts, lines } = measure(join(import.meta.dirname, ".."), [
  "packages/*/src/*.ts",
]);

test("no function is longer than 80 lines", () => {
  expect(functions.filter((one) => one.lines > 80).map(({ file, name }) => `${file} ${name}`)).toEqual([]);
});

test("no file is longer than 450 lines", () => {
  expect(longestFile).toBeLessThanOrEqual(450);
});

test("at most five groups of files import one another, none of more than three files", () => {
  expect(cycles.filter((files) => files.length > 3)).toEqual([]);
  expect(cycles.length).toBeLessThanOrEqual(5);
});

test("casts are at most five of a thousand lines", () => {
  expect((casts / lines) * 1000).toBeLessThanOrEqual(5);
});
