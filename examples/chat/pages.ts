import { join } from "node:path";
import type { RouteMount } from "@parley/server";
import { build } from "esbuild";

const frontEnds = [
  ["use-chat", "useChat() of the AI SDK"],
  ["hooks", "Hooks of @parley/react"],
] as const;

/** Serves the pages at the agent's origin. `conditions`: export conditions of the packages that they import. */
export async function mountPages(conditions: string[] = []): Promise<RouteMount[]> {
  const { outputFiles } = await build({
    entryPoints: frontEnds.map(([name]) => join(import.meta.dirname, "pages", `${name}.tsx`)),
    bundle: true,
    minify: true,
    format: "esm",
    jsx: "automatic",
    conditions,
    outdir: "/",
    write: false,
  });
  return frontEnds.map(([name, text], at) => ({
    path: `/${name}`,
    link: () => ({ text, href: `/${name}` }),
    answer({ url }) {
      if (!url.endsWith("/page.js")) return html(text, `/${name}/page.js`);
      return new Response(outputFiles[at]?.text, { headers: { "content-type": "text/javascript" } });
    },
  }));
}

function html(title: string, script: string): Response {
  const page = `<!doctype html>
<html lang="en">
  <meta charset="utf-8" />
  <title>${title}</title>
  <body>
    <script type="module" src="${script}"></script>
  </body>
</html>`;
  return new Response(page, { headers: { "content-type": "text/html" } });
}
