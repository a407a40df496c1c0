import { readFileSync } from "node:fs";
import { styleText } from "node:util";
import { defined } from "@parley/a2a/internal/base/defined";
import { jsonLine, line } from "@parley/a2a/internal/base/display";
import type { Level } from "../acts/format.ts";
import { member } from "../acts/values.ts";
import {
  byLevel,
  countTests,
  describeVerdict,
  nameOf,
  reasonText,
  skippedText,
  testsOf,
  testsOfBinding,
  type BindingReport,
  type Counts,
  type Report,
  type ReporterOptions,
  type SuiteReport,
  type TestReport,
  type Verdict,
} from "./report.ts";

/** Version of this package. */
const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  readonly version: string;
};

/** The report as JSON on one line: the verdict, and a report for each binding (ACTS §13). */
export function jsonReport(report: Report, options: ReporterOptions = {}): string {
  const { verdict } = report;
  return jsonLine({
    url: report.url,
    conformant: verdict.result === "conformant",
    verdict: verdict.result,
    // A test over two bindings is two checks.
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
    // The card names the agent, not the library that it uses.
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
  const { section, requirements, reading, skipped, failure, steps } = test;
  return defined({
    id: test.id,
    name: test.name,
    level: test.level,
    spec_ref: section,
    requirements: requirements.length === 0 ? undefined : requirements,
    result: test.result,
    duration_ms: Math.round(test.duration),
    reading,
    skip_reason: skipped && skippedText(skipped, options)[1],
    not_asked: skipped?.applies,
    failure:
      failure &&
      defined({
        message: failure.message,
        step_id: failure.stepId,
        expected: failure.expected,
        actual: failure.actual,
        assertion_path: failure.path,
      }),
    steps:
      steps.length === 0
        ? undefined
        : steps.map(({ id, result, duration }) => ({ id, result, duration_ms: Math.round(duration) })),
  });
}

/**
 * The report as JUnit XML, for build servers: a `testsuite` for each suite and binding, and one for the verdict. Failed SHOULD and MAY tests
 * are failures, too; the name of a test contains its level.
 */
export function junitReport(report: Report, options: ReporterOptions = {}): string {
  const { verdict, bindings } = report;
  const all = countTests(testsOf(report));
  const own = verdictCounts(verdict);
  const sum: Counts = {
    total: all.total + own.total,
    passed: all.passed + own.passed,
    failed: all.failed + own.failed,
    skipped: all.skipped + own.skipped,
    errors: all.errors + own.errors,
  };
  const lines = [
    `<?xml version="1.0" encoding="UTF-8"?>`,
    `<testsuites name="A2A conformance" ${figures(sum)}>`,
    ...bindings.flatMap((binding) => binding.suites.flatMap((suite) => suiteLines(binding, suite, options))),
    ...verdictLines(verdict, own, options),
    "</testsuites>",
  ];
  return `${lines.join("\n")}\n`;
}

function suiteLines(binding: BindingReport, { id, tests }: SuiteReport, options: ReporterOptions): readonly string[] {
  const name = xml(`${binding.transport}-${binding.version}.${id}`);
  const time = seconds(tests.reduce((sum, { duration }) => sum + duration, 0));
  return [
    `  <testsuite name="${name}" ${figures(countTests(tests))} time="${time}">`,
    ...tests.map((test) => testLine(test, name, options)),
    "  </testsuite>",
  ];
}

function testLine(test: TestReport, className: string, options: ReporterOptions): string {
  const { failure, skipped } = test;
  const name = xml(`${test.level.toUpperCase()} ${test.id} ${test.name}`);
  const open = `    <testcase classname="${className}" name="${name}" time="${seconds(test.duration)}"`;
  if (skipped !== undefined) {
    return `${open}><skipped message="${xml(skippedText(skipped, options).join(": "))}"/></testcase>`;
  }
  if (failure === undefined) return `${open}/>`;
  const tag = test.result === "error" ? "error" : "failure";
  const more = failure.expected === undefined ? "" : xml(`expected ${failure.expected}\ngot ${failure.actual ?? ""}`);
  return `${open}><${tag} message="${xml(failure.message)}">${more}</${tag}></testcase>`;
}

/** Reports the verdict as a separate test, because build servers ignore skipped tests. It is skipped if not all checks ran. */
function verdictLines(verdict: Verdict, counts: Counts, options: ReporterOptions): readonly string[] {
  const { result, reasons } = verdict;
  const why = [describeVerdict(verdict), ...reasons.map((one) => `${one.checks}: ${reasonText(one, options)}`)].join(
    "\n",
  );
  const told = result === "conformant" ? "" : `<${result === "broken" ? "failure" : "skipped"} message="${xml(why)}"/>`;
  return [
    `  <testsuite name="verdict" ${figures(counts)} time="0.000">`,
    `    <testcase classname="verdict" name="All applicable MUST checks passed" time="0.000">${told}</testcase>`,
    "  </testsuite>",
  ];
}

function verdictCounts({ result }: Verdict): Counts {
  const [passed, failed] = [result === "conformant" ? 1 : 0, result === "broken" ? 1 : 0];
  return { total: 1, passed, failed, skipped: 1 - passed - failed, errors: 0 };
}

function figures(counts: Counts): string {
  return `tests="${counts.total}" failures="${counts.failed}" errors="${counts.errors}" skipped="${counts.skipped}"`;
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(3);
}

// Characters that XML 1.0 does not allow, even escaped.
const forbidden =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function xml(text: string): string {
  return text
    .replace(forbidden, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("\n", "&#10;");
}

type Style = (format: "bold" | "dim" | "red" | "green" | "yellow", text: string) => string;

/** The report as text: failed tests, skipped tests with reasons, counts, and the verdict. Safe for a terminal. */
export function textReport(report: Report, options: ReporterOptions = {}): string {
  const style: Style =
    options.color === true ? (format, text) => styleText(format, text, { validateStream: false }) : (_, text) => text;
  const out: string[] = [];
  out.push(`${style("bold", line(nameOf(report.card)))} at ${line(report.url)}\n`);
  for (const binding of report.bindings) {
    const tests = testsOfBinding(binding);
    out.push(`\n${style("bold", line(binding.transport))} ${binding.version} at ${line(binding.url)}\n`);
    for (const test of tests) {
      if (test.result === "fail" || test.result === "error") out.push(failed(test, binding, style));
    }
    out.push(skipped(tests, style, options));
    for (const [level, some] of byLevel(tests)) {
      if (some.length > 0) out.push(`  ${summary(level, some, style)}\n`);
    }
  }
  for (const { binding, reason } of report.notRun) out.push(`\n${line(binding)} was not run: ${line(reason)}\n`);
  const { verdict } = report;
  const colour = ({ conformant: "green", partial: "yellow", broken: "red", untested: "red" } as const)[verdict.result];
  out.push(`\n${style(colour, describeVerdict(verdict))}\n`);
  if (verdict.reasons.length > 0) out.push("Not run:\n");
  for (const reason of verdict.reasons) {
    out.push(`  ${String(reason.checks).padStart(5)}  ${line(reasonText(reason, options))}\n`);
  }
  return out.join("");
}

function failed(test: TestReport, { transport }: BindingReport, style: Style): string {
  const { failure, section } = test;
  const mark = test.result === "error" ? "ERROR" : "FAIL";
  // The lines below repeat an expectation in the message.
  const message =
    failure === undefined || failure.message.includes(`expected ${failure.expected}`)
      ? ""
      : `: ${line(failure.message)}`;
  const where = section === undefined ? "" : ` (${section})`;
  const title = style(test.level === "must" ? "red" : "yellow", `${mark} ${test.level.toUpperCase()}`);
  const lines = [
    `  ${title} ${test.id} ${line(test.name)}${where}`,
    `       ${line(transport)}${failure?.stepId === undefined ? "" : `, step ${failure.stepId}`}${message}`,
  ];
  if (test.reading !== undefined) lines.push(`       interpretation: ${test.reading}`);
  if (failure?.expected !== undefined) {
    const path = failure.path === undefined ? "" : `${line(failure.path)}: `;
    lines.push(`       expected ${path}${line(failure.expected)}`);
    lines.push(`       got      ${line(failure.actual ?? "")}`);
  }
  return `${lines.join("\n")}\n`;
}

/** One line for each reason, with its tests. */
function skipped(tests: readonly TestReport[], style: Style, options: ReporterOptions): string {
  const reasons = new Map<string, string[]>();
  for (const test of tests) {
    if (test.skipped === undefined) continue;
    const reason = skippedText(test.skipped, options).join(", ");
    reasons.set(reason, [...(reasons.get(reason) ?? []), test.id]);
  }
  return [...reasons].map(([reason, ids]) => `  ${style("dim", `${line(reason)}:`)} ${ids.join(", ")}\n`).join("");
}

function summary(level: Level, tests: readonly TestReport[], style: Style): string {
  const counts = countTests(tests);
  const notAsked = tests.filter((test) => test.skipped?.applies === true).length;
  const rest = [
    ...(counts.failed > 0 ? [`${counts.failed} failed`] : []),
    ...(counts.errors > 0 ? [`${counts.errors} ended with an error`] : []),
    ...(notAsked > 0 ? [`${notAsked} not run`] : []),
    ...(counts.skipped > notAsked ? [`${counts.skipped - notAsked} not applicable`] : []),
  ];
  const wrong = counts.failed + counts.errors > 0;
  const figures = `${counts.passed}/${counts.total} passed${rest.length === 0 ? "" : ` (${rest.join(", ")})`}`;
  const colour = wrong ? (level === "must" ? "red" : "yellow") : "green";
  return `${`${level.toUpperCase()}:`.padEnd(8)}${style(colour, figures)}`;
}
