import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** This folder, whether this is the source or what was built of it. */
const here = dirname(fileURLToPath(import.meta.url));
const root = existsSync(join(here, "expected")) ? here : dirname(here);

/** What a kit is expected to say, one entry a run. */
export interface Expectation {
  readonly passed: number;
  /** Tests that contradict the specification, and where it says so. */
  readonly contradictions?: readonly { readonly test: string; readonly section: string; readonly why: string }[];
  /** Tests of what Parley does not do yet. */
  readonly open?: readonly { readonly test: string; readonly waitsFor: string }[];
}

export type Expectations = Readonly<Record<string, Expectation>>;

export interface Outcome {
  readonly passed: readonly string[];
  readonly failed: readonly string[];
  readonly skipped: number;
}

export function expectationsOf(kit: string): Expectations {
  return JSON.parse(readFileSync(join(root, "expected", `${kit}.json`), "utf8")) as Expectations;
}

/** Reads the summary that pytest prints with `-rA`: a line a test, skipped ones counted by their place. */
export function readReport(text: string): Outcome {
  const passed: string[] = [];
  const failed: string[] = [];
  let skipped = 0;
  for (const line of text.split("\n")) {
    const [, word, rest = ""] = /^(PASSED|FAILED|ERROR|XFAIL|XPASS|SKIPPED) (.*)$/.exec(line) ?? [];
    const test = rest.split(" - ")[0]?.trim() ?? "";
    if (word !== "SKIPPED" && !test.includes("::")) continue;
    if (word === "PASSED" || word === "XPASS") passed.push(test);
    else if (word === "FAILED" || word === "ERROR") failed.push(test);
    else if (word === "SKIPPED") skipped += Number(/^\[(\d+)\]/.exec(rest)?.[1] ?? 1);
  }
  return { passed, failed, skipped };
}

/** Where an outcome is not what was expected, in sentences. */
export function differences(outcome: Outcome, expected: Expectation): readonly string[] {
  const known = [...(expected.contradictions ?? []), ...(expected.open ?? [])].map(({ test }) => test);
  const stands = (test: string): boolean => known.some((name) => test.endsWith(name));
  const passes = (name: string): boolean => outcome.passed.some((test) => test.endsWith(name));
  return [
    ...outcome.failed.filter((test) => !stands(test)).map((test) => `failed: ${test}`),
    ...known.filter(passes).map((name) => `passes now, strike it from the expected failures: ${name}`),
    ...(outcome.passed.length < expected.passed
      ? [`${outcome.passed.length} passed, ${expected.passed} were expected`]
      : []),
  ];
}

/** Compares reports with what is expected of one run, and says where they differ. */
export function judge(kit: string, run: string, reports: readonly string[]): boolean {
  const expected = expectationsOf(kit)[run];
  if (expected === undefined) throw new Error(`Nothing is written down for ${kit}, ${run}`);
  const outcomes = reports.map((path) => readReport(readFileSync(path, "utf8")));
  const outcome: Outcome = {
    passed: outcomes.flatMap(({ passed }) => passed),
    failed: outcomes.flatMap(({ failed }) => failed),
    skipped: outcomes.reduce((sum, { skipped }) => sum + skipped, 0),
  };
  if (outcome.passed.length === 0) throw new Error("No test passed: is this what pytest printed with -rA?");
  const wrong = differences(outcome, expected);
  for (const line of wrong) process.stdout.write(`${line}\n`);
  const known = (expected.contradictions?.length ?? 0) + (expected.open?.length ?? 0);
  process.stdout.write(
    `${kit}, ${run}: ${outcome.passed.length} passed, ${outcome.failed.length} failed (${known} expected), ${outcome.skipped} skipped\n`,
  );
  return wrong.length === 0;
}
