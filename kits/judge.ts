import { expectedOf, rowOf, type Expectation, type Figures } from "./expected.ts";
import type { Outcome } from "./report.ts";

/** The differences between the outcome of a run and the expectation, in sentences. */
export function differences(outcome: Outcome, expected: Expectation, run: string): readonly string[] {
  const figures = expectedOf(expected, run);
  const row = rowOf(expected, run);
  // The default options lack features of the run `all`, so the run `defaults` lists its exceptions itself.
  const isColumn = run !== "defaults";
  if (figures === undefined) return [`no result is expected for a run ${run}`];
  const isOf = ({ runs }: { readonly runs: readonly string[] }): boolean =>
    runs.includes(run) || (isColumn && runs.includes(row));
  const known = expected.contradictions.filter(isOf).flatMap(({ tests }) => tests);
  const open = expected.open.filter(isOf);
  const deviations = (expected.deviations ?? []).filter(({ runs }) => runs.includes(run));
  const got = figuresOf(outcome);
  return [
    ...outcome.failed.filter((test) => !known.some((name) => test.endsWith(name))).map((test) => `failed: ${test}`),
    ...known
      .filter((name) => outcome.passed.some((test) => test.endsWith(name)))
      .map((name) => `passes now, remove it from the expected failures: ${name}`),
    ...deviations
      .filter(({ test }) => !outcome.passed.some((name) => name.endsWith(test)))
      .map(({ test }) => `no longer passes, remove it from the deviations: ${test}`),
    ...open
      .map((one) => ({ ...one, skipped: skippedFor(outcome, one.reason) }))
      .filter(({ skipped, tests }) => skipped !== tests)
      .map(({ reason, tests, skipped }) => `${tests} tests should be skipped and ${skipped} were: ${reason}`),
    ...readingsOf(outcome, expected, run),
    ...(String(got) === String(figures) ? [] : [`${inWords(got)}; expected: ${inWords(figures)}`]),
  ];
}

/** Readings that are not in the list, and an unexpected number of readings. */
function readingsOf({ readings = [] }: Outcome, expected: Expectation, run: string): readonly string[] {
  const wanted = expected.runs[rowOf(expected, run)]?.readings ?? 0;
  const known = expected.readings ?? [];
  return [
    ...readings
      .filter(({ test, asks }) => !known.some((one) => one.test === test && one.asks === asks))
      .map(({ test, asks }) => `the reading of ${test} is not in the list: ${asks}`),
    ...(readings.length === wanted ? [] : [`${readings.length} verdicts are readings, and ${wanted} were expected`]),
  ];
}

export function figuresOf({ passed, failed, skipped }: Outcome): Figures {
  return [passed.length, failed.length, skipped.reduce((sum, { tests }) => sum + tests, 0)];
}

export function inWords([passed, failed, skipped]: Figures): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

function skippedFor({ skipped }: Outcome, wanted: string): number {
  return skipped.filter(({ reason }) => reason.includes(wanted)).reduce((sum, { tests }) => sum + tests, 0);
}
