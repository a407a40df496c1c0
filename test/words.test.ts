import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/** Phrases that read as if translated, with what to write instead. The lint rule `parley/names` has the words of identifiers. */
const phrases: Readonly<Record<string, string>> = {
  "as it comes": "by default",
  "what is said": "the content, the message",
  "in whom": "accepts a caller if …",
  "goes on": "continues",
  "is given back": "is released",
  "by itself": "on its own, automatically",
  "so that nobody": "so … cannot",
  "where there is": "if there is",
};

const root = join(import.meta.dirname, "..");
const files = execFileSync(
  "git",
  ["ls-files", "packages/*/src/**", "docs/**", "*.md", "examples/**/*.ts", "scripts", "site/*.mjs"],
  { cwd: root, encoding: "utf8" },
)
  .trim()
  .split("\n")
  .filter((file) => /\.(?:ts|mjs|md)$/.test(file));

test.each(Object.entries(phrases))("nothing says “%s”: write %s", (phrase) => {
  const pattern = new RegExp(`\\b${phrase}\\b(?! the card)`, "i");
  const found = files.flatMap((file) =>
    readFileSync(join(root, file), "utf8")
      .split("\n")
      .flatMap((line, at) => (pattern.test(line) ? [`${file}:${at + 1}`] : [])),
  );
  expect(found).toEqual([]);
});
