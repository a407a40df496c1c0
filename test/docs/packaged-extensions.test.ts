import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";
import { a2ui } from "@parley/extensions/a2ui";
import { agp } from "@parley/extensions/agp";
import { idempotentSends } from "@parley/a2a/internal/extensions/idempotent-sends/index";
import { oid4vp } from "@parley/extensions/oid4vp";
import { resumableStreams } from "@parley/a2a/internal/extensions/resumable-streams/index";
import { passportKeys, securePassport } from "@parley/extensions/secure-passport";
import { taskSearch } from "@parley/extensions/task-search";
import { specifiedTimestamp, timestamp } from "@parley/extensions/timestamp";
import { traceability } from "@parley/extensions/traceability";
import { x402 } from "@parley/extensions/x402";
import { entryPoints } from "../../site/entries.mjs";
import { onSite } from "../../site/links.mjs";
import { sidebars } from "../../site/navigation.mjs";
import { extensionPages, fileOfPage } from "../../site/pages.mjs";
import { repository } from "../../site/places.mjs";
import { root } from "./pages.ts";

/** Checks that the statements of docs/extensions.md on packaged extensions are true for all of them, and for no other extensions. */

const folder = "packages/extensions/src";
/** The two extensions that every server declares, in the package that clients and servers share. */
const everywhere = "packages/a2a/src/extensions";

const foldersIn = (parent: string): readonly string[] =>
  readdirSync(join(root, parent), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    // `shared` is not an extension, and has no README.
    .filter((name) => existsSync(join(root, parent, name, "README.md")));
const placeOf = new Map([folder, everywhere].flatMap((parent) => foldersIn(parent).map((name) => [name, parent])));
const packaged = [...placeOf.keys()].sort();
const pageOf = (name: string): string => `${placeOf.get(name)}/${name}/README.md`;
const entryOf = (name: string): string =>
  placeOf.get(name) === folder ? `@parley/extensions/${name}` : "@parley/a2a/extensions";

/** All extensions that entry points can create, in each version and kind. */
const values: Readonly<Record<string, readonly { readonly uri: string; readonly kind?: string }[]>> = {
  a2ui: (["0.8", "0.9", "0.9.1", "0.10"] as const).map((version) => a2ui({ version })),
  agp: [agp()],
  "idempotent-sends": [idempotentSends],
  oid4vp: [oid4vp],
  "resumable-streams": [resumableStreams],
  "secure-passport": [securePassport(), securePassport({ require: true, trust: passportKeys({}) })],
  "task-search": [taskSearch],
  timestamp: [timestamp, specifiedTimestamp],
  traceability: [traceability],
  x402: [x402(), x402({ version: "0.2" })],
};

/** Returns the rows of the table, with trimmed cells. */
function rowsOfTable(): readonly (readonly string[])[] {
  const page = readFileSync(join(root, "docs/extensions.md"), "utf8");
  const [, section = "", ...others] = page.split("\n## Packaged extensions\n");
  expect(others).toEqual([]);
  const [table = ""] = section.split("\n## ");
  const lines = table.match(/^\| \[.*\|$/gm) ?? [];
  return lines.map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}

const codesOf = (cell: string | undefined): readonly string[] =>
  [...(cell ?? "").matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
const titleOf = (name: string): string => /^# (.+)$/m.exec(readFileSync(join(root, pageOf(name)), "utf8"))?.[1] ?? "";

test("the table has each packaged extension, by the title of its page", () => {
  expect(rowsOfTable().map(([link, entry]) => [link, entry])).toEqual(
    packaged
      .map((name) => [titleOf(name), name] as const)
      .sort(([one], [other]) => one.toLowerCase().localeCompare(other.toLowerCase(), "en"))
      .map(([title, name]) => [`[${title}](../${pageOf(name)})`, `\`${entryOf(name)}\``]),
  );
});

test("the table has the URIs and the kinds of the values", () => {
  for (const [link, , about, kind, uris] of rowsOfTable()) {
    const name = /\/([\w-]+)\/README\.md\)$/.exec(link ?? "")?.[1] ?? "";
    const made = values[name] ?? [];
    expect(about, name).not.toBe("");
    expect(codesOf(uris), name).toEqual([...new Set(made.map(({ uri }) => uri))]);
    const kinds = new Set(made.map((value) => value.kind ?? "profile"));
    expect(codesOf(kind).slice(0, kinds.size), name).toEqual([...kinds]);
  }
  expect(Object.keys(values).sort()).toEqual(packaged);
});

test("the site has a page for each, below that of extensions, with its title and its file", () => {
  expect(
    extensionPages()
      .map(({ file }) => file)
      .sort(),
  ).toEqual(packaged.map((name) => pageOf(name)).sort());
  const items = sidebars()["/"]?.flatMap((section) => section.items ?? []) ?? [];
  const below = items.find(({ link }) => link === "/extensions")?.items ?? [];
  expect(below.map(({ text, link }) => [text, link])).toEqual(
    extensionPages().map(({ title, page }) => [title, `/${page.replace(/\.md$/, "")}`]),
  );
  for (const { page, file } of extensionPages()) expect(fileOfPage(page)).toBe(file);
});

test("links between these pages and those of docs/ stay on the site, and others lead to the code host", () => {
  const x402Page = "packaged-extensions/x402.md";
  expect(onSite(`../${folder}/x402/README.md#testing`, "extensions.md")).toBe(`${x402Page}#testing`);
  expect(onSite("../timestamp/README.md", x402Page)).toBe("timestamp.md");
  expect(onSite("../timestamp", x402Page)).toBe("timestamp.md");
  expect(onSite(`${repository}/blob/main/docs/push.md#signatures`, x402Page)).toBe("../push.md#signatures");
  expect(onSite(`${repository}/blob/main/docs/decisions/README.md`, x402Page)).toBe("../decisions/index.md");
  expect(onSite("./types.ts", x402Page)).toBe(`${repository}/blob/main/${folder}/x402/types.ts`);
  expect(onSite(`${repository}/blob/main/SECURITY.md`, x402Page)).toBe(`${repository}/blob/main/SECURITY.md`);
  expect(onSite("../SECURITY.md", "push.md")).toBe(`${repository}/blob/main/SECURITY.md`);
  expect(onSite("README.md", "decisions/time.md")).toBe("index.md");
  expect(onSite("../README.md#start", "decisions/time.md")).toBe("/#start");
  expect(() => onSite("../nothing/README.md", x402Page)).toThrow("is not there");
});

test.each(packaged)("%s: links of its page are in the npm package, or have a whole address", (name) => {
  const text = readFileSync(join(root, pageOf(name)), "utf8").replaceAll(/^```[\s\S]*?^```$/gm, "");
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
  const inTree = links.filter((link) => !/^(?:https:|#)/.test(link));
  const parent = placeOf.get(name) ?? "";
  const pages = packaged.filter((each) => placeOf.get(each) === parent).map((each) => pageOf(each));
  for (const link of inTree) {
    const target = join(root, dirname(pageOf(name)), link.replace(/#.*$/, ""));
    expect(pages, link).toContain(relative(root, target));
  }
  expect(links.filter((link) => link.includes(`/blob/main/${parent}/`))).toEqual([]);
});

test.each(packaged)("%s has a page, an entry point and tests", (name) => {
  const entry = entryPoints().find((each) => each.name === entryOf(name));
  const source = placeOf.get(name) === folder ? `${folder}/${name}/index.ts` : `${everywhere}.ts`;
  expect(relative(root, entry?.file ?? "")).toBe(source);
  const tests = [`packages/extensions/test/${name}`, `test/behaviour/${name}.test.ts`];
  expect(tests.filter((path) => existsSync(join(root, path)))).not.toEqual([]);
});
