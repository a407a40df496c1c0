// Adds up the results of the suites of .ci/run: node scripts/tally.mjs FOLDER SUITE...
// For each suite the folder has its exit code (SUITE.status) and, where it has tests, vitest's report (SUITE.json).
// A suite that did not run counts as failed.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { others } from "./nodes.mjs";
import { root } from "./ready.mjs";

/**
 * @typedef {{ fullName: string, status: string, failureMessages?: readonly string[] }} Assertion
 * @typedef {{ name: string, assertionResults: readonly Assertion[] }} File
 * @typedef {Record<"numTotalTests" | "numPassedTests" | "numFailedTests" | "numPendingTests" | "numTodoTests", number>} Counts
 * @typedef {Counts & { testResults: readonly File[] }} Report
 */

const [folder = "", ...suites] = process.argv.slice(2);
/** Suites with tests, as .ci/run has them. Each of them must write a report. */
const tested = [...readFileSync(join(root, ".ci/run"), "utf8").matchAll(/^ +tests(?:_beside)? "?([\w-]+)/gm)].flatMap(
  ([, suite = ""]) => (suite === "node-" ? others.map((version) => suite + version) : [suite]),
);

let passed = 0;
let failed = 0;
/** @type {string[]} */
const problems = [];
/** What failed, told again at the end of the log. @type {string[]} */
const failures = [];
/** @type {Set<string>} */
const ran = new Set();

for (const suite of new Set([...suites, ...tested])) {
  const report = /** @type {Report | undefined} */ (JSON.parse(contentOf(`${suite}.json`) || "null") ?? undefined);
  passed += report?.numPassedTests ?? 0;
  failed += report?.numFailedTests ?? 0;
  for (const { name, assertionResults } of report?.testResults ?? []) {
    const file = relative(root, name).replaceAll("\\", "/");
    ran.add(file);
    for (const { fullName, status, failureMessages = [] } of assertionResults)
      if (status === "failed") failures.push([`FAILED ${suite}: ${file}: ${fullName}`, ...failureMessages].join("\n"));
  }
  const status = contentOf(`${suite}.status`);
  const left = (report?.numPendingTests ?? 0) + (report?.numTodoTests ?? 0);
  if (report === undefined && tested.includes(suite)) problems.push(`${suite}: did not run`);
  else if (report?.numTotalTests === left) problems.push(`${suite}: no test ran`);
  else if (left > 0) problems.push(`${suite}: ${left} tests were skipped`);
  else if (status !== "0" && !report?.numFailedTests) problems.push(`${suite}: exit code ${status}`);
}

/** @param {string} name */
function contentOf(name) {
  return existsSync(join(folder, name)) ? readFileSync(join(folder, name), "utf8") : "";
}

// A test file that no suite includes would never run, and so never fail.
const everySuiteRan = tested.every((suite) => existsSync(join(folder, `${suite}.json`)));
// The templates of `parley init` are tested in the projects that it writes.
const files = execFileSync("git", ["ls-files", "*.test.ts", ":!packages/cli/templates"], { cwd: root }).toString();
for (const file of files.trim().split("\n")) if (everySuiteRan && !ran.has(file)) problems.push(`${file}: did not run`);

for (const failure of failures) console.log(`${failure}\n`);
for (const problem of problems) console.log(problem);
failed += problems.length;
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
