// docs/pages.json: which pages there are, and in which order. The navigation of the site and docs/README.md are made of it.

import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
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

/**
 * The folder of the pages of packaged extensions on the site. It is not called `extensions`: some hosts do not serve a page
 * beside a folder of its name.
 */
const packaged = "packaged-extensions";

/**
 * The pages of the packaged extensions, in the order of the table in docs/extensions.md. They are beside the code, and in the
 * package of npm, so the site takes them from there.
 * @returns {readonly { page: string, file: string, title: string }[]} Each with its path on the site, and its file in the repository.
 */
export function extensionPages() {
  const table = readFileSync(join(root, "docs", "extensions.md"), "utf8");
  const rows = table.matchAll(/^\| \[([^\]]+)\]\(\.\.\/([^)]+\/([\w-]+)\/README\.md)\)/gm);
  return [...rows].map(([, title = "", file = "", name = ""]) => ({ page: `${packaged}/${name}.md`, file, title }));
}

/** The file of a page in the repository. @param {string} page Its path on the site: `client.md`. @returns {string} */
export function fileOfPage(page) {
  const extension = extensionPages().find((one) => one.page === page);
  return extension?.file ?? posix.join("docs", page.replace(/(^|\/)index\.md$/, "$1README.md"));
}

/**
 * The page of the site that a file of the repository becomes; `undefined` if it is not a page.
 * @param {string} file A file, or the folder of a page: `packages/extensions/src/x402`. @returns {string | undefined}
 */
export function pageOfFile(file) {
  const path = file.replace(/\/$/, "");
  const extension = extensionPages().find((one) => one.file === path || posix.dirname(one.file) === path);
  if (extension !== undefined) return extension.page;
  if (!path.startsWith("docs/") || !path.endsWith(".md")) return undefined;
  return path.slice("docs/".length).replace(/(^|\/)README\.md$/, "$1index.md");
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
