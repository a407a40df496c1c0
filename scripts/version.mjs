// npm run version: turns the changesets into versions and changelogs. CONTRIBUTING.md says when.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exec, must, script, tool } from "./exec.mjs";
import { publishedPackages } from "./tarballs.mjs";

/** Sets the range of each peer that is a package of this repository. @param {(name: string) => string} range */
function setPeers(range) {
  for (const { folder, manifest } of publishedPackages()) {
    const ours = Object.keys(manifest.peerDependencies ?? {}).filter((name) => name.startsWith("@parley/"));
    const file = join(folder, "package.json");
    const text = ours.reduce(
      (before, name) =>
        before.replace(new RegExp(`("peerDependencies": \\{[^}]*"${name}": )"[^"]*"`), `$1"${range(name)}"`),
      readFileSync(file, "utf8"),
    );
    writeFileSync(file, text);
  }
}

await script("npm run version", {}, async () => {
  // Changesets takes a peer that leaves its range for a breaking change; these have one version with their peers.
  setPeers(() => "*");
  await must("Setting the versions failed", tool("changeset", ["version"]));
  const versions = new Map(publishedPackages().map(({ manifest }) => [manifest.name, manifest.version]));
  setPeers((name) => versions.get(name) ?? "*");
  await must("Writing the lockfile failed", exec("npm", ["install", "--package-lock-only", "--no-audit", "--no-fund"]));
  console.log("Read the changelogs of the packages, then commit.");
});
