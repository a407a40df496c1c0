/** The results of one run of a kit. */
export interface Outcome {
  readonly passed: readonly string[];
  readonly failed: readonly string[];
  readonly skipped: readonly Skipped[];
  /** Verdicts for which the runner used its own check instead of the test's steps. Absent for kits without such tests. */
  readonly readings?: readonly Reading[];
}

export interface Reading {
  readonly test: string;
  readonly asks: string;
}

export interface Skipped {
  readonly reason: string;
  readonly tests: number;
}

/**
 * Reads the summary that pytest prints with `-rA`: one line for each test, and one with a count for each place that skips tests.
 * Tests that a kit itself expects to fail (XFAIL, XPASS) do not count.
 */
export function readPytest(text: string): Outcome {
  const passed: string[] = [];
  const failed: string[] = [];
  const skipped: Skipped[] = [];
  for (const line of text.split("\n")) {
    const [, word, rest = ""] = /^(PASSED|FAILED|ERROR|SKIPPED) (.*)$/.exec(line) ?? [];
    const test = rest.split(" - ")[0]?.trim() ?? "";
    if (word === "SKIPPED") {
      const [, tests = "1", reason = rest] = /^\[(\d+)\] \S+ (.*)$/.exec(rest) ?? [];
      skipped.push({ reason, tests: Number(tests) });
    } else if (test.includes("::")) (word === "PASSED" ? passed : failed).push(test);
  }
  return { passed, failed, skipped };
}

/** The report on one binding in the output of `parley conform --json` (ACTS §13). */
export interface ActsReport {
  readonly transport: string;
  readonly suites: readonly { readonly tests: readonly ActsTest[] }[];
}

export interface ActsTest {
  readonly id: string;
  readonly level: string;
  readonly result: "pass" | "fail" | "skip" | "error";
  readonly skip_reason?: string;
  readonly reading?: string;
  readonly failure?: { readonly message: string };
}

/** Reads the output of `parley conform --json`: an outcome for each level of each binding, such as `must-jsonrpc`. */
export function readActs(text: string): ReadonlyMap<string, Outcome> {
  const { reports } = JSON.parse(text) as { readonly reports: readonly ActsReport[] };
  const outcomes = new Map<string, Outcome>();
  for (const { transport, suites } of reports) {
    for (const level of ["must", "should", "may"]) {
      const tests = suites.flatMap((suite) => suite.tests).filter((test) => test.level === level);
      const ids = (...results: readonly string[]): string[] =>
        tests.filter(({ result }) => results.includes(result)).map(({ id }) => id);
      outcomes.set(`${level}-${transport}`, {
        passed: ids("pass"),
        failed: ids("fail", "error"),
        skipped: tests
          .filter(({ result }) => result === "skip")
          .map(({ skip_reason: reason = "" }) => ({ reason, tests: 1 })),
        readings: tests.flatMap(({ id, reading }) => (reading === undefined ? [] : [{ test: id, asks: reading }])),
      });
    }
  }
  return outcomes;
}
