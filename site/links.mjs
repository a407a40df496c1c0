// Links of the pages. They are written for a code host: relative, to files. Those of packaged extensions are in a package of npm
// too, so what is not in the package they name by its address on the code host. The site has the pages of docs/ and of packaged
// extensions; a link to any other file of the repository leads to the code host.

import { existsSync, statSync } from "node:fs";
import { join, posix, relative } from "node:path";
import { fileOfPage, pageOfFile } from "./pages.mjs";
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

/** The pages and files of this repository by their address on its code host. */
const hosted = `${repository}/blob/main/`;

/**
 * The target of a link on the site.
 * @param {string} href As the page has it. @param {string} page The page, by its path on the site: `decisions/index.md`.
 * @returns {string}
 */
export function onSite(href, page) {
  const [, path = "", anchor = ""] = /^([^#]*)(#.*)?$/.exec(href) ?? [];
  if (path.startsWith(hosted)) return toPage(path.slice(hosted.length), page, anchor) ?? href;
  if (path === "" || /^[a-z]+:|^\//i.test(path)) return href;
  const source = fileOfPage(page);
  const target = posix.normalize(posix.join(posix.dirname(source), path));
  const there = toPage(target, page, anchor);
  if (there !== undefined) return there;
  const file = join(root, target);
  if (!existsSync(file)) throw new Error(`${source} links to ${href}, which is not there`);
  const kind = statSync(file).isDirectory() ? "tree" : "blob";
  return `${repository}/${kind}/main/${relative(root, file).replaceAll("\\", "/")}${anchor}`;
}

/**
 * A link between pages of the site; `undefined` if the file is not a page.
 * @param {string} file In the repository. @param {string} page The page that links. @param {string} anchor
 */
function toPage(file, page, anchor) {
  const target = pageOfFile(file);
  if (target === undefined) return undefined;
  return target === "index.md" ? `/${anchor}` : posix.relative(posix.dirname(page), target) + anchor;
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
    const page = /** @type {string} */ (env.relativePath ?? "");
    if (page.startsWith("api/") || page === "index.md") return;
    for (const { children } of tokens) {
      for (const token of children ?? []) {
        if (token.type === "link_open") token.attrSet("href", onSite(token.attrGet("href"), page));
      }
    }
  });
}
