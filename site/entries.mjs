// The entry points of the packages: what a program can import.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { entriesOf } from "../scripts/entries.mjs";
import { root } from "./places.mjs";

/**
 * @typedef {object} Entry
 * @property {string} name As it is imported: `@parley/a2a/model`.
 * @property {string} path On the site, below `/api/`: `a2a/model`.
 * @property {string} file The source behind it.
 * @typedef {{ name: string, exports?: Record<string, string | Record<string, string>> }} Manifest
 */

/** The packages in the order in which they are met; further ones follow. */
const order = ["node", "a2a", "server", "sql", "grpc", "nats", "extensions", "testing", "conform"];

/** Every entry point of every package. @returns {readonly Entry[]} */
export function entryPoints() {
  const folders = new Set([...order, ...readdirSync(join(root, "packages"))]);
  return [...folders].flatMap((folder) => {
    const file = join(root, "packages", folder, "package.json");
    const manifest = /** @type {Manifest} */ (JSON.parse(readFileSync(file, "utf8")));
    return entriesOf(join(root, "packages", folder), manifest.exports).map(([path, target]) => {
      const name = manifest.name + path.slice(1);
      const source = target["@parley/source"] ?? "";
      return { name, path: name.slice("@parley/".length), file: join(root, "packages", folder, source) };
    });
  });
}
