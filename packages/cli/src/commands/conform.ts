import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { levels, type Level, type Suite, type Test } from "../conform/format.ts";
import { readSuites } from "../conform/read.ts";
import { jsonReport, junitReport, textReport } from "../conform/report.ts";
import { runSuites, type Report } from "../conform/runner.ts";
import { entriesOf, verdictOf } from "../conform/verdict.ts";
import { asksForCredentials } from "../conform/target.ts";
import { CommandError, UsageError } from "../errors.ts";
import { fileReason } from "../files.ts";
import type { Io } from "../io.ts";
import { callHeaders, type CallOptions } from "../options.ts";
import { styleFor } from "../output/style.ts";
import { jsonLine } from "../output/text.ts";

export interface ConformOptions extends CallOptions {
  readonly acts?: string;
  readonly protocol?: string;
  readonly level?: Level;
  readonly filter?: readonly string[];
  readonly tag?: readonly string[];
  readonly behaviors?: string;
  readonly var?: readonly string[];
  readonly otherToken?: string;
  readonly webhook?: string;
  readonly timeout: number;
  readonly concurrency: number;
  readonly junit?: string;
}

const ownSuites = fileURLToPath(new URL("../../suites", import.meta.url));

/** `a*b` as a pattern for the ids of tests. */
function pattern(text: string): RegExp {
  const escaped = text.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*");
  return new RegExp(`^${escaped}$`, "i");
}

/** The tests that the options leave. Throws where that is none. */
function chosen(suites: readonly Suite[], options: ConformOptions): readonly Suite[] {
  const { level, filter = [], tag = [] } = options;
  const patterns = filter.map(pattern);
  const wanted = level === undefined ? levels : levels.slice(0, levels.indexOf(level) + 1);
  const keeps = ({ id, tags, level: of, version }: Test, suite: Suite): boolean =>
    wanted.includes(of) &&
    (options.protocol === undefined || options.protocol === version) &&
    (patterns.length === 0 || patterns.some((one) => one.test(id) || one.test(suite.id))) &&
    (tag.length === 0 || tag.some((one) => tags.includes(one)));
  const left = suites
    .map((suite) => ({ ...suite, tests: suite.tests.filter((test) => keeps(test, suite)) }))
    .filter(({ tests }) => tests.length > 0);
  if (left.length === 0) throw new UsageError("no test is left: look at --filter, --tag, --level and --protocol");
  return left;
}

function variablesOf(given: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    given.map((text) => {
      const [, name, value] = /^([\w-]+)=([^]*)$/.exec(text) ?? [];
      if (name === undefined || value === undefined) throw new UsageError(`--var "${text}" is not NAME=VALUE`);
      return [name, value];
    }),
  );
}

export async function conform(io: Io, url: string, options: ConformOptions): Promise<number> {
  const path = options.acts === undefined ? ownSuites : resolve(io.cwd, options.acts);
  const variables = variablesOf(options.var ?? []);
  const headers = callHeaders(options, io.env);
  const otherHeaders = options.otherToken === undefined ? undefined : callHeaders({ token: options.otherToken }, {});
  if (options.webhook !== undefined && !options.webhook.startsWith("http://")) {
    throw new UsageError("--webhook is an http URL: the runner's receiver speaks no TLS");
  }
  const all = await readSuites(path);
  const suites = chosen(all, options);
  const kept = new Set(suites.flatMap(({ tests }) => tests));
  const style = styleFor(io.stderr, io.env);
  const report = await runSuites({
    url,
    suites,
    omitted: all.flatMap(({ tests }) => tests).filter((test) => !kept.has(test)),
    headers,
    ...(otherHeaders === undefined ? {} : { otherHeaders }),
    env: io.env,
    variables,
    ...(options.binding === undefined ? {} : { binding: options.binding }),
    ...(options.behaviors === undefined
      ? {}
      : { behaviors: options.behaviors === "none" ? [] : options.behaviors.split(",").map((one) => one.trim()) }),
    timeout: options.timeout * 1000,
    concurrency: options.concurrency,
    ...(options.webhook === undefined ? {} : { webhook: options.webhook }),
    onResult(run, { test }, done, total) {
      // One line that is written over: progress is for somebody who looks.
      if (io.stderr.terminal)
        io.stderr.write(`\r\u001b[K${style("dim", `${done}/${total} ${run.transport} ${run.version} ${test.id}`)}`);
    },
  });
  if (io.stderr.terminal) io.stderr.write("\r\u001b[K");
  if (options.junit !== undefined) {
    try {
      await writeFile(resolve(io.cwd, options.junit), junitReport(report));
    } catch (error) {
      throw new CommandError(`cannot write ${options.junit}: ${fileReason(error)}`, { cause: error });
    }
  }
  io.stdout.write(
    options.json === true ? `${jsonLine(jsonReport(report))}\n` : textReport(report, styleFor(io.stdout, io.env)),
  );
  const { result } = verdictOf(report);
  const holds = result === "conformant" || result === "partial";
  if (!holds && options.json !== true) {
    for (const hint of hints(report, Object.keys(headers).length > 0)) io.stderr.write(`${hint}\n`);
  }
  return holds ? 0 : 1;
}

/** What whoever runs the tests may have left out, rather than the server. */
function hints(report: Report, hasCredentials: boolean): readonly string[] {
  const behaving = entriesOf(report).filter(
    ({ test, result }) => test.behaviors.length > 0 && result.result !== "skip",
  );
  return [
    ...(asksForCredentials(report.card) && !hasCredentials
      ? ["The card asks for credentials: give them with --token or --header."]
      : []),
    ...(behaving.filter(({ result }) => result.result !== "pass").length * 2 > behaving.length
      ? ["Most tests of behaviours fail. If this is no agent made for tests, say --behaviors none."]
      : []),
  ];
}
