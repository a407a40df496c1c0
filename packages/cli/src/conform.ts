import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { ClientBinding } from "@parley/a2a/internal/client/index";
import {
  conform as runTests,
  ConformError,
  jsonReport,
  junitReport,
  readSuites,
  testsOf,
  textReport,
  type ConformOptions as RunOptions,
  type Level,
  type MissingOption,
  type Report,
  type Suite,
} from "@parley/conform";
import { defined } from "@parley/a2a/internal/base/defined";
import { line } from "@parley/a2a/internal/base/display";
import { callHeaders, loginHeaders, type CallOptions } from "./connection.ts";
import { CommandError, UsageError } from "./errors.ts";
import { fileReason } from "./files.ts";
import type { Io } from "./io.ts";
import { hasColors, styleFor } from "./output/text.ts";

export interface ConformOptions extends Omit<CallOptions, "binding"> {
  readonly binding?: string;
  readonly client?: readonly string[];
  /** Path of other tests; true for all tests of the runner. */
  readonly acts?: string | true;
  readonly protocol?: string;
  readonly level?: Level;
  readonly filter?: readonly string[];
  readonly tag?: readonly string[];
  readonly behaviors?: string;
  readonly var?: readonly string[];
  readonly otherToken?: string;
  readonly webhook?: string;
  /** In seconds. */
  readonly timeout: number;
  /** In minutes. */
  readonly timeLimit: number;
  readonly concurrency: number;
  readonly junit?: string;
}

/** Names of the runner's options on the command line. */
const optionNames: Readonly<Record<MissingOption, string>> = {
  behaviors: "--acts or --behaviors",
  headers: "--token or --header",
  otherHeaders: "--other-token",
  insufficientAuthToken: "--var insufficientAuthToken=TOKEN",
  choice: "--filter, --tag, --level or --protocol",
  timeout: "--time-limit",
};

const noTest = `no tests selected: check ${optionNames.choice}`;

/** `parley conform`. Returns 0 if every MUST that was tested holds. */
export async function conform(io: Io, url: string, options: ConformOptions): Promise<number> {
  const run = await runOptions(io, url, options);
  const report = await runTests(url, run)
    .catch((error: unknown) => {
      if (error instanceof ConformError && error.code !== "NothingToTest") {
        const isEmpty = error.message.startsWith("no tests selected");
        throw new UsageError(isEmpty ? noTest : error.message, { cause: error });
      }
      throw error;
    })
    .finally(() => showProgress(io, ""));
  if (options.junit !== undefined) {
    try {
      await writeFile(resolve(io.cwd, options.junit), junitReport(report, { optionNames }));
    } catch (error) {
      throw new CommandError(`cannot write ${options.junit}: ${fileReason(error)}`, { cause: error });
    }
  }
  io.stdout.write(
    options.json === true
      ? `${jsonReport(report, { optionNames })}\n`
      : textReport(report, { optionNames, color: hasColors(io.stdout, io.env) }),
  );
  const { result } = report.verdict;
  if (result === "conformant" || result === "partial") return 0;
  if (options.json !== true) {
    for (const hint of hints(report, Object.keys(run.headers ?? {}).length > 0)) io.stderr.write(`${hint}\n`);
  }
  return 1;
}

/** The options of the command line as options of the runner. */
async function runOptions(io: Io, url: string, options: ConformOptions): Promise<RunOptions> {
  const { acts, protocol, binding, otherToken } = options;
  const variables = variablesOf(options.var ?? []);
  const given = callHeaders(options, io.env);
  const headers = given["authorization"] === undefined ? { ...(await loginHeaders(io, url, {})), ...given } : given;
  const style = styleFor(io.stderr, io.env);
  return {
    ...defined({
      suites: typeof acts === "string" ? await readTests(resolve(io.cwd, acts)) : undefined,
      versions: protocol === undefined ? undefined : [protocol],
      bindings: binding === undefined ? undefined : [binding],
      level: options.level,
      filter: options.filter,
      tags: options.tag,
      behaviors: behaviorsOf(options.behaviors ?? (acts === true ? "all" : undefined)),
      otherHeaders:
        otherToken === undefined
          ? undefined
          : callHeaders({ token: otherToken }, {}, { option: "--other-token <token>" }),
      clientBindings: options.client && (await loadClients(options.client, io.cwd)),
      webhook: options.webhook,
    }),
    headers,
    variables,
    env: io.env,
    stepTimeout: options.timeout * 1000,
    timeout: options.timeLimit * 60_000,
    concurrency: options.concurrency,
    onTest({ id }, { done, total, binding: { transport, version } }) {
      showProgress(io, style("dim", `${done}/${total} ${line(transport)} ${version} ${id}`));
    },
  };
}

function behaviorsOf(given: string | undefined): RunOptions["behaviors"] {
  if (given === undefined || given === "all") return given;
  return given === "none" ? [] : given.split(",").map((one) => one.trim());
}

function isClientBinding(value: unknown): value is ClientBinding {
  return (
    typeof value === "object" &&
    value !== null &&
    "name" in value &&
    typeof value.name === "string" &&
    "open" in value &&
    typeof value.open === "function"
  );
}

/** The default exports of the modules of `--client`. */
async function loadClients(files: readonly string[], cwd: string): Promise<readonly ClientBinding[]> {
  const { loadDefault } = await import("./modules.ts");
  const clients: ClientBinding[] = [];
  for (const file of files) {
    const client = await loadDefault(file, cwd, isClientBinding);
    if (!isClientBinding(client)) {
      throw new CommandError(`the default export of ${file} must be a ClientBinding`);
    }
    clients.push(client);
  }
  return clients;
}

/** The tests in the file or folder of `--acts`. */
async function readTests(path: string): Promise<readonly Suite[]> {
  try {
    return await readSuites(path);
  } catch (error) {
    if (error instanceof ConformError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

function variablesOf(given: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    given.map((text) => {
      const [, name, value] = /^([\w-]+)=([^]*)$/.exec(text) ?? [];
      if (name === undefined || value === undefined)
        throw new UsageError(`--var <name=value> must be NAME=VALUE; got ${JSON.stringify(text)}`);
      return [name, value];
    }),
  );
}

/** Replaces the progress line on a terminal. */
function showProgress(io: Io, text: string): void {
  if (io.stderr.terminal) io.stderr.write(`\r\u001b[K${text}`);
}

/** Hints about missing options that may have caused failures. */
function hints(report: Report, hasCredentials: boolean): readonly string[] {
  const behaving = testsOf(report).filter(({ behaviors, result }) => behaviors.length > 0 && result !== "skip");
  const requirements = report.card["securityRequirements"];
  const requiresCredentials = Array.isArray(requirements) && requirements.length > 0;
  return [
    ...(requiresCredentials && !hasCredentials ? ["The card requires credentials: pass --token or --header."] : []),
    ...(behaving.filter(({ result }) => result !== "pass").length * 2 > behaving.length
      ? ["Most tests of behaviors fail. Omit --acts unless the agent supports ACTS."]
      : []),
  ];
}
