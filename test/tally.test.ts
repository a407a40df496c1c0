import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { others } from "../scripts/nodes.mjs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const files = execFileSync("git", ["ls-files", "*.test.ts", ":!packages/cli/templates"], {
  cwd: root,
  encoding: "utf8",
})
  .trim()
  .split("\n");

/** The suites on every other supported version of Node. */
const nodes = others.map((version) => `node-${version}`);
/** The number of passed tests if all suites succeed. */
const all = 59 + nodes.length;

describe("the totals of .ci/run", () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "parley-tally-"));
    for (const suite of ["install", "check", "chromium", "languages"]) leave(suite);
    leave("test", { passed: 10, files });
    leave("long", { passed: 4 });
    leave("docs", { passed: 7 });
    leave("examples", { passed: 8 });
    leave("release", { passed: 8 });
    leave("attack", { passed: 6 });
    leave("browser", { passed: 2 });
    leave("runtimes", { passed: 3 });
    leave("interop", { passed: 5 });
    leave("keychain-tests", { passed: 4 });
    leave("postgres-tests", { passed: 2 });
    for (const suite of nodes) leave(suite, { passed: 1 });
  });

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  interface Outcome {
    readonly status?: number;
    readonly passed?: number;
    readonly failed?: number;
    readonly pending?: number;
    readonly todo?: number;
    readonly files?: readonly string[];
    /** Tests of the first file. */
    readonly tests?: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages?: string[];
    }[];
  }

  /** Writes the files that a suite leaves behind. */
  function leave(suite: string, outcome: Outcome = {}): void {
    writeFileSync(join(folder, `${suite}.status`), String(outcome.status ?? 0));
    if (outcome.passed === undefined) return;
    const { passed, failed = 0, pending = 0, todo = 0 } = outcome;
    const report = {
      numTotalTests: passed + failed + pending + todo,
      numPassedTests: passed,
      numFailedTests: failed,
      numPendingTests: pending,
      numTodoTests: todo,
      testResults: (outcome.files ?? []).map((name, at) => ({
        name: join(root, name),
        status: "passed",
        assertionResults: at === 0 ? (outcome.tests ?? []) : [],
      })),
    };
    writeFileSync(join(folder, `${suite}.json`), JSON.stringify(report));
  }

  function tally(): { status: number | null; lines: string[] } {
    const suites = [
      "install",
      "check",
      "test",
      "long",
      "docs",
      "examples",
      "release",
      "attack",
      "chromium",
      "browser",
      "runtimes",
      ...nodes,
      "keychain-tests",
      "postgres-tests",
      "languages",
      "interop",
    ];
    const run = spawnSync(process.execPath, [join(root, "scripts/tally.mjs"), folder, ...suites], { encoding: "utf8" });
    return { status: run.status, lines: run.stdout.trim().split("\n") };
  }

  test("are the sum over all suites", () => {
    expect(tally()).toEqual({ status: 0, lines: [`${all} passed, 0 failed`] });
  });

  test("fail with a failed test", () => {
    leave("browser", { passed: 1, failed: 1, status: 1 });
    expect(tally()).toEqual({ status: 1, lines: [`${all - 1} passed, 1 failed`] });
  });

  test("list at the end which tests failed, and how", () => {
    const tests = [
      { fullName: "a sum is right", status: "failed", failureMessages: ["Error: 1 + 1 is 3\n    at sum.ts:1:1"] },
      { fullName: "a product is right", status: "passed" },
    ];
    leave("browser", { passed: 1, failed: 1, status: 1, files: ["test/sum.test.ts"], tests });
    expect(tally().lines).toEqual([
      "FAILED browser: test/sum.test.ts: a sum is right",
      "Error: 1 + 1 is 3",
      "    at sum.ts:1:1",
      "",
      `${all - 1} passed, 1 failed`,
    ]);
  });

  test("fail when a suite left no report", () => {
    rmSync(join(folder, "runtimes.json"));
    expect(tally()).toEqual({ status: 1, lines: ["runtimes: did not run", `${all - 3} passed, 1 failed`] });
  });

  test.each(nodes)("fail when the tests did not run on %s", (suite) => {
    rmSync(join(folder, `${suite}.json`));
    expect(tally()).toEqual({ status: 1, lines: [`${suite}: did not run`, `${all - 1} passed, 1 failed`] });
  });

  test("fail when a suite had no tests", () => {
    leave("runtimes", { passed: 0 });
    expect(tally()).toEqual({ status: 1, lines: ["runtimes: no test ran", `${all - 3} passed, 1 failed`] });
  });

  test("fail when tests were skipped or are yet to be written", () => {
    leave("browser", { passed: 2, pending: 1, todo: 1 });
    expect(tally()).toEqual({ status: 1, lines: ["browser: 2 tests were skipped", `${all} passed, 1 failed`] });
  });

  test("fail when a suite failed outside of its tests", () => {
    leave("check", { status: 1 });
    leave("test", { passed: 10, files, status: 124 });
    expect(tally()).toEqual({
      status: 1,
      lines: ["check: exit code 1", "test: exit code 124", `${all} passed, 2 failed`],
    });
  });

  test("fail when a test file belongs to no suite", () => {
    leave("test", { passed: 10, files: files.slice(1) });
    expect(tally()).toEqual({ status: 1, lines: [`${files[0]}: did not run`, `${all} passed, 1 failed`] });
  });
});
