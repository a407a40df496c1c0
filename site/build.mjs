// Builds or serves the site. scripts/docs.mjs calls it when the generator is installed.

import { build, createServer } from "vitepress";
import { brokenLinks, brokenSources, emptyPages, outsideRequests, pagesOf } from "./check.mjs";
import { output, site } from "./places.mjs";
import { writeReference } from "./reference.mjs";
import { follow, stage } from "./stage.mjs";

/** @param {string} line */
const say = (line) => process.stdout.write(`${line}\n`);

/** Stages the pages, and writes the reference. @returns {Promise<boolean>} */
async function prepare() {
  stage();
  say("Reading the comments of every entry point …");
  return writeReference();
}

/** @returns {Promise<boolean>} Whether the site is whole. */
export async function buildSite() {
  if (!(await prepare())) {
    say("The reference has warnings; they are above. Each is an error.");
    return false;
  }
  say("Building the pages …");
  await build(site);
  const pages = pagesOf(output);
  const base = process.env["DOCS_BASE"] ?? "/";
  const problems = [
    ...emptyPages(pages),
    ...brokenLinks(pages, base),
    ...brokenSources(pages),
    ...outsideRequests(pages),
  ];
  for (const problem of problems) say(problem);
  say(
    problems.length === 0
      ? `Built ${pages.size} pages in site/dist. npx vitepress preview shows them, in site/.`
      : `${problems.length} problems on ${pages.size} pages.`,
  );
  return problems.length === 0;
}

/** Serves the pages, and follows their changes. */
export async function develop() {
  await prepare();
  follow();
  const server = await createServer(site, { host: "127.0.0.1" });
  await server.listen();
  server.printUrls();
}
