// docs/pages.json: which pages there are, and in which order. The navigation of the site and docs/README.md are made of it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./places.mjs";

/**
 * @typedef {{ page: string, title: string, about: string }} Page A page, by its path from docs/.
 * @typedef {{ title: string, pages: readonly Page[] }} Section
 */

/** The sections, in the order in which a newcomer needs them. @returns {readonly Section[]} */
export function sections() {
  return JSON.parse(readFileSync(join(root, "docs", "pages.json"), "utf8"));
}

/** The decisions, in the order in which their index names them. @returns {readonly { page: string, title: string }[]} */
export function decisions() {
  const folder = join(root, "docs", "decisions");
  const index = readFileSync(join(folder, "README.md"), "utf8");
  const named = [...index.matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, page = ""]) => page);
  return [...new Set(named)].map((page) => {
    const [, title = page] = /^# (.+)$/m.exec(readFileSync(join(folder, page), "utf8")) ?? [];
    return { page: `decisions/${page}`, title };
  });
}

/** docs/README.md: the index of the pages on a code host. @returns {string} */
export function index() {
  const parts = sections().map(({ title, pages }) => {
    const lines = pages.map(({ page, title: name, about }) => `- [${name}](${page}): ${about}`);
    return `## ${title}\n\n${lines.join("\n")}\n`;
  });
  return `# Documentation\n\n${parts.join("\n")}`;
}

/** The path of a page on the site. @param {string} page Its path from docs/. @returns {string} */
export function addressOf(page) {
  return `/${page.replace(/\.md$/, "").replace(/(^|\/)README$/, "$1")}`;
}
