import { levels, type Level } from "../acts/format.ts";
import type { BindingReport, MissingOption, NotAskedReason, Skipped, TestReport } from "./report.ts";

/** How a report is written. */
export interface ReporterOptions {
  /** Whether the text has ANSI colours. Default: false. */
  readonly color?: boolean;
  /** What the reader calls the options of `conform`, for reasons that name one. Default: as `ConformOptions` does. */
  readonly optionNames?: Readonly<Partial<Record<MissingOption, string>>>;
}

const apiNames: Readonly<Record<MissingOption, string>> = {
  behaviors: "behaviors",
  headers: "headers",
  otherHeaders: "otherHeaders",
  insufficientAuthToken: "variables.insufficientAuthToken",
  choice: "filter, tags, level or versions",
  timeout: "timeout",
};

/** A reason, with the option that would change it. */
export function reasonText(
  { reason, option }: Pick<NotAskedReason, "reason" | "option">,
  options: ReporterOptions,
): string {
  return option === undefined ? reason : `${reason} (${options.optionNames?.[option] ?? apiNames[option]})`;
}

/** Why a test was skipped, and whether that leaves something open. */
export function skippedText(skipped: Skipped, options: ReporterOptions): readonly [how: string, why: string] {
  // The option of a kind of reasons stands at the end of the report.
  const why = skipped.kind === undefined ? reasonText(skipped, options) : skipped.reason;
  return [skipped.applies ? "not asked" : "does not apply", why];
}

export interface Counts {
  readonly total: number;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly errors: number;
}

export function countTests(tests: readonly TestReport[]): Counts {
  const of = (wanted: TestReport["result"]): number => tests.filter(({ result }) => result === wanted).length;
  return { total: tests.length, passed: of("pass"), failed: of("fail"), skipped: of("skip"), errors: of("error") };
}

export function testsOfBinding({ suites }: BindingReport): readonly TestReport[] {
  return suites.flatMap(({ tests }) => tests);
}

/** The tests of each level that has any, MUST first. */
export function byLevel(tests: readonly TestReport[]): readonly (readonly [Level, readonly TestReport[]])[] {
  return levels.map((level) => [level, tests.filter((test) => test.level === level)] as const);
}
