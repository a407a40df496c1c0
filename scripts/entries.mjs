// The entry points of a package: what its users import.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** @typedef {Readonly<Record<string, string>>} Target By condition. */

/**
 * The entry points of a package, without `package.json` and without what is for packages of this repository alone (`./internal/*`). A
 * pattern such as `./*` stands for each folder of `src` that it fits.
 * @param {string} folder Of the package. @param {Readonly<Record<string, unknown>>} [exports] Of its manifest.
 * @returns {readonly (readonly [path: string, target: Target])[]}
 */
export function entriesOf(folder, exports = {}) {
  return Object.entries(exports).flatMap(([path, given]) => {
    if (typeof given !== "object" || given === null || path.startsWith("./internal/")) return [];
    const target = /** @type {Target} */ (given);
    if (!path.includes("*")) return [/** @type {const} */ ([path, target])];
    const [before = "", after = ""] = (target["@parley/source"] ?? "").split("*");
    return readdirSync(join(folder, before))
      .filter((name) => existsSync(join(folder, before, name + after)))
      .sort()
      .map((name) => {
        const each = Object.entries(target).map(([condition, file]) => [condition, file.replace("*", name)]);
        return /** @type {const} */ ([path.replace("*", name), Object.fromEntries(each)]);
      });
  });
}
