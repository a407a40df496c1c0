import { build, type Plugin } from "esbuild";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { defineAgent, serve } from "@parley/node";
import type { Page } from "playwright-core";
import { onTestFinished } from "vitest";
import { install } from "../../scripts/ready.mjs";

/* Pages with front ends of others, which are large: test/ui has them, and is installed when a test needs it. */

const folder = join(import.meta.dirname, "..", "ui");
const modules = join(folder, "node_modules");

/** The files of a page, by name. */
export type PageFiles = ReadonlyMap<string, Uint8Array<ArrayBuffer>>;

const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "ag-ui.md"), "utf8");
const snippets = [...page.matchAll(/^```jsx\n(.*?)^```$/gms)].map(([, code = ""]) => code);

/** Programs of docs/ag-ui.md as modules: `ag-ui.md:0` is the first one. Their agent is at the page's origin, their thread is the hash. */
const documented: Plugin = {
  name: "docs",
  setup(builder) {
    builder.onResolve({ filter: /^ag-ui\.md:/ }, ({ path }) => ({ path, namespace: "docs" }));
    builder.onLoad({ filter: /.*/, namespace: "docs" }, ({ path }) => ({
      contents: snippets[Number(path.split(":")[1])]
        ?.replace('"https://agents.example.com/travel"', "location.origin")
        .replace('"trip-7"', "location.hash.slice(1)"),
      loader: "jsx",
      resolveDir: folder,
    }));
  },
};

/** @param names - Files of test/ui, without their ending. */
export async function pagesOf(...names: readonly string[]): Promise<PageFiles> {
  await install(folder, ["--ignore-scripts"]);
  const { outputFiles } = await build({
    entryPoints: names.map((name) => join(folder, `${name}.jsx`)),
    plugins: [documented],
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "browser",
    jsx: "automatic",
    conditions: ["@parley/source"],
    // The adapter gets the version of the page.
    alias: { "@ag-ui/client": join(modules, "@ag-ui/client/dist/index.mjs"), rxjs: join(modules, "rxjs") },
    define: { "process.env.NODE_ENV": '"development"' },
    loader: { ".ttf": "empty", ".woff": "empty", ".woff2": "empty" },
    outdir: "out",
    write: false,
  });
  return new Map(outputFiles.map(({ path, contents }) => [basename(path), new Uint8Array(contents)]));
}

const html = (name: string): string =>
  `<!doctype html><html lang="en"><title>Chat</title><meta charset="utf-8"><link rel="icon" href="data:,"><link rel="stylesheet" href="/page/${name}.css"><body style="margin: 0"><script type="module" src="/page/${name}.js"></script></html>`;

/** The address of a page with an agent at its origin. The hash is the id of a new thread. */
export async function pageWith(
  files: PageFiles,
  name: string,
  onMessage: Parameters<typeof defineAgent>[0]["onMessage"],
): Promise<string> {
  const agent = defineAgent({
    name: "Talker",
    description: "Talks.",
    version: "1.0.0",
    skills: [],
    // Approvals are sent as data.
    defaultInputModes: ["text/plain", "application/json"],
    onMessage,
  });
  const server = await serve(agent, {
    port: 0,
    logger: false,
    routes: (request) => {
      const { pathname } = new URL(request.url);
      if (pathname === "/chat") return new Response(html(name), { headers: { "content-type": "text/html" } });
      if (!pathname.startsWith("/page/")) return undefined;
      const type = pathname.endsWith("css") ? "text/css" : "text/javascript";
      return new Response(files.get(basename(pathname)), { headers: { "content-type": type } });
    },
  });
  onTestFinished(() => server.close());
  return `${new URL(server.url).origin}/chat#${crypto.randomUUID()}`;
}

export async function say(page: Page, message: string): Promise<void> {
  await page.fill("textarea", message);
  await page.keyboard.press("Enter");
}
