import { levels, type Level } from "./format.ts";
import { sentenceOf, verdictOf } from "./verdict.ts";
import { nameOf, type BindingRun, type Entry, type Report } from "./runner.ts";
import type { Style } from "../output/style.ts";
import { line } from "../output/text.ts";
import { member } from "./path.ts";
import { version as runnerVersion } from "../version.ts";

interface Counts {
  total: number;
  passed: number;
  failed: number;
  skipped: number;
  errors: number;
}

const tally = { pass: "passed", fail: "failed", skip: "skipped", error: "errors" } as const;

function count(entries: readonly Entry[]): Counts {
  const counts: Counts = { total: 0, passed: 0, failed: 0, skipped: 0, errors: 0 };
  for (const { result } of entries) {
    counts.total += 1;
    counts[tally[result.result]] += 1;
  }
  return counts;
}

function entriesOf(run: BindingRun): readonly Entry[] {
  return run.suites.flatMap((suite) => suite.entries);
}

function ofLevel(entries: readonly Entry[], level: Level): readonly Entry[] {
  return entries.filter(({ test }) => test.level === level);
}

/** `specification.md#section-3.5.2` and the like, as they stand; those of our own suite are sections. */
function where({ test }: Entry): string {
  return test.specRef === undefined ? "" : ` (${test.specRef})`;
}

/** The report for people: what failed, what was skipped and why, and the figures. */
export function textReport(report: Report, style: Style): string {
  const out: string[] = [];
  out.push(`${style("bold", line(nameOf(report.card)))} at ${line(report.url)}\n`);
  for (const run of report.runs) {
    const entries = entriesOf(run);
    out.push(`\n${style("bold", run.transport)} ${run.version} at ${line(run.url)}\n`);
    for (const entry of entries.filter(({ result }) => result.result === "fail" || result.result === "error")) {
      out.push(failed(entry, run, style));
    }
    out.push(skipped(entries, style));
    for (const level of levels) {
      const counts = count(ofLevel(entries, level));
      const notAsked = ofLevel(entries, level).filter(({ result }) => result.notAsked !== undefined).length;
      if (counts.total > 0) out.push(`  ${summary(level, counts, notAsked, style)}\n`);
    }
  }
  for (const { binding, reason } of report.left) out.push(`\n${line(binding)} was not run: ${line(reason)}\n`);
  const verdict = verdictOf(report);
  const colour = ({ conformant: "green", partial: "yellow", broken: "red", untested: "red" } as const)[verdict.result];
  out.push(`\n${style(colour, sentenceOf(verdict))}\n`);
  if (verdict.reasons.length > 0) out.push("Not made, and why:\n");
  for (const { reason, checks } of verdict.reasons) out.push(`  ${String(checks).padStart(5)}  ${line(reason)}\n`);
  return out.join("");
}

function failed(entry: Entry, run: BindingRun, style: Style): string {
  const { test, result } = entry;
  const { failure } = result;
  const mark = result.result === "error" ? "ERROR" : "FAIL";
  // A sentence that only repeats what is expected stands below, in full.
  const message =
    failure === undefined || failure.message.includes(`expected ${failure.expected}`)
      ? ""
      : `: ${line(failure.message)}`;
  const lines = [
    `  ${style(test.level === "must" ? "red" : "yellow", `${mark} ${test.level.toUpperCase()}`)} ${test.id} ${line(test.name)}${where(entry)}`,
    `       ${run.transport}${failure?.stepId === undefined ? "" : `, step ${failure.stepId}`}${message}`,
  ];
  if (result.reading !== undefined) lines.push(`       the runner's reading: ${result.reading}`);
  if (failure?.expected !== undefined) {
    lines.push(
      `       expected ${failure.path === undefined ? "" : `${line(failure.path)}: `}${line(failure.expected)}`,
    );
    lines.push(`       got      ${line(failure.actual ?? "")}`);
  }
  return `${lines.join("\n")}\n`;
}

/** One line for each reason, with the tests that it holds for. */
function skipped(entries: readonly Entry[], style: Style): string {
  const reasons = new Map<string, string[]>();
  for (const { test, result } of entries) {
    if (result.result !== "skip") continue;
    const reason = `${result.notAsked === undefined ? "does not apply" : "not asked"}, ${result.skipReason ?? ""}`;
    reasons.set(reason, [...(reasons.get(reason) ?? []), test.id]);
  }
  return [...reasons].map(([reason, ids]) => `  ${style("dim", `${line(reason)}:`)} ${ids.join(", ")}\n`).join("");
}

function summary(level: Level, counts: Counts, notAsked: number, style: Style): string {
  const rest = [
    ...(counts.failed > 0 ? [`${counts.failed} failed`] : []),
    ...(counts.errors > 0 ? [`${counts.errors} could not be judged`] : []),
    ...(notAsked > 0 ? [`${notAsked} not asked`] : []),
    ...(counts.skipped > notAsked ? [`${counts.skipped - notAsked} do not apply`] : []),
  ];
  const wrong = counts.failed + counts.errors > 0;
  const figures = `${counts.passed}/${counts.total} passed${rest.length === 0 ? "" : ` (${rest.join(", ")})`}`;
  return `${`${level.toUpperCase()}:`.padEnd(8)}${wrong ? style(level === "must" ? "red" : "yellow", figures) : style("green", figures)}`;
}

const ms = (duration: number): number => Math.round(duration);

/** The report for programs: that of ACTS §13 for each binding. */
export function jsonReport(report: Report): unknown {
  const version = member(report.card, "version");
  const verdict = verdictOf(report);
  return {
    url: report.url,
    conformant: verdict.result === "conformant",
    verdict: verdict.result,
    // Checks: a test over two bindings is two.
    musts: {
      asked: verdict.asked,
      held: verdict.held,
      broken: verdict.broken,
      not_asked: verdict.notAsked,
      not_asked_because: verdict.reasons,
    },
    reports: report.runs.map((run) => {
      const entries = entriesOf(run);
      return {
        acts_version: "1.0",
        spec_version: run.version,
        generated_at: report.startedAt.toISOString(),
        // The card knows the agent; which library it is built with it does not say.
        sdk: { name: nameOf(report.card), version: typeof version === "string" ? version : "", language: "unknown" },
        transport: run.transport,
        environment: { runner: `parley ${runnerVersion}`, runtime: `node ${process.versions.node}`, url: run.url },
        summary: {
          ...count(entries),
          duration_ms: ms(run.duration),
          by_level: Object.fromEntries(levels.map((level) => [level, count(ofLevel(entries, level))])),
        },
        suites: run.suites.map(({ suite, entries: tests }) => ({
          id: suite.id,
          name: suite.name,
          tests: tests.map(({ test, result }) => ({
            id: test.id,
            name: test.name,
            level: test.level,
            ...(test.specRef === undefined ? {} : { spec_ref: test.specRef }),
            result: result.result,
            duration_ms: ms(result.duration),
            // The steps of such a test leave the check to the runner: what it asked.
            ...(result.reading === undefined ? {} : { reading: result.reading }),
            ...(result.skipReason === undefined
              ? {}
              : { skip_reason: result.skipReason, not_asked: result.notAsked !== undefined }),
            ...(result.failure === undefined
              ? {}
              : {
                  failure: {
                    message: result.failure.message,
                    ...(result.failure.stepId === undefined ? {} : { step_id: result.failure.stepId }),
                    ...(result.failure.expected === undefined ? {} : { expected: result.failure.expected }),
                    ...(result.failure.actual === undefined ? {} : { actual: result.failure.actual }),
                    ...(result.failure.path === undefined ? {} : { assertion_path: result.failure.path }),
                  },
                }),
            ...(result.steps.length === 0
              ? {}
              : {
                  steps: result.steps.map((step) => ({
                    id: step.id,
                    result: step.result,
                    duration_ms: ms(step.duration),
                  })),
                }),
          })),
        })),
      };
    }),
    not_run: report.left.map(({ binding, reason }) => ({ binding, reason })),
  };
}

// Characters that XML 1.0 has no way to write.
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

/** The report for build servers: one `testsuite` for each suite and binding. A test that is no MUST fails here as well; its level is in the name. */
export function junitReport(report: Report): string {
  const seconds = (duration: number): string => (duration / 1000).toFixed(3);
  const figures = (counts: Counts): string =>
    `tests="${counts.total}" failures="${counts.failed}" errors="${counts.errors}" skipped="${counts.skipped}"`;
  const verdict = verdictOf(report);
  const all = count(report.runs.flatMap(entriesOf));
  const whole: Counts = { total: 1, passed: 0, failed: 0, skipped: 0, errors: 0 };
  const whichever = { conformant: "passed", partial: "skipped", broken: "failed", untested: "skipped" } as const;
  whole[whichever[verdict.result]] = 1;
  const sum = Object.fromEntries(
    Object.entries(all).map(([name, value]) => [name, value + whole[name as keyof Counts]]),
  ) as unknown as Counts;
  const out = [`<?xml version="1.0" encoding="UTF-8"?>`, `<testsuites name="A2A conformance" ${figures(sum)}>`];
  for (const run of report.runs) {
    for (const { suite, entries } of run.suites) {
      const time = seconds(entries.reduce((sum, { result }) => sum + result.duration, 0));
      out.push(
        `  <testsuite name="${xml(`${run.transport}-${run.version}.${suite.id}`)}" ${figures(count(entries))} time="${time}">`,
      );
      for (const { test, result } of entries) {
        const name = `${test.level.toUpperCase()} ${test.id} ${test.name}`;
        const open = `    <testcase classname="${xml(`${run.transport}-${run.version}.${suite.id}`)}" name="${xml(name)}" time="${seconds(result.duration)}"`;
        const { failure } = result;
        if (result.result === "skip")
          out.push(
            `${open}><skipped message="${xml(`${result.notAsked === undefined ? "does not apply" : "not asked"}: ${result.skipReason ?? ""}`)}"/></testcase>`,
          );
        else if (failure !== undefined) {
          const tag = result.result === "error" ? "error" : "failure";
          const more =
            failure.expected === undefined ? "" : xml(`expected ${failure.expected}\ngot ${failure.actual ?? ""}`);
          out.push(`${open}><${tag} message="${xml(failure.message)}">${more}</${tag}></testcase>`);
        } else out.push(`${open}/>`);
      }
      out.push("  </testsuite>");
    }
  }
  // Build servers count what is skipped and go on: that not all was asked is a test of its own.
  const { result, reasons } = verdict;
  const why = [sentenceOf(verdict), ...reasons.map(({ reason, checks }) => `${checks}: ${reason}`)].join("\n");
  const told = result === "conformant" ? "" : `<${result === "broken" ? "failure" : "skipped"} message="${xml(why)}"/>`;
  out.push(
    `  <testsuite name="verdict" ${figures(whole)} time="0.000">`,
    `    <testcase classname="verdict" name="Every MUST that applies was asked, and holds" time="0.000">${told}</testcase>`,
    "  </testsuite>",
  );
  return `${[...out, "</testsuites>"].join("\n")}\n`;
}
