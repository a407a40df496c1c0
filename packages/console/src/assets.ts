import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

/* The browser application that `npm run build` creates. */

/** Folder of the built application. The relative path works from both `src` and `dist`. */
const folder = new URL("../dist/app/", import.meta.url);

const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

/**
 * The Content-Security-Policy of the application: its own files, and requests to its own origin. It shows files of agents as blob URLs,
 * images only.
 */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src blob:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const cache = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();

/** A file of the application, by its path below the console. `undefined`: not found. */
export async function asset(path: string): Promise<Response | undefined> {
  const name = path === "" || path === "/" ? "index.html" : path.slice(1);
  const type = /^(?:assets\/)?[\w-]+(?:\.[\w-]+)*\.(\w+)$/.exec(name)?.[1];
  if (type === undefined || types[type] === undefined) return undefined;
  try {
    const file =
      cache.get(name) ?? readFile(fileURLToPath(new URL(name, folder))).then((bytes) => new Uint8Array(bytes));
    cache.set(name, file);
    // File names below `assets` contain a hash of the content.
    const caching = name.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache";
    const headers = { "content-type": types[type], "cache-control": caching, "content-security-policy": policy };
    return new Response(await file, { headers });
  } catch (cause) {
    cache.delete(name);
    if (name !== "index.html") return undefined;
    throw new Error("The console's application is not built; run `npm run build`", { cause });
  }
}
