import { defined } from "@parley/a2a/internal/base/defined";
import { levels, type JsonMap, type Level } from "../acts/format.ts";
import { member } from "../acts/values.ts";

/** The option of `conform`, or the key of its `variables`, that a test needs to run. */
export type MissingOption = "behaviors" | "headers" | "otherHeaders" | "insufficientAuthToken" | "choice" | "timeout";

/** The result of `conform()`, as plain data that can be stored as JSON. */
export interface Report {
  /** The tested URL, as passed to `conform()`. */
  readonly url: string;
  /** The server's Agent Card, in the newest version found. Its content is untrusted. */
  readonly card: JsonMap;
  /** ISO 8601, UTC. */
  readonly startedAt: string;
  /** In milliseconds. */
  readonly duration: number;
  /** Whether the server conforms. */
  readonly verdict: Verdict;
  /** One for each tested binding and version of the card. */
  readonly bindings: readonly BindingReport[];
  /** Bindings and versions of the card that were not tested. */
  readonly notRun: readonly NotRun[];
}

/** The result of all MUST tests. A check is one test over one binding. */
export interface Verdict {
  /**
   * `conformant`: all applicable checks ran and passed. `partial`: all checks that ran passed, but some that may apply did not run.
   * `broken`: a check failed. `untested`: no check ran.
   */
  readonly result: "conformant" | "partial" | "broken" | "untested";
  /** Checks that ran. */
  readonly asked: number;
  /** Checks that passed. */
  readonly held: number;
  /** Checks that failed, or ended with an error. */
  readonly broken: number;
  /** Checks that may apply but did not run. */
  readonly notAsked: number;
  /** Why they did not run, the most frequent reason first. */
  readonly reasons: readonly NotAskedReason[];
}

/** Why some checks did not run. */
export interface NotAskedReason {
  /** The reason as a text. */
  readonly reason: string;
  /** The option that would let them run, if any. */
  readonly option?: MissingOption;
  /** Number of checks. */
  readonly checks: number;
}

/** A binding or a version on the card that was not tested. */
export interface NotRun {
  /** The binding's name on the card and its version, or only the version. */
  readonly binding: string;
  /** The reason as a text. */
  readonly reason: string;
  /** Number of MUST checks that may apply. */
  readonly musts: number;
}

/** The results over one binding in one protocol version. */
export interface BindingReport {
  /** The name on the card: `JSONRPC`, `HTTP+JSON`, `GRPC`, or the URI of a custom binding. */
  readonly binding: string;
  /** The name in ACTS: `jsonrpc`, `rest`, `grpc`. The URI of a custom binding. */
  readonly transport: string;
  /** Address of the interface. */
  readonly url: string;
  /** `Major.Minor`. */
  readonly version: string;
  /** From the start of the first test to the end of the last one, in milliseconds. */
  readonly duration: number;
  /** The results, by suite. */
  readonly suites: readonly SuiteReport[];
}

/** The results of one suite. */
export interface SuiteReport {
  /** Identifier of the suite. */
  readonly id: string;
  /** Name for people. */
  readonly name: string;
  /** The results of its tests. */
  readonly tests: readonly TestReport[];
}

/** One test over one binding. */
export interface TestReport {
  /** Identifier of the test. */
  readonly id: string;
  /** What it checks. */
  readonly name: string;
  /** Requirement level. */
  readonly level: Level;
  /** The cited section of the specification. */
  readonly section?: string;
  /** Requirements of the specification that the test proves, such as `3.1.2-first`: a section and a word. */
  readonly requirements: readonly string[];
  /** Keywords. */
  readonly tags: readonly string[];
  /** Test behaviors that the agent must have, as message prefixes (ACTS §11). */
  readonly behaviors: readonly string[];
  /** `error`: the test or the runner has a bug, so there is no result. */
  readonly result: "pass" | "fail" | "error" | "skip";
  /** In milliseconds. */
  readonly duration: number;
  /** Set if `result` is `skip`. */
  readonly skipped?: Skipped;
  /** Set if `result` is `fail` or `error`. */
  readonly failure?: Failure;
  /** The runner's own check, if the test leaves the check to the runner. */
  readonly reading?: string;
  /** The results of its steps. */
  readonly steps: readonly StepReport[];
}

/** Why a test did not run. */
export interface Skipped {
  /** The reason as a text. */
  readonly reason: string;
  /** Whether the test may apply to this server. If so, it counts as not run. */
  readonly applies: boolean;
  /** The reason without details, to group tests. Default: `reason`. */
  readonly kind?: string;
  /** The option that would let it run, if any. */
  readonly option?: MissingOption;
}

/** Why a test failed. Texts from the server are truncated. */
export interface Failure {
  /** What went wrong. */
  readonly message: string;
  /** The failed step, if a single step failed. */
  readonly stepId?: string;
  /** The path in the response, such as `task.status.state` or `event[2]`. Absent for the whole response. */
  readonly path?: string;
  /** The expected value. */
  readonly expected?: string;
  /** The actual value. */
  readonly actual?: string;
}

/** The result of one step. */
export interface StepReport {
  /** Identifier of the step. */
  readonly id: string;
  /** Whether it passed. */
  readonly result: "pass" | "fail" | "error";
  /** In milliseconds. */
  readonly duration: number;
}

/** A failed test, with the details to investigate it. */
export interface FailedTest extends Pick<TestReport, "id" | "name" | "level" | "section" | "requirements">, Failure {
  /** The binding's name on the card. */
  readonly binding: string;
  /** Protocol version, `Major.Minor`. */
  readonly version: string;
}

/** All tests of a report, over all bindings. */
export function testsOf(report: Pick<Report, "bindings">): readonly TestReport[] {
  return report.bindings.flatMap(({ suites }) => suites.flatMap(({ tests }) => tests));
}

/**
 * The failed tests, over all bindings, including those with the result `error`.
 *
 * @param level - Only tests of this level and above. Default: all.
 * @example
 * ```ts
 * assert.deepEqual(failuresOf(report, "must"), []);
 * ```
 */
export function failuresOf(report: Report, level: Level = "may"): readonly FailedTest[] {
  const wanted = levels.slice(0, levels.indexOf(level) + 1);
  return report.bindings.flatMap(({ binding, version, suites }) =>
    suites.flatMap(({ tests }) =>
      tests.flatMap(({ failure, ...test }) => {
        if (failure === undefined || !wanted.includes(test.level)) return [];
        const { id, name, level: own, section, requirements } = test;
        const cited = section === undefined ? {} : { section };
        return [{ binding, version, id, name, level: own, ...cited, requirements, ...failure }];
      }),
    ),
  );
}

/** The agent's name on its card. */
export function nameOf(card: JsonMap): string {
  const name = member(card, "name");
  return typeof name === "string" ? name : "the agent";
}

/**
 * Why there is no report. `InvalidOptions`: an option is invalid, or the options select no tests. `InvalidTests`: a test file cannot be read
 * or contains an unknown key. `NothingToTest`: the server is unreachable or has no card, or no binding on its card can be tested.
 */
export type ConformErrorCode = "InvalidOptions" | "InvalidTests" | "NothingToTest";

/** The run has no report. A failed test is not an error: the report contains it. */
export class ConformError extends Error {
  /** Always `ConformError`. */
  override readonly name = "ConformError";
  /** What went wrong. */
  readonly code: ConformErrorCode;

  /** Creates the error. */
  constructor(code: ConformErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The reason for tests that the options exclude. */
export const excluded = "excluded by the test selection";

/** The verdict. `omitted`: number of MUST checks that the options exclude. */
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
  add({ reason: excluded, option: "choice", checks: omitted });
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

/** The verdict as a sentence, without the reasons. */
export function describeVerdict({ result, asked, held, broken, notAsked }: Verdict): string {
  const rest = notAsked === 0 ? "" : `; ${checks(notAsked)} that may apply did not run`;
  switch (result) {
    case "conformant":
      return `Conformant: all applicable MUST checks passed (${held}).`;
    case "partial":
      return asked === 0 ? `Partial: no MUST check ran${rest}.` : `Partial: ${checks(asked)} passed${rest}.`;
    case "broken":
      return `Not conformant: ${broken} of ${checks(asked)} failed${rest}.`;
    case "untested":
      return `Untested: no test ran${rest}.`;
  }
}

/** Options of the report writers. */
export interface ReporterOptions {
  /** Whether the text has ANSI colors. Default: false. */
  readonly color?: boolean;
  /** Names of the options in reasons. Default: the names in `ConformOptions`. */
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

/** Whether a skipped test may apply, and why it was skipped. */
export function skippedText(skipped: Skipped, options: ReporterOptions): readonly [how: string, why: string] {
  // The end of the report names the option for all tests of a kind.
  const why = skipped.kind === undefined ? reasonText(skipped, options) : skipped.reason;
  return [skipped.applies ? "not run" : "not applicable", why];
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

/** The tests of each level, MUST first. */
export function byLevel(tests: readonly TestReport[]): readonly (readonly [Level, readonly TestReport[]])[] {
  return levels.map((level) => [level, tests.filter((test) => test.level === level)] as const);
}
