// CHANGELOG.md of the repository, and that of each package.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hasOwnVersion, publishedPackages } from "./tarballs.mjs";

/**
 * What `changeset status --output` writes.
 * @typedef {object} Plan
 * @property {readonly Changeset[]} changesets
 */

/**
 * @typedef {object} Changeset
 * @property {string} id
 * @property {string} summary
 * @property {readonly { name: string, type: string }[]} releases
 */

const title = "# Changelog\n";

/**
 * Writes the entry of a version into the changelogs: `## <version>` in the file of the repository, with a part `### <package>` for each package
 * that changed, and that part in the file of the package, below the version of the package.
 *
 * An entry that is there already was written by hand, and is kept: a first release, or one that needs more words than its changesets have.
 * The files of the packages are made from it then.
 * @param {string} workspace @param {string} version @param {readonly Changeset[]} changesets @returns {string[]} The files.
 */
export function writeChangelogs(workspace, version, changesets) {
  const names = publishedPackages(workspace).map(({ manifest }) => manifest.name);
  const main = join(workspace, "CHANGELOG.md");
  const before = existsSync(main) ? readFileSync(main, "utf8") : title;
  const written = entryOf(before, version);
  const entry = written ?? entryFrom(names, version, changesets);
  if (written === undefined) writeFileSync(main, withEntry(before, entry));

  const files = [main];
  const isApart = hasOwnVersion(workspace);
  for (const { folder, manifest } of publishedPackages(workspace)) {
    const file = join(folder, "CHANGELOG.md");
    const old = existsSync(file) ? readFileSync(file, "utf8") : `# ${manifest.name}\n`;
    const own = isApart(manifest.name) ? manifest.version : version;
    const without =
      own === version ? "Only the version is new: all packages have the same." : `For ${version} of the others.`;
    const part = partOf(entry, manifest.name) ?? `${without}\n`;
    if (entryOf(old, own) === undefined) writeFileSync(file, withEntry(old, `## ${own}\n\n${part}`));
    files.push(file);
  }
  return files;
}

/** The entry of a version with its heading, or `undefined`. @param {string} changelog @param {string} version */
function entryOf(changelog, version) {
  const [, ...entries] = changelog.split(/^(?=## )/m);
  return entries.find((entry) => entry.split("\n")[0] === `## ${version}`);
}

/** The newest entry is the first one. @param {string} changelog @param {string} entry */
function withEntry(changelog, entry) {
  const [head = title, ...entries] = changelog.split(/^(?=## )/m);
  return [head.trimEnd(), entry.trimEnd(), ...entries.map((one) => one.trimEnd())].join("\n\n") + "\n";
}

/** What an entry says of a package. @param {string} entry @param {string} name */
function partOf(entry, name) {
  const parts = entry.split(/^(?=### )/m);
  return parts
    .find((part) => part.split("\n")[0] === `### ${name}`)
    ?.split("\n")
    .slice(1)
    .join("\n")
    .trim();
}

/**
 * Breaking and new things first, then corrections, each in the order of their ids.
 * @param {readonly string[]} names @param {string} version @param {readonly Changeset[]} changesets
 */
function entryFrom(names, version, changesets) {
  const rank = ["major", "minor", "patch"];
  const parts = names.flatMap((name) => {
    const lines = changesets
      .flatMap(({ id, summary, releases }) => {
        const type = releases.find((one) => one.name === name)?.type ?? "none";
        return rank.includes(type) ? [{ id, summary, at: rank.indexOf(type) }] : [];
      })
      .sort((one, other) => one.at - other.at || (one.id < other.id ? -1 : 1))
      .map(({ summary }) => `- ${summary.trim().replaceAll("\n", "\n  ")}\n`);
    return lines.length === 0 ? [] : [`### ${name}\n\n${lines.join("")}`];
  });
  return [`## ${version}\n`, ...parts].join("\n");
}
