import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";
import { anchorOf } from "../../site/links.mjs";
import { repository } from "../../site/places.mjs";
import { allPages, root } from "./pages.ts";

/** Checks every link on every page of the repository, without a network: files and headings exist, and URLs are well formed. */

/** This file contains the text around the tables of docs/benchmarks.md. The test checks the links of that text on the finished page. */
const parts = ["benchmarks/page.md"];

const pages = allPages()
  .filter((page) => !parts.includes(page))
  .map((page) => join(root, page));

/** Returns the text of a page without its programs, because links in programs are examples. */
function prose(file: string): string {
  return readFileSync(file, "utf8").replaceAll(/^(`{3,})[\s\S]*?^\1$/gm, "");
}

function linksOf(file: string): readonly string[] {
  const text = prose(file).replaceAll(/(`+)[^`]+\1/g, "code");
  const inline = [...text.matchAll(/\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)[^()]*\)/g)].map(
    ([, target = ""]) => target,
  );
  const listed = [...text.matchAll(/^\[[^\]]+\]: (\S+)/gm)].map(([, target = ""]) => target);
  return [...inline, ...listed];
}

/** Returns the anchors of a page, as code hosts and the site generate them: the second of two equal headings gets a number. */
function anchorsOf(file: string): ReadonlySet<string> {
  const seen = new Map<string, number>();
  const anchors = [...prose(file).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = ""]) => {
    const anchor = anchorOf(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll(/[`*]/g, ""));
    const count = seen.get(anchor) ?? 0;
    seen.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  });
  return new Set(anchors);
}

/** Returns the error in a link to a file of the repository, if any. */
function problemOf(file: string, path: string, anchor: string): string | undefined {
  if (!existsSync(file)) return "is not there";
  if (relative(root, file).startsWith("..")) return "is outside of the repository";
  if (anchor === "") return undefined;
  if (statSync(file).isDirectory() || !path.endsWith(".md"))
    return anchor.startsWith("L") ? undefined : "has no headings";
  return anchorsOf(file).has(anchor) ? undefined : "has no such heading";
}

test("links between pages, and their anchors, resolve", () => {
  const broken = pages.flatMap((page) =>
    linksOf(page).flatMap((link) => {
      if (/^[a-z]+:/i.test(link) || (page.endsWith("site/home.md") && link.startsWith("/"))) return [];
      const [path = "", anchor = ""] = link.split("#");
      const file = path === "" ? page : join(dirname(page), decodeURIComponent(path));
      const problem = problemOf(file, file, anchor);
      return problem === undefined ? [] : [`${relative(root, page)}: ${link} ${problem}`];
    }),
  );
  expect(broken).toEqual([]);
});

test("links to the repository on its code host point to existing files", () => {
  const broken = pages.flatMap((page) =>
    linksOf(page).flatMap((link) => {
      const [, path = "", anchor = ""] = link.startsWith(repository)
        ? (/^\/(?:blob|tree)\/main\/([^#]*)#?(.*)$/.exec(link.slice(repository.length)) ?? [])
        : [];
      const problem = path === "" ? undefined : problemOf(join(root, path), path, anchor);
      return problem === undefined ? [] : [`${relative(root, page)}: ${link} ${problem}`];
    }),
  );
  expect(broken).toEqual([]);
});

test("links to elsewhere are well formed, and use https", () => {
  const odd = pages.flatMap((page) =>
    linksOf(page)
      .filter((link) => /^[a-z]+:/i.test(link))
      .filter((link) => {
        if (!URL.canParse(link)) return true;
        const { protocol, hostname, username } = new URL(link);
        const local = ["localhost", "127.0.0.1"].includes(hostname);
        return username !== "" || !hostname.includes(".") || (protocol !== "https:" && !local);
      })
      .map((link) => `${relative(root, page)}: ${link}`),
  );
  expect(odd).toEqual([]);
});
