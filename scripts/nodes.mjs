// npm run test:nodes: runs the tests that depend on the version of Node, on all supported versions except the present one.
// npm run test:nodes -- 24 PATH…: runs the tests below a path on one version. Options are passed to vitest.
// node scripts/nodes.mjs --list: prints these versions.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { install, ready, root } from "./ready.mjs";

/** Major versions; test/nodes/package.json has the exact ones. */
const supported = ["20", "22", "24", "26"];

/** Rooms of the core that only compute: their tests have the same result on every version of Node. */
const computing = ["model", "wire"];

/**
 * The oldest version runs all tests, and the newest those of what uses features of Node. What passes on both may differ between them in its
 * drivers of SQLite and its HTTP servers, and in SDK 3 of OpenTelemetry, which the oldest cannot load. @param {string} version
 */
function wanted(version) {
  const differing = ["packages/sql/test", "packages/node/test", "test/otel-3"];
  if (version !== supported[0] && version !== supported.at(-1)) return differing;
  const rooms = readdirSync(join(root, "packages", "a2a", "test")).filter((room) => !computing.includes(room));
  const packages = ["server", "extensions", "testing", "telemetry", "mcp", "frameworks", "react"];
  return [
    ...rooms.map((room) => `packages/a2a/test/${room}/`),
    ...packages.map((name) => `packages/${name}/test`),
    ...differing,
    "test/isolation",
    "examples/car-repair/test",
  ];
}

/** All supported versions except the present one, which runs every test anyway. */
export const others = supported.filter((version) => version !== process.versions.node.split(".")[0]);

const folder = join(root, "test", "nodes");

/** @param {string} version */
function programOf(version) {
  const file = join(folder, "node_modules", `node-${version}-${process.platform}-${process.arch}`, "bin", "node");
  if (existsSync(file)) return file;
  throw new Error(`npm has no Node ${version} for ${process.platform} on ${process.arch} that this project names`);
}

async function main() {
  const [first = "", ...rest] = process.argv.slice(2);
  if (first === "--list") return console.log(others.join(" "));
  const versions = supported.includes(first) ? [first] : others;
  const args = supported.includes(first) ? rest : process.argv.slice(2);
  const isNamed = args.some((arg) => !arg.startsWith("-"));
  await ready();
  await install(folder, ["--ignore-scripts"]);
  for (const version of versions) {
    const program = programOf(version);
    process.stdout.write(`\nNode ${version}: ${execFileSync(program, ["--version"], { encoding: "utf8" })}`);
    const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
    const run = [vitest, "run", "--project=unit", "--project=alone", "--project=long"];
    const paths = isNamed ? [] : wanted(version);
    // Without the slow tests, unless they are named: see test/projects.ts.
    if (!isNamed) process.env["PARLEY_TESTS"] = "short";
    const { status } = spawnSync(program, [...run, ...paths, ...args], { cwd: root, stdio: "inherit" });
    if (status !== 0) process.exitCode = status ?? 1;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main();
