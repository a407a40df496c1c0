// npm run version: turns the changesets into the next version and its changelogs. CONTRIBUTING.md says when.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { writeChangelogs } from "./changelogs.mjs";
import { exec, tool } from "./exec.mjs";
import { root } from "./ready.mjs";
import { setPeers } from "./peers.mjs";
import { publishedPackages } from "./tarballs.mjs";

/** @param {string} what @param {Promise<import("./exec.mjs").Result>} running */
async function must(what, running) {
  const { ok, output } = await running;
  if (!ok) throw new Error(`${what}:\n${output.trimEnd()}`);
}

async function version() {
  const folder = mkdtempSync(join(tmpdir(), "parley-version-"));
  try {
    const file = join(folder, "status.json");
    // It takes the path from the current folder on, also where it is absolute.
    const output = relative(root, file);
    await must("The changesets cannot be read", tool("changeset", ["status", "--output", output]));
    const { changesets } = /** @type {import("./changelogs.mjs").Plan} */ (JSON.parse(readFileSync(file, "utf8")));
    if (changesets.length === 0) throw new Error("There is no changeset, so there is nothing to release.");
    // For changesets, a peer that leaves its range is a breaking change. Here all packages get one version, with their peers.
    setPeers(root, "*");
    await must("The versions cannot be changed", tool("changeset", ["version"]));
    const [first] = publishedPackages();
    const next = first?.manifest.version ?? "";
    setPeers(root, next);
    const files = writeChangelogs(root, next, changesets);
    await must("The changelogs cannot be formatted", tool("prettier", ["--write", ...files]));
    await must(
      "The lockfile cannot be written",
      exec("npm", ["install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"], root),
    );
    console.log(`Version ${next}, from ${changesets.length} changesets. Read CHANGELOG.md, then commit.`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

try {
  await version();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
