/**
 * The conformance runner of A2A servers.
 * @packageDocumentation
 */

export { conform } from "./conform.ts";
export type { ConformOptions, Progress } from "./options.ts";
export { levels, type Json, type JsonMap, type Level, type Suite, type Test } from "./acts/format.ts";
export { parseSuites, readSuites } from "./acts/read.ts";
export {
  ConformError,
  describeVerdict,
  failuresOf,
  nameOf,
  testsOf,
  type BindingReport,
  type ConformErrorCode,
  type FailedTest,
  type Failure,
  type MissingOption,
  type NotAskedReason,
  type NotRun,
  type Report,
  type ReporterOptions,
  type Skipped,
  type StepReport,
  type SuiteReport,
  type TestReport,
  type Verdict,
} from "./report/report.ts";
export { jsonReport, junitReport, textReport } from "./report/writers.ts";
