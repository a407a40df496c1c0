import { styleText } from "node:util";
import type { Level } from "../acts/format.ts";
import { line } from "@parley/a2a/internal/base/display";
import { nameOf, type BindingReport, type Report, type TestReport } from "./report.ts";
import { byLevel, countTests, reasonText, skippedText, testsOfBinding, type ReporterOptions } from "./reporter.ts";
import { describeVerdict } from "./verdict.ts";

type Style = (format: "bold" | "dim" | "red" | "green" | "yellow", text: string) => string;

/** The report for people: what failed, what was skipped and why, the figures, the verdict. Safe for a terminal. */
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
  if (verdict.reasons.length > 0) out.push("Not made, and why:\n");
  for (const reason of verdict.reasons) {
    out.push(`  ${String(reason.checks).padStart(5)}  ${line(reasonText(reason, options))}\n`);
  }
  return out.join("");
}

function failed(test: TestReport, { transport }: BindingReport, style: Style): string {
  const { failure, section } = test;
  const mark = test.result === "error" ? "ERROR" : "FAIL";
  // A message that only repeats what was expected would stand here twice.
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
  if (test.reading !== undefined) lines.push(`       the runner's reading: ${test.reading}`);
  if (failure?.expected !== undefined) {
    const path = failure.path === undefined ? "" : `${line(failure.path)}: `;
    lines.push(`       expected ${path}${line(failure.expected)}`);
    lines.push(`       got      ${line(failure.actual ?? "")}`);
  }
  return `${lines.join("\n")}\n`;
}

/** One line for each reason, with the tests that it holds for. */
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
    ...(counts.errors > 0 ? [`${counts.errors} could not be judged`] : []),
    ...(notAsked > 0 ? [`${notAsked} not asked`] : []),
    ...(counts.skipped > notAsked ? [`${counts.skipped - notAsked} do not apply`] : []),
  ];
  const wrong = counts.failed + counts.errors > 0;
  const figures = `${counts.passed}/${counts.total} passed${rest.length === 0 ? "" : ` (${rest.join(", ")})`}`;
  const colour = wrong ? (level === "must" ? "red" : "yellow") : "green";
  return `${`${level.toUpperCase()}:`.padEnd(8)}${style(colour, figures)}`;
}
