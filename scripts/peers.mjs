// The versions of other packages of the workspace that a package wants beside it.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { publishedPackages } from "./tarballs.mjs";

/**
 * Sets the range of each peer dependency between published packages.
 * @param {string} workspace @param {string} range
 */
export function setPeers(workspace, range) {
  const packages = publishedPackages(workspace);
  const names = new Set(packages.map(({ manifest }) => manifest.name));
  for (const { folder } of packages) {
    const file = join(folder, "package.json");
    const manifest = /** @type {{ peerDependencies?: Record<string, string> }} */ (
      JSON.parse(readFileSync(file, "utf8"))
    );
    for (const name of Object.keys(manifest.peerDependencies ?? {})) {
      if (names.has(name) && manifest.peerDependencies !== undefined) manifest.peerDependencies[name] = range;
    }
    writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`);
  }
}
