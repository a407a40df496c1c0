// Puts the pages where the generator reads them: those of docs/ and of packaged extensions, and the home page. The reference is
// written beside them.

import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  watch,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { extensionPages } from "./pages.mjs";
import { root, site, staged } from "./places.mjs";

const docs = join(root, "docs");

/** Copies a page. The index of a folder is called `index.md` there. @param {string} page Its path from docs/. */
function copy(page) {
  const to = join(staged, page.replace(/README\.md$/, "index.md"));
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(join(docs, page), to);
}

/** Copies the page of a packaged extension. @param {{ page: string, file: string }} one */
function copyExtension({ page, file }) {
  mkdirSync(dirname(join(staged, page)), { recursive: true });
  copyFileSync(join(root, file), join(staged, page));
}

/** Writes the first page. Its programs are those of the README, which tests run. */
function copyHome() {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const home = readFileSync(join(site, "home.md"), "utf8").replace(/<!-- README\.md: (.+?) -->/g, (_, fence) => {
    const [block] = new RegExp(`^\`\`\`${fence}\\n[\\s\\S]*?^\`\`\`$`, "m").exec(readme) ?? [];
    if (block === undefined) throw new Error(`README.md has no block \`\`\`${fence}, which site/home.md shows`);
    return block;
  });
  writeFileSync(join(staged, "index.md"), home);
}

/** Whether a file of docs/ is a page of the site. The index of docs/ is not: the site has a navigation. @param {string} file */
function isPage(file) {
  return file.endsWith(".md") && file !== "README.md";
}

/** Copies all pages, and removes those that are gone. The reference is kept. */
export function stage() {
  mkdirSync(staged, { recursive: true });
  for (const entry of readdirSync(staged)) {
    if (entry !== "api") rmSync(join(staged, entry), { recursive: true });
  }
  const pages = readdirSync(docs, { recursive: true, encoding: "utf8" });
  for (const page of pages.map((file) => file.replaceAll("\\", "/")).filter(isPage)) copy(page);
  for (const one of extensionPages()) copyExtension(one);
  copyHome();
  cpSync(join(site, "public"), join(staged, "public"), { recursive: true });
}

/** Copies each page again when it changes. */
export function follow() {
  watch(docs, { recursive: true }, (_event, file) => {
    const page = file?.replaceAll("\\", "/") ?? "";
    if (isPage(page) && existsSync(join(docs, page))) copy(page);
  });
  for (const one of extensionPages()) watch(join(root, one.file), () => copyExtension(one));
  watch(join(site, "home.md"), copyHome);
}
