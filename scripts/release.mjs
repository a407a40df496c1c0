// npm run release: publishes the packages. npm run release -- --dry-run: only checks them. CONTRIBUTING.md says when.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { exec, must, script, tool } from "./exec.mjs";
import { root } from "./ready.mjs";
import { checkTarballs, publishedPackages } from "./tarballs.mjs";

const usage = `npm run release -- [--dry-run]

Checks the state of the repository, builds the packages, checks their tarballs, and publishes each version that the
registry does not have. If it fails in between, run it again. Tags the commit at the end.

  --dry-run    publish and tag nothing, whatever the state of the repository
  -h, --help   show this help

npm's configuration names the registry. The packages ask for provenance, which npm creates in the hosted CI only.
Exit codes: 0 done, 1 failed, 2 bad usage.`;

/** @param {string[]} args Of git. @returns {Promise<string>} What it prints; empty if it fails. */
async function git(...args) {
  const { ok, output } = await exec("git", args);
  return ok ? output.trim() : "";
}

/** Why this commit must not be released. @param {string} tag @returns {Promise<string[]>} */
async function findProblems(tag) {
  const branch = await git("branch", "--show-current");
  const [head, tagged] = [await git("rev-parse", "HEAD"), await git("rev-parse", "--verify", "-q", `${tag}^{commit}`)];
  const changesets = readdirSync(join(root, ".changeset")).filter((name) => name.endsWith(".md"));
  const conditions = /** @type {const} */ ([
    [branch !== "main", `releases are made on main; got ${branch || "no branch"}`],
    [(await git("status", "--porcelain")) !== "", "git status lists uncommitted changes; commit them"],
    [tagged !== "" && tagged !== head, `${tag} tags commit ${tagged.slice(0, 12)}; run npm run version`],
    [changesets.length > 0, `${changesets.length} changesets are pending; run npm run version`],
  ]);
  return conditions.filter(([applies]) => applies).map(([, problem]) => problem);
}

/** @param {boolean} dryRun */
async function release(dryRun) {
  // `@parley/a2a` is the first. All but the extensions have its version.
  const tag = `v${publishedPackages()[0]?.manifest.version}`;
  const problems = await findProblems(tag);
  if (problems.length > 0 && !dryRun) throw new Error(`Release refused:\n- ${problems.join("\n- ")}`);

  await must("Build failed", exec("npm", ["run", "--silent", "build"]));
  await checkTarballs(({ of: { manifest }, size, files }, problems) => {
    if (problems.length > 0) throw new Error(`${manifest.name} is not fit to publish:\n${problems.join("\n")}`);
    console.log(`${manifest.name} ${manifest.version}: ${(size / 1000).toFixed(1)} kB, ${files.length} files`);
  });
  for (const problem of problems) console.log(`A release would be refused: ${problem}`);
  if (dryRun) return;
  // Publishes every version that the registry does not have.
  await must("Publishing failed; run the release again to continue", tool("changeset", ["publish", "--no-git-tag"]));
  await must("Tagging failed", exec("git", ["tag", "--force", tag]));
  console.log(`Published and tagged ${tag}. Push it: git push origin ${tag}`);
}

await script(usage, { "dry-run": { type: "boolean" } }, (values) => release(values["dry-run"] === true));
