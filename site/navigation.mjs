// The navigation of the site: what stands at the top, and at the side of each page.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { entryPoints } from "./entries.mjs";
import { addressOf, decisions, extensionPages, sections } from "./pages.mjs";
import { repository, staged } from "./places.mjs";

/** @typedef {{ text: string, link?: string, items?: Item[], collapsed?: boolean }} Item */

/** What the kinds of names are called, in the order in which the reference lists them. */
const kinds = {
  functions: "Functions",
  classes: "Classes",
  interfaces: "Interfaces",
  "type-aliases": "Types",
  variables: "Constants",
};

/** @param {import("./pages.mjs").Page} page @returns {Item} */
function itemOf({ page, title }) {
  if (page.startsWith("../")) return { text: title, link: `${repository}/blob/main/${page.slice(3)}` };
  const below = pagesBelow[page];
  const item = { text: title, link: addressOf(page) };
  if (below === undefined) return item;
  return { ...item, items: below().map((one) => ({ text: one.title, link: addressOf(one.page) })), collapsed: true };
}

/** The pages that the navigation shows below another one. @type {Record<string, () => readonly { page: string, title: string }[]>} */
const pagesBelow = { "decisions/README.md": decisions, "extensions.md": extensionPages };

/** The links at the top: the first page of each of the main sections. */
export function topics() {
  const first = sections().flatMap(({ title, pages: [page] }) =>
    page === undefined ? [] : [{ text: title, link: addressOf(page.page) }],
  );
  return [
    ...first.filter(({ text }) => ["Start", "Guides", "Operating", "Reference"].includes(text)),
    { text: "API", link: "/api/", activeMatch: "/api/" },
  ];
}

/** The names of an entry point, by kind. @param {string} entry @returns {Item[]} */
function namesOf(entry) {
  const folder = join(staged, "api", entry);
  return Object.entries(kinds).flatMap(([kind, text]) => {
    if (!existsSync(join(folder, kind))) return [];
    const pages = readdirSync(join(folder, kind)).map((file) => file.replace(/\.md$/, ""));
    const items = pages.sort().map((name) => ({ text: name, link: `/api/${entry}/${kind}/${name}` }));
    return [{ text, items, collapsed: items.length > 40 }];
  });
}

/** The navigation at the side: of the guides, and of each entry point of the reference. */
export function sidebars() {
  /** @type {Item[]} */
  const guides = sections().map(({ title, pages }) => {
    const items = pages.map(itemOf);
    if (title === "Reference") items.unshift({ text: "API of the packages", link: "/api/" });
    return { text: title, items };
  });
  /** @type {Record<string, Item[]>} */
  const all = { "/": guides };
  for (const { name, path } of entryPoints()) {
    const back = { text: "← All packages", link: "/api/" };
    all[`/api/${path}/`] = [back, { text: name, link: `/api/${path}/`, items: namesOf(path) }];
  }
  return all;
}
