/**
 * The conformance runner of A2A servers.
 * @packageDocumentation
 */

export { conform } from "./conform.ts";
export { ConformError, type ConformErrorCode } from "./error.ts";
export type { ConformOptions, Progress } from "./options.ts";
export { levels, type Json, type JsonMap, type Level, type Suite, type Test } from "./acts/format.ts";
export { parseSuites, readSuites } from "./acts/read.ts";
export {
  failuresOf,
  nameOf,
  testsOf,
  type BindingReport,
  type FailedTest,
  type Failure,
  type MissingOption,
  type NotAskedReason,
  type NotRun,
  type Report,
  type Skipped,
  type StepReport,
  type SuiteReport,
  type TestReport,
  type Verdict,
} from "./report/report.ts";
export { describeVerdict } from "./report/verdict.ts";
export { jsonReport } from "./report/json.ts";
export { junitReport } from "./report/junit.ts";
export { textReport } from "./report/text.ts";
export type { ReporterOptions } from "./report/reporter.ts";
