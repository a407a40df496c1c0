import { join } from "node:path";
import { expect, test } from "vitest";
import { measure } from "./tree/measure.mjs";

/** The sources must not become harder to read. `node test/tree/measure.mjs` prints the figures; only lower these limits. */
const limits = { files: 635, lines: 121_525, file: 450, function: 80, castsPer1000: 3 };

const root = join(import.meta.dirname, "..");
/** Packages that were added later. Their files and lines do not count, but the other limits apply to them. */
const later = [
  ":!packages/console",
  ":!packages/frameworks",
  ":!packages/mcp",
  ":!packages/react",
  ":!packages/telemetry",
];

const tree = measure(root, ["packages/*/src/*.ts"]);

test("the tree has no more files and lines", () => {
  const { files, lines } = measure(root, ["packages/*/src/*.ts", ...later]);
  expect(files).toBeLessThanOrEqual(limits.files);
  expect(lines).toBeLessThanOrEqual(limits.lines);
});

test("no file and no function is longer", () => {
  expect(tree.longestFile).toBeLessThanOrEqual(limits.file);
  const long = tree.functions.filter(({ lines }) => lines > limits.function);
  expect(long.map(({ file, name }) => `${file} ${name}`)).toEqual([]);
});

test("no files import each other", () => {
  expect(tree.cycles).toEqual([]);
});

test("there are no more casts", () => {
  expect((tree.casts / tree.lines) * 1000).toBeLessThanOrEqual(limits.castsPer1000);
});
