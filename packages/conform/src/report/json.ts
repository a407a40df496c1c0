import { member } from "../acts/path.ts";
import { jsonLine } from "@parley/a2a/internal/base/display";
import { version } from "../version.ts";
import { nameOf, type BindingReport, type Report, type StepReport, type TestReport } from "./report.ts";
import { byLevel, countTests, reasonText, skippedText, testsOfBinding, type ReporterOptions } from "./reporter.ts";

/** The report for programs, as JSON on one line: the verdict, and the report of ACTS §13 for each binding. */
export function jsonReport(report: Report, options: ReporterOptions = {}): string {
  const { verdict } = report;
  return jsonLine({
    url: report.url,
    conformant: verdict.result === "conformant",
    verdict: verdict.result,
    // Checks: a test over two bindings is two.
    musts: {
      asked: verdict.asked,
      held: verdict.held,
      broken: verdict.broken,
      not_asked: verdict.notAsked,
      not_asked_because: verdict.reasons.map((one) => ({ reason: reasonText(one, options), checks: one.checks })),
    },
    reports: report.bindings.map((binding) => bindingReport(report, binding, options)),
    not_run: report.notRun.map(({ binding, reason }) => ({ binding, reason })),
  });
}

function bindingReport(report: Report, binding: BindingReport, options: ReporterOptions): object {
  const tests = testsOfBinding(binding);
  const agentVersion = member(report.card, "version");
  return {
    acts_version: "1.0",
    spec_version: binding.version,
    generated_at: report.startedAt,
    // The card names the agent, and not the library that it is built with.
    sdk: {
      name: nameOf(report.card),
      version: typeof agentVersion === "string" ? agentVersion : "",
      language: "unknown",
    },
    transport: binding.transport,
    environment: { runner: `parley ${version}`, runtime: `node ${process.versions.node}`, url: binding.url },
    summary: {
      ...countTests(tests),
      duration_ms: Math.round(binding.duration),
      by_level: Object.fromEntries(byLevel(tests).map(([level, some]) => [level, countTests(some)])),
    },
    suites: binding.suites.map(({ id, name, tests: own }) => ({
      id,
      name,
      tests: own.map((test) => testReport(test, options)),
    })),
  };
}

function testReport(test: TestReport, options: ReporterOptions): object {
  const { section, reading, skipped, failure, steps } = test;
  return {
    id: test.id,
    name: test.name,
    level: test.level,
    ...(section === undefined ? {} : { spec_ref: section }),
    ...(test.requirements.length === 0 ? {} : { requirements: test.requirements }),
    result: test.result,
    duration_ms: Math.round(test.duration),
    ...(reading === undefined ? {} : { reading }),
    ...(skipped === undefined ? {} : { skip_reason: skippedText(skipped, options)[1], not_asked: skipped.applies }),
    ...(failure === undefined
      ? {}
      : {
          failure: {
            message: failure.message,
            ...(failure.stepId === undefined ? {} : { step_id: failure.stepId }),
            ...(failure.expected === undefined ? {} : { expected: failure.expected }),
            ...(failure.actual === undefined ? {} : { actual: failure.actual }),
            ...(failure.path === undefined ? {} : { assertion_path: failure.path }),
          },
        }),
    ...(steps.length === 0 ? {} : { steps: steps.map(stepReport) }),
  };
}

function stepReport({ id, result, duration }: StepReport): object {
  return { id, result, duration_ms: Math.round(duration) };
}
