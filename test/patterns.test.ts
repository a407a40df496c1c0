import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";
import { analyse } from "scslre";
import { expect, test } from "vitest";

/**
 * Every pattern takes linear time: a quadratic one takes seconds for a text of some ten kilobytes, and
 * most texts here are untrusted.
 */

const root = fileURLToPath(new URL("..", import.meta.url));

/** Patterns that a person has checked, and the reasons why they are safe. */
const known: Readonly<Record<string, string>> = {
  "/\\s*(?:,|;|&|\\band\\b)\\s*/": "of an answer to the data analyst, 500 characters at most",
  "/\\s*(?:,| and | & | plus )\\s*/": "of a question to the data analyst, 500 characters at most",
  "/ by | per |\\s*,\\s*| and | & /": "of a question to the data analyst, 500 characters at most",
};

interface Node {
  readonly type?: string;
  readonly regex?: { readonly pattern: string; readonly flags: string };
}

function patternsIn(node: unknown, found: string[]): void {
  if (typeof node !== "object" || node === null) return;
  const { type, regex } = node as Node;
  if (type === "Literal" && regex !== undefined && regex !== null) found.push(`/${regex.pattern}/${regex.flags}`);
  for (const child of Object.values(node)) patternsIn(child, found);
}

const sources = ["packages", "examples"].flatMap((folder) =>
  readdirSync(join(root, folder)).flatMap((name) => {
    const own = join(root, folder, name);
    if (!statSync(own).isDirectory()) return [];
    // A small example has its files next to its package.json.
    const source = existsSync(join(own, "src")) ? join(own, "src") : own;
    return readdirSync(source, { recursive: source !== own, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => join(source, file));
  }),
);

test("patterns take linear time", () => {
  const places = new Map<string, string>();
  for (const file of sources) {
    const found: string[] = [];
    patternsIn(parseSync(file, readFileSync(file, "utf8")).program, found);
    for (const pattern of found) places.set(pattern, relative(root, file));
  }
  expect(places.size).toBeGreaterThan(100);
  const slow = [...places].filter(([pattern]) => {
    const end = pattern.lastIndexOf("/");
    return analyse({ source: pattern.slice(1, end), flags: pattern.slice(end + 1) }).reports.length > 0;
  });
  expect(slow.flatMap(([pattern, file]) => (pattern in known ? [] : [`${pattern} in ${file}`]))).toEqual([]);
  expect(slow.map(([pattern]) => pattern).sort()).toEqual(Object.keys(known).sort());
});

test("the analysis detects known slow patterns", () => {
  const slow = ["\\/+$", "<[^>]*>", "\\s*\\n", "^(a+)+$", "^\\s*(.+?)\\s*$"];
  for (const source of slow)
    expect([source, analyse({ source, flags: "" }).reports.length > 0]).toEqual([source, true]);
});
