import { join } from "node:path";
import { expect, test } from "vitest";
import { measure } from "./tree/measure.mjs";

/** The sources must not become harder to read. `node test/tree/measure.mjs` prints the figures; only lower these limits. */
const limits = { files: 640, lines: 130_000, function: 80, file: 450, castsPer1000: 3 };

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

test("no files import each other", () => {
  expect(tree.cycles).toEqual([]);
});

test("there are no more casts", () => {
  expect((tree.casts / tree.lines) * 1000).toBeLessThanOrEqual(limits.castsPer1000);
});
