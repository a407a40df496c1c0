// Checks the references of packed files to source maps, and of source maps to sources.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const mapped = /\.([cm]?js|[cm]?ts)$/;
const pointer = /^\/\/# sourceMappingURL=(?!data:)(\S+)$/gm;

/**
 * Finds source maps and sources that files below a folder refer to and that do not exist, so that an editor or a debugger would not find
 * them.
 * @param {string} folder @returns {string[]} A line for each: the file, and what it refers to.
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
