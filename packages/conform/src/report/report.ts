import { levels, type JsonMap, type Level } from "../acts/format.ts";

/** What the runner would need so that a test can be asked: an option of `conform`, or one key of its `variables`. */
export type MissingOption = "behaviors" | "headers" | "otherHeaders" | "insufficientAuthToken" | "choice" | "timeout";

/** What `conform` found out. Plain data: it can be stored as JSON and read again. */
export interface Report {
  /** As it was given. */
  readonly url: string;
  /** The server's Agent Card, the newest version of it that was found. What it holds is the server's word. */
  readonly card: JsonMap;
  /** ISO 8601, UTC. */
  readonly startedAt: string;
  /** In milliseconds. */
  readonly duration: number;
  /** Whether the server conforms. */
  readonly verdict: Verdict;
  /** One for each binding and version of the card that was tested. */
  readonly bindings: readonly BindingReport[];
  /** Bindings and versions of the card that were not tested. */
  readonly notRun: readonly NotRun[];
}

/** What the report says about the MUSTs. A check is one test over one binding. */
export interface Verdict {
  /**
   * `conformant`: every check that applies was made, and holds. `partial`: the checks that were made hold, others that may
   * apply were not made. `broken`: a check does not hold. `untested`: no check was made.
   */
  readonly result: "conformant" | "partial" | "broken" | "untested";
  /** Checks that were made. */
  readonly asked: number;
  /** Those of them that hold. */
  readonly held: number;
  /** Those of them that do not hold, or could not be judged. */
  readonly broken: number;
  /** Checks that may apply and were not made. */
  readonly notAsked: number;
  /** Why they were not made, the most frequent reason first. */
  readonly reasons: readonly NotAskedReason[];
}

/** Why some checks were not made. */
export interface NotAskedReason {
  /** The reason, for people. */
  readonly reason: string;
  /** The option that would let them be asked, if there is one. */
  readonly option?: MissingOption;
  /** How many checks. */
  readonly checks: number;
}

/** A binding or a version that the card names and that was not tested. */
export interface NotRun {
  /** The binding's name on the card and its version, or the version alone. */
  readonly binding: string;
  /** Why, for people. */
  readonly reason: string;
  /** MUST checks that may apply there. */
  readonly musts: number;
}

/** The results over one binding in one version of the protocol. */
export interface BindingReport {
  /** As the card names it: `JSONRPC`, `HTTP+JSON`, `GRPC`, or the URI of a custom binding. */
  readonly binding: string;
  /** As ACTS names it: `jsonrpc`, `rest`, `grpc`. A custom binding is named by its URI here as well. */
  readonly transport: string;
  /** Address of the interface. */
  readonly url: string;
  /** `Major.Minor`. */
  readonly version: string;
  /** From the start of the first test to the end of the last, in milliseconds. */
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
  /** What it checks, for people. */
  readonly name: string;
  /** How binding it is. */
  readonly level: Level;
  /** The section of the specification that the test cites. */
  readonly section?: string;
  /** Requirements of the specification that the test proves, such as `3.1.2-first`: a section and a word. */
  readonly requirements: readonly string[];
  /** Keywords. */
  readonly tags: readonly string[];
  /** Prefixes of messages that the agent has to know for this test (ACTS §11). */
  readonly behaviors: readonly string[];
  /** `error`: the test could not be judged, since it is wrong itself, or the runner is. */
  readonly result: "pass" | "fail" | "error" | "skip";
  /** In milliseconds. */
  readonly duration: number;
  /** Set where `result` is `skip`. */
  readonly skipped?: Skipped;
  /** Set where `result` is `fail` or `error`. */
  readonly failure?: Failure;
  /** What the runner asked instead, where the steps of the test leave the check to the runner. */
  readonly reading?: string;
  /** The results of its steps. */
  readonly steps: readonly StepReport[];
}

/** Why a test was not made. */
export interface Skipped {
  /** Why, for people. */
  readonly reason: string;
  /** Whether the test applies to this server, or may: then it counts as not asked. */
  readonly applies: boolean;
  /** The reason in words that are the same for all tests of a kind. Default: `reason`. */
  readonly kind?: string;
  /** The option that would let it be asked, if there is one. */
  readonly option?: MissingOption;
}

/** What went wrong. Texts of the server are cut to a few hundred characters. */
export interface Failure {
  /** What went wrong, for people. */
  readonly message: string;
  /** The step that failed; absent where no single step did. */
  readonly stepId?: string;
  /** Where in the answer, such as `task.status.state` or `event[2]`; absent for the answer as a whole. */
  readonly path?: string;
  /** What was expected. */
  readonly expected?: string;
  /** What came. */
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

/** A test that failed or could not be judged, with all that somebody needs who looks into it. */
export interface FailedTest extends Pick<TestReport, "id" | "name" | "level" | "section" | "requirements">, Failure {
  /** As the card names it. */
  readonly binding: string;
  /** Of the protocol, `Major.Minor`. */
  readonly version: string;
}

/** Every test of a report, over every binding. */
export function testsOf(report: Pick<Report, "bindings">): readonly TestReport[] {
  return report.bindings.flatMap(({ suites }) => suites.flatMap(({ tests }) => tests));
}

/**
 * The tests that failed or could not be judged, over every binding.
 *
 * @param level - Only tests of this level and those above it. Default: all.
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

/** The name that the card gives the agent. */
export function nameOf(card: JsonMap): string {
  const name = Object.hasOwn(card, "name") ? card["name"] : undefined;
  return typeof name === "string" ? name : "the agent";
}

/**
 * Why there is no report. `InvalidOptions`: an option is wrong, or the options choose no test. `InvalidTests`: a file of tests
 * cannot be read, or has a word that the runner does not know. `NothingToTest`: the server cannot be reached, has no card, or its
 * card names no binding that can be tested.
 */
export type ConformErrorCode = "InvalidOptions" | "InvalidTests" | "NothingToTest";

/** The run has no report. A test that fails throws nothing: it stands in the report. */
export class ConformError extends Error {
  /** Always `ConformError`. */
  override readonly name = "ConformError";
  /** What went wrong. */
  readonly code: ConformErrorCode;

  /** `message`: a sentence for people. */
  constructor(code: ConformErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
