import { describe, expect, test } from "vitest";
import { readingOf } from "../../packages/conform/src/run/official.ts";
import { expectedOf, expectationOf, kits, rowOf, type Expectation } from "../expected.ts";
import { differences } from "../judge.ts";
import { readPage, withTables } from "../page.ts";
import { readActs, readPytest } from "../report.ts";

const printed = `
==== short test summary info ====
PASSED tests/a.py::test_one
PASSED tests/a.py::Group::test_two[rest]
SKIPPED [3] tests/b.py:10: The agent sends no webhooks
SKIPPED [1] tests/b.py:20: Only for gRPC
XFAIL tests/a.py::test_three - on http
FAILED tests/c.py::test_four - AssertionError: 1 - 2
==== 1 failed, 2 passed ====
`;

test("a report of pytest is read, with the number and the reason of skipped tests", () => {
  expect(readPytest(printed)).toEqual({
    passed: ["tests/a.py::test_one", "tests/a.py::Group::test_two[rest]"],
    failed: ["tests/c.py::test_four"],
    skipped: [
      { reason: "The agent sends no webhooks", tests: 3 },
      { reason: "Only for gRPC", tests: 1 },
    ],
  });
});

test("a report of parley conform is read for each level and binding", () => {
  const tests = [
    { id: "A-1", level: "must", result: "pass", reading: "no cat is seen" },
    { id: "A-2", level: "must", result: "error" },
    { id: "A-3", level: "may", result: "skip", skip_reason: "only for grpc" },
  ];
  const outcomes = readActs(JSON.stringify({ reports: [{ transport: "rest", suites: [{ tests }] }] }));
  expect(Object.fromEntries(outcomes)).toEqual({
    "must-rest": { passed: ["A-1"], failed: ["A-2"], skipped: [], readings: [{ test: "A-1", asks: "no cat is seen" }] },
    "should-rest": { passed: [], failed: [], skipped: [], readings: [] },
    "may-rest": { passed: [], failed: [], skipped: [{ reason: "only for grpc", tests: 1 }], readings: [] },
  });
});

describe("a run", () => {
  const expected: Expectation = {
    kit: "a kit",
    commit: "1234567",
    runs: { all: { parley: [2, 1, 4] } },
    contradictions: [{ tests: ["c.py::test_four"], runs: ["all"], section: "§1", why: "the contrary" }],
    open: [{ reason: "sends no webhooks", runs: ["all"], tests: 3, waitsFor: "webhooks" }],
  };
  const judged = (text: string, changes: Partial<Expectation> = {}): readonly string[] =>
    differences(readPytest(text), { ...expected, ...changes }, "all");

  test("is as expected when only tests that contradict the specification fail", () => {
    expect(judged(printed)).toEqual([]);
    expect(judged(printed, { contradictions: [] })).toEqual(["failed: tests/c.py::test_four"]);
  });

  test("of `strict` is compared with the column of that name, and has the exceptions of its row", () => {
    const runs = { all: { parley: [2, 1, 4], strict: [1, 2, 4] } } as const;
    const strictly = printed.replace("PASSED tests/a.py::test_one", "FAILED tests/a.py::test_one");
    const judge = (text: string): readonly string[] => differences(readPytest(text), { ...expected, runs }, "strict");
    expect(judge(strictly)).toEqual(["failed: tests/a.py::test_one"]);
    expect(judge(printed).at(-1)).toContain("expected: 1 passed, 2 failed");
  });

  test("is not as expected when a deviation fails", () => {
    const deviations = [{ test: "a.py::test_one", runs: ["all"], section: "§1", why: "the contrary" }];
    expect(judged(printed, { deviations })).toEqual([]);
    expect(judged(printed.replaceAll("test_one", "test_0"), { deviations })).toEqual([
      "no longer passes, remove it from the deviations: a.py::test_one",
    ]);
  });

  test("is not as expected when a test passes that should fail", () => {
    expect(judged(printed.replace("FAILED", "PASSED"))).toEqual([
      "passes now, remove it from the expected failures: c.py::test_four",
      "3 passed, 0 failed, 4 skipped; expected: 2 passed, 1 failed, 4 skipped",
    ]);
  });

  test("is not as expected when fewer tests pass because more were skipped", () => {
    expect(judged(printed.replace("PASSED tests/a.py::test_one", "SKIPPED [1] tests/a.py:1: No task"))).toEqual([
      "1 passed, 1 failed, 5 skipped; expected: 2 passed, 1 failed, 4 skipped",
    ]);
  });

  test("is not as expected when a test for a missing feature was not skipped", () => {
    expect(judged(printed.replace("The agent sends no webhooks", "Only for REST"))).toEqual([
      "3 tests should be skipped and 0 were: sends no webhooks",
    ]);
  });

  test("is not as expected when it has no expected result", () => {
    expect(differences(readPytest(printed), expected, "none")).toEqual(["no result is expected for a run none"]);
  });
});

const strictly = (run: string): boolean => run.startsWith("strict");

describe.each(kits)("the expected results of %s", (kit) => {
  const expected = expectationOf(kit);
  const { contradictions, open, deviations = [] } = expected;
  const rows = Object.keys(expected.runs);
  const strict = rows.filter((row) => expected.runs[row]?.strict !== undefined);
  const runs = [
    ...rows,
    ...(kit === "tck-1.0" ? ["defaults"] : []),
    ...strict.map((row) => `strict-${row}`.replace(/-all\b/, "")),
  ];

  test("names a section and existing runs for each contradiction", () => {
    for (const { section, why } of contradictions)
      expect([section, why]).toEqual([expect.stringMatching(/§/), expect.stringMatching(/./)]);
    for (const { section } of deviations) expect(section).toContain("§");
    for (const each of [...contradictions, ...open, ...deviations])
      expect(runs).toEqual(expect.arrayContaining([...each.runs]));
  });

  test("has the number of the runner's interpretations, and the check of each", () => {
    const counts = Object.values(expected.runs).map(({ readings = 0 }) => readings);
    expect(Math.max(...counts) > 0).toBe(kit === "acts");
    expect(expected.readings?.map(({ test: id }) => id) ?? []).toEqual(
      kit === "acts" ? expect.arrayContaining(["SEC-AUTH-006", "CORE-CTX-001"]) : [],
    );
    for (const { test: id, asks } of expected.readings ?? [])
      expect(asks).toBe(readingOf({ id, tags: ["runner-special"] }));
  });

  test("explains each failure of a run", () => {
    const explained = runs.map((run) =>
      contradictions
        .filter((one) => one.runs.includes(run) || (strictly(run) && one.runs.includes(rowOf(expected, run))))
        .reduce((sum, { tests }) => sum + tests.length, 0),
    );
    expect(explained).toEqual(runs.map((run) => expectedOf(expected, run)?.[1]));
  });
});

test("an exception to a SHOULD of A2A 1.0 says so: readers of unknown fields (§5.7), the media type of REST (§11.1)", () => {
  const rows = readPage().split("\n");
  const found = rows.filter((row) => row.startsWith("|") && /§5\.7\b|§11\.1\b/.test(row));
  expect(found.length).toBeGreaterThan(1);
  for (const row of found) expect(row).toContain("SHOULD");
});

test("docs/kits.md has the expected results, as npm run kits -- page writes them", () => {
  expect(withTables(readPage())).toBe(readPage());
  for (const table of ["summary", "requirements"]) expect(readPage()).toContain(`<!-- ${table} -->\n\n|`);
  for (const kit of kits) {
    const { commit } = expectationOf(kit);
    for (const table of [kit, `${kit} exceptions`, `${kit} open`])
      expect(readPage()).toContain(`<!-- ${table} -->\n\n|`);
    expect(readPage()).toContain(`\`${commit}\``);
  }
});
