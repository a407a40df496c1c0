// The site: its pages are in ../.pages, put there by ../stage.mjs and ../reference.mjs.

import { anchorOf, rewriteLinks, writePlainBraces } from "../links.mjs";
import { sidebars, topics } from "../navigation.mjs";
import { fileOfPage } from "../pages.mjs";
import { repository } from "../places.mjs";

export default {
  lang: "en",
  title: "Parley",
  description: "A2A for TypeScript: servers whose tasks survive a crash, clients that lose no event, and tools.",
  base: process.env["DOCS_BASE"] ?? "/",
  srcDir: ".pages",
  outDir: "dist",
  cacheDir: ".cache",
  cleanUrls: true,
  // The navigation is a file of its own, instead of a part of every page.
  metaChunk: true,
  head: [
    ["link", { rel: "icon", type: "image/svg+xml", href: `${process.env["DOCS_BASE"] ?? "/"}logo.svg` }],
    ["meta", { name: "theme-color", content: "#0f766e" }],
  ],
  markdown: {
    anchor: { slugify: anchorOf },
    config(markdown) {
      rewriteLinks(markdown);
      writePlainBraces(markdown);
    },
  },
  /** @param {{ relativePath: string, filePath: string, frontmatter: Record<string, unknown> }} page */
  transformPageData(page) {
    // What the link to edit a page has in place of `:path`.
    page.filePath = fileOfPage(page.relativePath);
    if (page.relativePath.startsWith("api/")) {
      page.frontmatter["editLink"] = false;
      page.frontmatter["outline"] = [2, 3];
    }
  },
  themeConfig: {
    logo: "/logo.svg",
    nav: topics(),
    sidebar: sidebars(),
    outline: [2, 3],
    externalLinkIcon: true,
    socialLinks: [{ icon: "github", link: repository }],
    editLink: {
      pattern: `${repository}/edit/main/:path`,
      text: "Edit this page",
    },
    footer: { message: "Apache-2.0" },
    search: {
      provider: "local",
      options: {
        detailedView: true,
        miniSearch: {
          searchOptions: {
            // One other letter makes another word of a short one: "api" is not "AI".
            fuzzy: (/** @type {string} */ term) => (term.length > 4 ? 0.2 : false),
            prefix: true,
            boost: { title: 4, text: 2, titles: 1 },
            processTerm(/** @type {string} */ term) {
              const word = term.toLowerCase();
              return /^(?:a|after|an|and|do|for|how|i|in|is|my|of|on|the|to|with)$/.test(word) ? null : word;
            },
            // A guide answers more questions than the reference or a decision with the same word.
            boostDocument(/** @type {string} */ id) {
              if (/\/(?:api|benchmarks|cli|decisions|extension-api|frameworks|kits|packaged-extensions)\b/.test(id))
                return 0.3;
              return /\/(?:architecture|configuration|delegation|errors|glossary|limits|scale|workflows)\b/.test(id)
                ? 0.6
                : 1;
            },
          },
        },
      },
    },
  },
  vite: {
    // The build reports the pages' size where it matters: in the reference's largest page.
    build: { chunkSizeWarningLimit: 10_000 },
    server: { host: "127.0.0.1" },
  },
};
