import { build } from "esbuild";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentCard } from "@parley/a2a";
import type { Task } from "@parley/a2a/model";

/* Bundles the page of packages/react/test/page for both versions of React. */

export interface Initial {
  readonly card?: AgentCard;
  readonly tasks?: readonly Task[];
}

export interface ReactPage {
  /** The script of the page. */
  readonly script: string;
  /** Renders the page without its script, as a server does. */
  render(initial: Initial): string;
}

export type ReactVersion = 18 | 19;

const root = join(import.meta.dirname, "..", "..");

/** Bundles a file of the page. React 18 comes from a separate package. */
async function bundle(file: string, version: ReactVersion, platform: "browser" | "node"): Promise<string> {
  const installed = join(root, "test", "react-18", "node_modules");
  const { outputFiles } = await build({
    entryPoints: [join(root, "packages", "react", "test", "page", file)],
    bundle: true,
    format: platform === "node" ? "cjs" : "esm",
    platform,
    jsx: "automatic",
    conditions: ["@parley/source"],
    define: { "process.env.NODE_ENV": '"development"' },
    ...(version === 18 && { alias: { react: join(installed, "react"), "react-dom": join(installed, "react-dom") } }),
    write: false,
  });
  return outputFiles[0]?.text ?? "";
}

export async function reactPage(version: ReactVersion): Promise<ReactPage> {
  const [script, server] = await Promise.all([
    bundle("main.tsx", version, "browser"),
    bundle("server.tsx", version, "node"),
  ]);
  const folder = mkdtempSync(join(tmpdir(), "parley-react-"));
  const file = join(folder, "server.cjs");
  writeFileSync(file, server);
  const { render } = createRequire(file)(file) as Pick<ReactPage, "render">;
  rmSync(folder, { recursive: true });
  return { script, render };
}

/** Returns the page and its script, by path. `initial`: the data that the server reads and renders. */
export function contents(
  { script, render }: ReactPage,
  initial?: Initial,
): Readonly<Record<string, readonly string[]>> {
  const json = JSON.stringify(initial ?? {}).replaceAll("<", String.raw`\u003c`);
  const content = initial === undefined ? "" : render(initial);
  const given = initial === undefined ? "" : `<script id="initial" type="application/json">${json}</script>`;
  const html = `<!doctype html><html lang="en"><title>Chat</title><meta charset="utf-8"><link rel="icon" href="data:,"><body><div id="root">${content}</div>${given}<script type="module" src="/page.js"></script></html>`;
  return { "/chat": ["text/html", html], "/page.js": ["text/javascript", script] };
}
