import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { entryPoints } from "../../site/entries.mjs";
import { decisions, index, sections } from "../../site/pages.mjs";
import { root } from "./pages.ts";

/** `docs/pages.json` is the single list of pages, from which the site's navigation and `docs/README.md` are generated. */

const docs = join(root, "docs");

test("every page of docs/ is in docs/pages.json, exactly once", () => {
  const found = readdirSync(docs, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".md"));
  const pages = found.filter((file) => file !== "README.md" && !/^decisions\/(?!README)/.test(file));
  const listed = sections().flatMap((section) => section.pages.map(({ page }) => page));
  expect(listed.filter((page) => !page.startsWith("../")).sort()).toEqual(pages.sort());
});

test("every decision is in the index of decisions", () => {
  const found = readdirSync(join(docs, "decisions")).filter((file) => file !== "README.md");
  expect(
    decisions()
      .map(({ page }) => page.slice("decisions/".length))
      .sort(),
  ).toEqual(found.sort());
});

test("docs/README.md is generated from docs/pages.json: npm run docs writes it", () => {
  expect(readFileSync(join(docs, "README.md"), "utf8")).toBe(index());
});

test("each page begins with a title, and has no other of its size", () => {
  for (const { page } of sections().flatMap((section) => section.pages)) {
    const text = readFileSync(join(docs, page), "utf8").replaceAll(/^(`{3,})[\s\S]*?^\1$/gm, "");
    expect(text.startsWith("# "), page).toBe(true);
    expect(text.match(/^# /gm), page).toHaveLength(1);
  }
});

test("each entry point describes itself: the reference begins with it", () => {
  const silent = entryPoints().filter(
    ({ file }) => !/^\/\*\*\n(?: \*.*\n)* \* @packageDocumentation\n/.test(readFileSync(file, "utf8")),
  );
  expect(silent.map(({ name }) => name)).toEqual([]);
});
