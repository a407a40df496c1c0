import { testsOf, type BindingReport, type Report, type SuiteReport, type TestReport, type Verdict } from "./report.ts";
import { countTests, reasonText, skippedText, type Counts, type ReporterOptions } from "./reporter.ts";
import { describeVerdict } from "./verdict.ts";

/**
 * The report for build servers, as JUnit XML: one `testsuite` for each suite and binding, and one for the verdict. A test that
 * is no MUST fails here as well; its level is in its name.
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

/** Build servers pass over what is skipped: so the verdict is a test of its own, skipped where not all was asked. */
function verdictLines(verdict: Verdict, counts: Counts, options: ReporterOptions): readonly string[] {
  const { result, reasons } = verdict;
  const why = [describeVerdict(verdict), ...reasons.map((one) => `${one.checks}: ${reasonText(one, options)}`)].join(
    "\n",
  );
  const told = result === "conformant" ? "" : `<${result === "broken" ? "failure" : "skipped"} message="${xml(why)}"/>`;
  return [
    `  <testsuite name="verdict" ${figures(counts)} time="0.000">`,
    `    <testcase classname="verdict" name="Every MUST that applies was asked, and holds" time="0.000">${told}</testcase>`,
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

// Characters that XML 1.0 cannot contain, not even escaped.
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
