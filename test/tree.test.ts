import { join } from "node:path";
import { expect, test } from "vitest";
import { measure } from "./tree/measure.mjs";

/**
 * The sources must not become harder to read. `node test/tree/measure.mjs` prints the figures; only lower these limits. The goals are
 * functions of 80 lines, five casts in a thousand lines, and at most five cycles, none of more than three files.
 */
const limits = { files: 640, lines: 117_500, function: 85, file: 450, castsPer1000: 6.6, cycles: 12, cycle: 9 };

const tree = measure(join(import.meta.dirname, ".."), ["packages/*/src/*.ts"]);

test("the tree has no more files and lines", () => {
  expect(tree.files).toBeLessThanOrEqual(limits.files);
  expect(tree.lines).toBeLessThanOrEqual(limits.lines);
  expect(tree.longestFile).toBeLessThanOrEqual(limits.file);
});

test("no function is longer", () => {
  const long = tree.functions.filter(({ lines }) => lines > limits.function);
  expect(long.map(({ file, name }) => `${file} ${name}`)).toEqual([]);
});

test("no more files import each other", () => {
  expect(tree.cycles.filter((files) => files.length > limits.cycle)).toEqual([]);
  expect(tree.cycles.length).toBeLessThanOrEqual(limits.cycles);
});

test("there are no more casts", () => {
  expect((tree.casts / tree.lines) * 1000).toBeLessThanOrEqual(limits.castsPer1000);
});
