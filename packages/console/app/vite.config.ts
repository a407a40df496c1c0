import { defineConfig } from "vite";

// The application of the console: `vite build packages/console/app` writes it to dist/app.
export default defineConfig({
  base: "./",
  // The sources of the packages, so that no other build comes first.
  resolve: { conditions: ["@parley/source", "browser", "module", "import", "default"] },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../dist/app",
    emptyOutDir: true,
    target: "es2023",
    modulePreload: { polyfill: false },
    // An address with `data:` is not allowed by the policy of the page.
    assetsInlineLimit: 0,
    rolldownOptions: {
      output: {
        // What every screen needs is compressed together, which is smaller than file by file.
        codeSplitting: {
          groups: [
            {
              name: "base",
              test: /[\\/](?:preact|@preact)[\\/]|app[\\/](?:\w+\.ts|lazy\.tsx)$|parts[\\/](?:content|task)\.tsx$/,
            },
          ],
        },
      },
    },
  },
});
