// What `npm run release` does: see release.mjs.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { exec } from "./exec.mjs";
import { root } from "./ready.mjs";
import { checkTarball, hasOwnVersion, pack, publishedPackages } from "./tarballs.mjs";

/**
 * @typedef {object} ReleaseOptions
 * @property {string} [workspace] The repository. Default: this one.
 * @property {boolean} dryRun
 * @property {boolean} provenance
 * @property {string} [out] Folder of the tarballs.
 * @property {(line: string) => void} say
 */

/** @typedef {import("./tarballs.mjs").Package} Package */
/** @typedef {import("./tarballs.mjs").Tarball} Tarball */

/**
 * Releases the packages of a workspace.
 * @param {ReleaseOptions} options @returns {Promise<void>} Rejects with an error for the person who releases.
 */
export async function release({ workspace = root, dryRun, provenance, out, say }) {
  const packages = publishedPackages(workspace);
  const [first] = packages;
  if (first === undefined) throw new Error("There is no package to publish below packages/.");
  const { version } = first.manifest;

  const problems = await stateProblems(workspace, packages, provenance);
  if (problems.length > 0 && !dryRun) {
    throw new Error(`Nothing is published:\n${problems.map((line) => `- ${line}\n`).join("")}`);
  }

  await must("The build failed", exec("npm", ["run", "--silent", "build"], workspace));
  const folder = out === undefined ? mkdtempSync(join(tmpdir(), "parley-release-")) : resolve(out);
  mkdirSync(folder, { recursive: true });
  /** @type {[Package, Tarball][]} */
  const packed = [];
  for (const one of packages) packed.push([one, await pack(one, folder)]);
  for (const [one, { file }] of packed) {
    await must(`${one.manifest.name} must not be published as it is`, checkTarball(one, file));
  }
  say(table(packed));
  say(`The tarballs are in ${folder}`);

  if (dryRun) {
    for (const line of problems) say(`A release would be refused: ${line}`);
    say(problems.length === 0 ? "Ready to be published." : "Nothing was published: this is a dry run.");
    return;
  }
  for (const [one, tarball] of packed) say(await publish(one, tarball, provenance));
  await must("The tag cannot be made", exec("git", ["tag", "--force", tagOf(version)], workspace));
  say(`Tagged ${tagOf(version)}. Push it: git push origin ${tagOf(version)}`);
}

/** @param {string} version */
const tagOf = (version) => `v${version}`;

/**
 * What the output of a program says without white space around it, or `undefined` where it failed.
 * @param {string} workspace @param {readonly string[]} args
 */
async function git(workspace, args) {
  const { ok, output } = await exec("git", args, workspace);
  return ok ? output.trim() : undefined;
}

/**
 * @param {string} what @param {Promise<import("./exec.mjs").Result>} running
 */
async function must(what, running) {
  const { ok, output } = await running;
  if (!ok) throw new Error(`${what}:\n${output.trimEnd()}`);
}

/**
 * Why the repository cannot be released as it is. No line: it can.
 * @param {string} workspace @param {readonly Package[]} packages @param {boolean} provenance
 */
async function stateProblems(workspace, packages, provenance) {
  return [
    ...(await commitProblems(workspace, packages[0]?.manifest.version ?? "")),
    ...versionProblems(workspace, packages),
    ...(await repositoryProblems(workspace, packages)),
    ...(provenance && !canProve()
      ? ["provenance needs a build that the registry can check: run the release job of the hosted CI (release.yml)"]
      : []),
  ];
}

/** Whether npm can have a statement signed of where this build runs: on GitHub with `id-token: write`, and on GitLab. */
function canProve() {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: github, SIGSTORE_ID_TOKEN: gitlab } = process.env;
  return Boolean(github) || Boolean(gitlab);
}

/** @param {string} workspace @param {string} version */
async function commitProblems(workspace, version) {
  const head = await git(workspace, ["rev-parse", "HEAD"]);
  if (head === undefined) return ["this is no git repository with a commit"];
  const problems = [];
  const branch = await git(workspace, ["branch", "--show-current"]);
  if (branch !== "main") problems.push(`releases are made on main, and this is ${branch || "no branch"}`);
  if ((await git(workspace, ["status", "--porcelain"])) !== "")
    problems.push("there are changes that are not committed: git status lists them");
  const tagged = await git(workspace, ["rev-parse", "--verify", "--quiet", `${tagOf(version)}^{commit}`]);
  if (tagged !== undefined && tagged !== head)
    problems.push(`the tag ${tagOf(version)} is another commit, ${tagged.slice(0, 12)}: is the version new?`);
  return problems;
}

/** @param {string} workspace @param {readonly Package[]} packages */
function versionProblems(workspace, packages) {
  const problems = [];
  const changesets = readdirSync(join(workspace, ".changeset")).filter((name) => /^(?!readme).*\.md$/i.test(name));
  if (changesets.length > 0) problems.push(`${changesets.length} changesets are waiting: npm run version`);

  const versions = new Map(packages.map(({ manifest }) => [manifest.name, manifest.version]));
  const [version = ""] = versions.values();
  const isApart = hasOwnVersion(workspace);
  const shared = [...versions].filter(([name]) => !isApart(name));
  if (new Set(shared.map(([, each]) => each)).size > 1)
    problems.push(`the versions differ: ${shared.map((pair) => pair.join(" ")).join(", ")}`);
  if (version === "0.0.0") problems.push("0.0.0 is the version before the first release: npm run version");
  for (const { manifest } of packages) {
    const wanted = { ...manifest.peerDependencies, ...manifest.dependencies };
    for (const [name, range] of Object.entries(wanted)) {
      const there = versions.get(name);
      if (there !== undefined && range !== there)
        problems.push(`${manifest.name} needs ${name} ${range}, and not ${there}: npm run version`);
    }
  }
  const changelog = join(workspace, "CHANGELOG.md");
  if (!existsSync(changelog) || !readFileSync(changelog, "utf8").split("\n").includes(`## ${version}`))
    problems.push(`CHANGELOG.md has no entry "## ${version}": npm run version`);
  return problems;
}

/**
 * The registry shows the repository that a package names, and provenance is refused where it was built from another one.
 * @param {string} workspace @param {readonly Package[]} packages
 */
async function repositoryProblems(workspace, packages) {
  const origin = await git(workspace, ["remote", "get-url", "origin"]);
  if (origin === undefined) return ["there is no remote origin, from which the packages would be"];
  return packages.flatMap(({ manifest: { name, repository } }) => {
    const named = /** @type {{ url?: unknown } | undefined} */ (repository)?.url;
    if (typeof named !== "string") return [`${name} has no repository.url`];
    if (placeOf(named) === placeOf(origin)) return [];
    return [`${name} says that its repository is ${withoutSecret(named)}, and origin is ${withoutSecret(origin)}`];
  });
}

/** Host and path of a repository, however it is written: `git@host:path.git`, `git+https://host/path`. @param {string} url */
function placeOf(url) {
  const plain = url
    .trim()
    .replace(/\/+$/, "")
    .replace(/\.git$/, "");
  const [, host = "", path = ""] =
    /^(?:git\+)?(?:https?|ssh|git):\/\/(?:[^@/]*@)?([^/:]+)(?::\d+)?\/(.+)$/.exec(plain) ??
    /^(?:[^@/]*@)?([^/:]+):(?!\/)(.+)$/.exec(plain) ??
    [];
  return host === "" ? plain : `${host}/${path}`.toLowerCase();
}

/** A remote of a build may have a token in it. @param {string} url */
function withoutSecret(url) {
  return url.replace(/(:\/\/)[^@/]*@/, "$1");
}

/**
 * Publishes one tarball, unless the registry has this version.
 * @param {Package} of @param {Tarball} tarball @param {boolean} provenance @returns {Promise<string>} What was done.
 */
async function publish({ folder, manifest: { name, version } }, { file, integrity }, provenance) {
  const id = `${name}@${version}`;
  const found = await exec("npm", ["view", id, "dist.integrity", "--json", "--loglevel=silent"], folder);
  // npm prints nothing where the package is there without this version, and an error E404 where there is no such package.
  const answer = found.output.trim() === "" ? undefined : parseJson(found.output, id);
  const missing = found.ok ? answer === undefined : codeOf(answer) === "E404";
  if (!found.ok && !missing) throw new Error(`The registry cannot be asked for ${id}:\n${found.output.trimEnd()}`);
  if (!missing) {
    const same = answer === integrity ? "" : ", from another build";
    return `${id} is published already${same}`;
  }
  const tag = version.includes("-") ? ["--tag", "next"] : [];
  const args = ["publish", file, "--access", "public", `--provenance=${provenance}`, "--loglevel=error", ...tag];
  await must(`${id} was not published. Run the release again to go on here`, exec("npm", args, folder));
  return `${id} is published`;
}

/** @param {string} text @param {string} id @returns {unknown} */
function parseJson(text, id) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`The registry cannot be asked for ${id}:\n${text.trimEnd()}`);
  }
}

/** @param {unknown} answer */
function codeOf(answer) {
  return /** @type {{ error?: { code?: unknown } } | undefined} */ (answer)?.error?.code;
}

/** @param {readonly [Package, Tarball][]} packed */
function table(packed) {
  const rows = [
    ["package", "version", "size", "files"],
    ...packed.map(([{ manifest }, { size, files }]) => [
      manifest.name,
      manifest.version,
      `${(size / 1000).toFixed(1)} kB`,
      String(files),
    ]),
  ];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row.map((cell, at) => (at < 2 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join("  "),
    )
    .join("\n");
}
