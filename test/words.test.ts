import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/** Phrases that read as if translated, with replacements. The lint rule `parley/names` lists words for identifiers. */
const everywhere: Readonly<Record<string, string>> = {
  "as it comes": "by default",
  "what is said": "the content, the message",
  "in whom": "accepts a caller if …",
  "goes on": "continues",
  "is given back": "is released",
  "by itself": "on its own, automatically",
  "so that nobody": "so … cannot",
  "where there is": "if there is",
  "of one's own": "your own, custom",
  "in good order": "normally, gracefully",
  "is let in": "is accepted, is authenticated",
  "stood still": "was paused",
  "what became of": "the outcome of, the result of",
  "for good": "permanently",
  "in the words of": "as, in the terms of",
  "in vain": "without success",
  "is put off": "is deferred",
  "it is said": "the log says, the output says",
  "let go of": "release",
  "lets go of": "releases",
  "what comes of": "the result of",
  whoever: "anyone who, or name the actor",
};

/** Further phrases for sources only. Move a phrase up once tests and pages no longer use it. */
const inSources: Readonly<Record<string, string>> = {
  "is none": "is not a …, is invalid; or `undefined` without an explanation",
  "there is none": "is absent, does not exist",
  "is refused": "the server rejects …, … fails with …",
  "one another": "each other",
  somebody: "a caller, a user, another process",
  anybody: "anyone",
  everybody: "everyone, anyone",
  hence: "so",
  whom: "name the caller, the owner, the audience",
};

const root = join(import.meta.dirname, "..");
const sources = ["packages/*/src/**", "packages/console/app/**", "scripts", "site/*.mjs"];
const texts = ["docs/**", "*.md", "examples/**/*.ts", "packages/*/test/**", "test/**", "kits/**", "benchmarks/**"];

/** The lines that contain a phrase, except in this file. */
function places(phrase: string, paths: readonly string[]): string[] {
  const pattern = new RegExp(`\\b${phrase}\\b(?! the card)`, "i");
  return execFileSync("git", ["ls-files", ...paths], { cwd: root, encoding: "utf8" })
    .trim()
    .split("\n")
    .filter((file) => /\.(?:tsx?|mjs|md)$/.test(file) && file !== "test/words.test.ts")
    .flatMap((file) =>
      readFileSync(join(root, file), "utf8")
        .split("\n")
        .flatMap((line, at) => (pattern.test(line) ? [`${file}:${at + 1}`] : [])),
    );
}

test.each(Object.entries(everywhere))("nothing says “%s”: write %s", (phrase) => {
  expect(places(phrase, [...sources, ...texts])).toEqual([]);
});

test.each(Object.entries(inSources))("no source says “%s”: write %s", (phrase) => {
  expect(places(phrase, sources)).toEqual([]);
});
