// What the files of a package point to: source maps, and the sources that those name.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const mapped = /\.([cm]?js|[cm]?ts)$/;
const pointer = /^\/\/# sourceMappingURL=(?!data:)(\S+)$/gm;

/**
 * Maps and sources that files below a folder name, and that are not there: an editor or a debugger would ask for them in
 * vain.
 * @param {string} folder @returns {string[]} A line for each: who names it, and what.
 */
export function missingSources(folder) {
  /** @type {string[]} */
  const missing = [];
  /** @param {string} file @param {string} name */
  const want = (file, name) => {
    if (!existsSync(join(dirname(file), name))) missing.push(`${relative(folder, file)} names ${name}`);
  };
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath ?? entry.path, entry.name);
    if (!entry.isFile()) continue;
    if (mapped.test(file)) {
      for (const [, map = ""] of readFileSync(file, "utf8").matchAll(pointer)) want(file, map);
    } else if (file.endsWith(".map")) {
      const {
        sources,
        sourceRoot = "",
        sourcesContent,
      } = /** @type {{ sources: string[], sourceRoot?: string, sourcesContent?: unknown[] }} */ (
        JSON.parse(readFileSync(file, "utf8"))
      );
      sources.forEach((source, i) => {
        if (typeof sourcesContent?.[i] !== "string") want(file, join(sourceRoot, source));
      });
    }
  }
  return missing;
}
