// Checks what was built: every internal link and anchor leads somewhere, and no page asks another host for anything.

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join, posix } from "node:path";
import { repository, root } from "./places.mjs";

/** @typedef {ReadonlyMap<string, string>} Pages The pages of the site, by path: `client.html`. */

/** @param {string} folder @returns {Pages} */
export function pagesOf(folder) {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".html"));
  return new Map(files.map((file) => [file.replaceAll("\\", "/"), readFileSync(join(folder, file), "utf8")]));
}

/** @param {string} text */
function unescaped(text) {
  return text.replaceAll("&amp;", "&").replaceAll("&quot;", '"').replaceAll("&#39;", "'");
}

/** @param {string} html @param {RegExp} pattern @returns {readonly string[]} */
function all(html, pattern) {
  return [...html.matchAll(pattern)].map(([, value = ""]) => unescaped(value));
}

/** The file that a path of the site means. @param {Pages} pages @param {string} path */
function fileOf(pages, path) {
  const clean = path.replace(/^\//, "");
  return [clean, `${clean}.html`, posix.join(clean, "index.html")].find((file) => pages.has(file));
}

/**
 * Links to pages and anchors that are not there.
 * @param {Pages} pages @param {string} base The path of the site on its host. @returns {readonly string[]}
 */
export function brokenLinks(pages, base) {
  const anchors = new Map([...pages].map(([page, html]) => [page, new Set(all(html, /\sid="([^"]+)"/g))]));
  /** @type {Set<string>} */
  const problems = new Set();
  for (const [page, html] of pages) {
    for (const href of all(html, /<a\b[^>]*?\shref="([^"]*)"/g)) {
      if (/^[a-z]+:/i.test(href)) continue;
      const here = new URL(`${base}${page.replace(/(^|\/)index\.html$/, "$1")}`, "http://site.invalid");
      const url = new URL(href, here);
      const path = decodeURIComponent(url.pathname);
      const file = path.startsWith(base) ? fileOf(pages, path.slice(base.length)) : undefined;
      const anchor = decodeURIComponent(url.hash.slice(1));
      if (file === undefined) problems.add(`${page} links to ${href}, which is not there`);
      else if (anchor !== "" && anchors.get(file)?.has(anchor) !== true)
        problems.add(`${page} links to ${href}, which is not a heading of ${file}`);
    }
  }
  return [...problems];
}

/** Links to files of the repository that are not there. @param {Pages} pages @returns {readonly string[]} */
export function brokenSources(pages) {
  /** @type {Map<string, string>} */
  const places = new Map();
  const pattern = new RegExp(`href="${repository}/(?:blob|tree|edit)/main/([^"#]*)`, "g");
  for (const [page, html] of pages) for (const path of all(html, pattern)) places.set(path, page);
  return [...places]
    .filter(([path]) => !existsSync(join(root, path)))
    .map(([path, page]) => `${page} links to ${path} of the repository, which is not there`);
}

/** Pages without a title: the generator prints what went wrong in them, and continues. @param {Pages} pages */
export function emptyPages(pages) {
  const empty = [...pages].filter(([page, html]) => page !== "404.html" && !html.includes("<h1"));
  return empty.map(([page]) => `${page} could not be rendered`);
}

/** What a page would load from another host. @param {Pages} pages @returns {readonly string[]} */
export function outsideRequests(pages) {
  return [...pages].flatMap(([page, html]) => {
    const loaded = [
      ...all(html, /<(?:script|img|iframe|source|video|audio)\b[^>]*?\ssrc="([^"]*)"/g),
      ...all(html, /<link\b[^>]*?\shref="([^"]*)"/g),
    ];
    return loaded.filter((url) => /^(?:[a-z]+:)?\/\//i.test(url)).map((url) => `${page} loads ${url}`);
  });
}
