import { defineConfig } from "vite";

// Builds the console's application: `vite build packages/console/app` writes to dist/app.
export default defineConfig({
  base: "./",
  // Resolves packages to their sources, so they need no build first.
  resolve: { conditions: ["@parley/source", "browser", "module", "import", "default"] },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../dist/app",
    emptyOutDir: true,
    target: "es2023",
    modulePreload: { polyfill: false },
    // The page's Content-Security-Policy forbids `data:` URLs.
    assetsInlineLimit: 0,
    rolldownOptions: {
      output: {
        // One chunk for the code that every screen needs compresses better than one per file.
        codeSplitting: {
          groups: [
            {
              name: "base",
              test: /[\\/](?:preact|@preact)[\\/]|app[\\/](?!(?:code|tasks)\.ts)(?:\w+\.ts|lazy\.tsx)$|operate[\\/](?:api|poll)\.ts$|parts[\\/](?:content|form|task|time)\.tsx$/,
            },
          ],
        },
      },
    },
  },
});
