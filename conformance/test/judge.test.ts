import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { differences, expectationsOf, readReport } from "../judge.ts";

const report = `
==== short test summary info ====
PASSED tests/a.py::test_one
PASSED tests/a.py::Group::test_two[rest]
SKIPPED [3] tests/b.py:10: no gRPC
XFAIL tests/a.py::test_three - on http
FAILED tests/c.py::test_four - AssertionError: 1 - 2
==== 1 failed, 2 passed ====
`;

test("a report of pytest is read line by line, skipped tests by their count", () => {
  expect(readReport(report)).toEqual({
    passed: ["tests/a.py::test_one", "tests/a.py::Group::test_two[rest]"],
    failed: ["tests/c.py::test_four"],
    skipped: 3,
  });
});

describe("a run is as expected", () => {
  const known = [{ test: "c.py::test_four", section: "§1", why: "wants the contrary" }];

  test("when it fails where the specification is contradicted, and nowhere else", () => {
    expect(differences(readReport(report), { passed: 2, contradictions: known })).toEqual([]);
    expect(differences(readReport(report), { passed: 2 })).toEqual(["failed: tests/c.py::test_four"]);
  });

  test("and not when an expected failure passes: the list says too much then", () => {
    const better = report.replace("FAILED", "PASSED");
    expect(differences(readReport(better), { passed: 2, contradictions: known })).toEqual([
      "passes now, strike it from the expected failures: c.py::test_four",
    ]);
  });

  test("nor when fewer tests pass than did, though none fails: they were skipped", () => {
    expect(
      differences(readReport(report), { passed: 3, open: [{ test: "c.py::test_four", waitsFor: "webhooks" }] }),
    ).toEqual(["2 passed, 3 were expected"]);
  });
});

test.each(readdirSync(new URL("../expected", import.meta.url)))("%s names a section for each contradiction", (file) => {
  const runs = Object.values(expectationsOf(file.replace(/\.json$/, "")));
  expect(runs.length).toBeGreaterThan(0);
  for (const { contradictions = [], open = [] } of runs) {
    for (const { section, why } of contradictions)
      expect([section, why]).toEqual([expect.stringMatching(/§/), expect.stringMatching(/./)]);
    for (const { waitsFor } of open) expect(waitsFor).not.toBe("");
  }
});
