import { defined } from "@parley/a2a/internal/base/defined";
import { levels, type Level } from "../acts/format.ts";
import {
  testsOf,
  type BindingReport,
  type MissingOption,
  type NotAskedReason,
  type NotRun,
  type Skipped,
  type TestReport,
  type Verdict,
} from "./report.ts";

/** The verdict on what was run. `omitted`: MUST checks that the choice of tests left out. */
export function verdictOf(bindings: readonly BindingReport[], notRun: readonly NotRun[], omitted: number): Verdict {
  const tests = testsOf({ bindings });
  const musts = tests.filter(({ level }) => level === "must");
  const asked = musts.filter(({ result }) => result !== "skip").length;
  const held = musts.filter(({ result }) => result === "pass").length;
  const reasons = new Map<string, NotAskedReason>();
  const add = ({ reason, option, checks }: NotAskedReason): void => {
    if (checks === 0) return;
    const before = reasons.get(reason)?.checks ?? 0;
    reasons.set(reason, { reason, ...defined({ option }), checks: before + checks });
  };
  for (const { skipped } of musts) {
    if (skipped?.applies !== true) continue;
    const { kind = skipped.reason, option } = skipped;
    add({ reason: kind, ...defined({ option }), checks: 1 });
  }
  for (const { binding, reason, musts: checks } of notRun) add({ reason: `${binding}: ${reason}`, checks });
  add({ reason: "left out by the choice of tests", option: "choice", checks: omitted });
  const notAsked = [...reasons.values()].reduce((sum, { checks }) => sum + checks, 0);
  return {
    result: resultOf(tests, { asked, held, notAsked }),
    asked,
    held,
    broken: asked - held,
    notAsked,
    reasons: [...reasons.values()].sort((a, b) => b.checks - a.checks),
  };
}

function resultOf(
  tests: readonly TestReport[],
  { asked, held, notAsked }: Pick<Verdict, "asked" | "held" | "notAsked">,
): Verdict["result"] {
  if (asked > held) return "broken";
  if (tests.every(({ result }) => result === "skip")) return "untested";
  return asked === 0 || notAsked > 0 ? "partial" : "conformant";
}

const checks = (count: number): string => `${count} MUST ${count === 1 ? "check" : "checks"}`;

/** The verdict in a sentence, without the reasons. */
export function describeVerdict({ result, asked, held, broken, notAsked }: Verdict): string {
  const rest = notAsked === 0 ? "" : `; ${checks(notAsked)} that may apply ${notAsked === 1 ? "was" : "were"} not made`;
  switch (result) {
    case "conformant":
      return `Conformant: every MUST that applies was asked and holds (${checks(held)}).`;
    case "partial":
      return asked === 0
        ? `No MUST was asked${rest}.`
        : `Nothing is broken, but not all was asked: ${checks(asked)} ${asked === 1 ? "was made and holds" : "were made and hold"}${rest}.`;
    case "broken":
      return `Not conformant: ${broken} of ${checks(asked)} ${broken === 1 ? "does" : "do"} not hold${rest}.`;
    case "untested":
      return `Nothing was tested${rest}.`;
  }
}

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
