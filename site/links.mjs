// Links of the pages. They are written for a code host: relative, to files. The site has the pages of docs/; a link to any other
// file of the repository leads to the code host.

import { existsSync, statSync } from "node:fs";
import { dirname, join, posix, relative } from "node:path";
import { repository, root } from "./places.mjs";

/**
 * The anchor of a heading, as code hosts make it: letters, digits, `-` and `_`, and a hyphen for each space.
 * @param {string} heading @returns {string}
 */
export function anchorOf(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
    .replaceAll(" ", "-");
}

/**
 * The target of a link on the site.
 * @param {string} href As the page has it. @param {string} page The page, by its path from docs/.
 * @returns {string}
 */
export function onSite(href, page) {
  const [, path = "", anchor = ""] = /^([^#]*)(#.*)?$/.exec(href) ?? [];
  if (path === "" || /^[a-z]+:|^\//i.test(path)) return href;
  const target = posix.normalize(posix.join("docs", dirname(page), path));
  if (target === "docs/README.md") return `/${anchor}`;
  if (target.startsWith("docs/") && target.endsWith(".md")) {
    const between = posix.relative(dirname(page), target.slice("docs/".length));
    return between.replace(/(^|\/)README\.md$/, "$1index.md") + anchor;
  }
  const file = join(root, target);
  if (!existsSync(file)) throw new Error(`docs/${page} links to ${href}, which is not there`);
  const kind = statSync(file).isDirectory() ? "tree" : "blob";
  return `${repository}/${kind}/main/${relative(root, file).replaceAll("\\", "/")}${anchor}`;
}

/**
 * Makes a Markdown renderer write `{{` so that no template is made of it: pages are text.
 * @param {{ renderer: { rules: Record<string, (...args: any[]) => string> } }} markdown
 */
export function writePlainBraces({ renderer: { rules } }) {
  for (const name of ["text", "code_inline"]) {
    const rule = rules[name];
    if (rule !== undefined) rules[name] = (...args) => rule(...args).replaceAll("{{", "&#123;&#123;");
  }
}

/**
 * Makes a Markdown renderer write links for the site.
 * @param {{ core: { ruler: { push: (name: string, rule: (state: any) => void) => void } } }} markdown
 */
export function rewriteLinks(markdown) {
  markdown.core.ruler.push("parley-links", ({ tokens, env }) => {
    // Pages of the reference, and the home page, are written for the site.
    const page = /** @type {string} */ (env.relativePath ?? "").replace(/(^|\/)index\.md$/, "$1README.md");
    if (page.startsWith("api/") || page === "README.md") return;
    for (const { children } of tokens) {
      for (const token of children ?? []) {
        if (token.type === "link_open") token.attrSet("href", onSite(token.attrGet("href"), page));
      }
    }
  });
}
