import type { ClientBinding } from "@parley/a2a/internal/client/index";
import { levels, type Level, type Suite } from "./acts/format.ts";
import { ConformError, type BindingReport, type TestReport } from "./report/report.ts";

/** How far a run is, for `onTest`. */
export interface Progress {
  /** Tests that are over, this one included. A test over two bindings is two. */
  readonly done: number;
  /** How many tests there are in all. */
  readonly total: number;
  /** The binding that the test ran over. */
  readonly binding: Pick<BindingReport, "binding" | "transport" | "version" | "url">;
}

/** What to test, with whose credentials, and how long it may take. Every option may be left out. */
export interface ConformOptions {
  /** The tests, of `readSuites` or `parseSuites`. Default: those of this package. */
  readonly suites?: readonly Suite[];
  /** Tests of these versions of the protocol alone, such as `1.0`. Default: of every version that there are tests for. */
  readonly versions?: readonly string[];
  /** These bindings of the card alone, as it names them: `JSONRPC`, `HTTP+JSON`, `GRPC`, a URI. Default: all. */
  readonly bindings?: readonly string[];
  /** Tests of this level and those above it alone. Default: `may`, which is all. */
  readonly level?: Level;
  /** Tests or suites with one of these ids alone; `*` stands for any text, case does not count. Default: all. */
  readonly filter?: readonly string[];
  /** Tests with one of these tags alone. Default: all. */
  readonly tags?: readonly string[];

  /**
   * The test behaviors that the agent implements (ACTS §11), as message prefixes; `"all"` means every behavior. Tests that
   * need any other behavior are not run. A record maps a prefix to the agent's own wording:
   * `{ "tck-task-failure": "please fail" }`. Default: the behaviors that the card offers, as the id of a skill or at the start
   * of one of its examples; every behavior if `suites` is set.
   */
  readonly behaviors?: "all" | readonly string[] | Readonly<Record<string, string>>;
  /** Sent with every request, credentials among them. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The credentials of a second caller, to see that tasks are private. Default: such tests are not asked. */
  readonly otherHeaders?: Readonly<Record<string, string>>;
  /** Variables of the tests, which stand there as `{{name}}`. */
  readonly variables?: Readonly<Record<string, string>>;
  /** What `{{env.NAME}}` in a test stands for. Default: nothing. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /**
   * How the server reaches this machine with push notifications: `http://HOST:PORT`. The receiver then listens on that port
   * of every interface. Default: a free port of 127.0.0.1.
   */
  readonly webhook?: string;
  /** How custom bindings are called (A2A 1.0 §5.8, §12), found by their `name` on the card. */
  readonly clientBindings?: readonly ClientBinding[];

  /** Longest time for one step of a test, in milliseconds. Default: 30,000. */
  readonly stepTimeout?: number;
  /** Longest time for the whole run, in milliseconds. Tests that are not over by then count as not asked. Default: 1,800,000. */
  readonly timeout?: number;
  /** Longest answer, stream or delivery that is read, in bytes. A longer one fails its test. Default: 8 MiB. */
  readonly maxBytes?: number;
  /** Tests at a time, from 1 to 64. Default: 4. */
  readonly concurrency?: number;
  /** Ends the run: `conform` then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Called when a test is over, in the order in which they end. What it throws ends the run. */
  readonly onTest?: (test: TestReport, progress: Progress) => void;
}

/** The limits of a run. */
export interface Limits {
  readonly stepTimeout: number;
  readonly timeout: number;
  readonly maxBytes: number;
  readonly concurrency: number;
}

/** Longest delay of a timer. */
const longest = 2 ** 31 - 1;

/** What each option has to be, for callers without a type checker. */
const kinds: Readonly<Record<keyof ConformOptions, readonly [what: string, is: (value: unknown) => boolean]>> = {
  suites: ["a list of suites", (value) => Array.isArray(value)],
  versions: ["a list of texts", isTexts],
  bindings: ["a list of texts", isTexts],
  level: ["must, should or may", (value) => levels.some((level) => level === value)],
  filter: ["a list of texts", isTexts],
  tags: ["a list of texts", isTexts],
  behaviors: [
    '"all", a list of texts, or a record of texts',
    (value) => value === "all" || isTexts(value) || isTextRecord(value),
  ],
  headers: ["a record of texts", isTextRecord],
  otherHeaders: ["a record of texts", isTextRecord],
  variables: ["a record of texts", isTextRecord],
  env: ["a record", isRecord],
  webhook: ["an http URL (the receiver speaks no TLS)", isHttpUrl],
  clientBindings: ["a list of bindings", (value) => Array.isArray(value) && value.every(isRecord)],
  stepTimeout: limit(longest),
  timeout: limit(longest),
  maxBytes: limit(Number.MAX_SAFE_INTEGER),
  concurrency: limit(64),
  signal: ["an AbortSignal", (value) => value instanceof AbortSignal],
  onTest: ["a function", (value) => typeof value === "function"],
};

function limit(most: number): readonly [what: string, is: (value: unknown) => boolean] {
  return [
    `a whole number from 1 to ${most}`,
    (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= most,
  ];
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function isTextRecord(value: unknown): boolean {
  return isRecord(value) && isTexts(Object.values(value));
}

function isHttpUrl(value: unknown): boolean {
  return typeof value === "string" && /^http:\/\//i.test(value) && URL.canParse(value);
}

/** Throws ConformError where an option is not known, or is not what it has to be. Undefined stands for an absent one. */
export function checkOptions(options: ConformOptions): void {
  for (const [name, value] of Object.entries(options) as [string, unknown][]) {
    if (!Object.hasOwn(kinds, name)) throw new ConformError("InvalidOptions", `${name} is not an option of conform`);
    const [what, is] = kinds[name as keyof ConformOptions];
    if (value !== undefined && !is(value)) throw new ConformError("InvalidOptions", `${name} is not ${what}`);
  }
}

/** The limits of a run, with defaults. */
export function limitsOf(options: ConformOptions): Limits {
  const { stepTimeout = 30_000, timeout = 1_800_000, maxBytes = 8 << 20, concurrency = 4 } = options;
  return { stepTimeout, timeout, maxBytes, concurrency };
}

/** The tests that the options choose, and those that they leave out. Throws ConformError where none is left. */
export function choose(
  all: readonly Suite[],
  { versions, level, filter = [], tags = [] }: ConformOptions,
): { readonly suites: readonly Suite[]; readonly omitted: Suite["tests"] } {
  const patterns = filter.map(patternOf);
  const wanted = level === undefined ? levels : levels.slice(0, levels.indexOf(level) + 1);
  const keeps = (test: Suite["tests"][number], suite: Suite): boolean =>
    wanted.includes(test.level) &&
    (versions === undefined || versions.includes(test.version)) &&
    (patterns.length === 0 || patterns.some((one) => one.test(test.id) || one.test(suite.id))) &&
    (tags.length === 0 || tags.some((one) => test.tags.includes(one)));
  const suites = all
    .map((suite) => ({ ...suite, tests: suite.tests.filter((test) => keeps(test, suite)) }))
    .filter(({ tests }) => tests.length > 0);
  if (suites.length === 0) {
    throw new ConformError("InvalidOptions", "no tests selected: check filter, tags, level and versions");
  }
  const kept = new Set(suites.flatMap(({ tests }) => tests));
  return { suites, omitted: all.flatMap(({ tests }) => tests).filter((test) => !kept.has(test)) };
}

/** `a*b` as a pattern for ids. */
function patternOf(text: string): RegExp {
  const escaped = text.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*");
  return new RegExp(`^${escaped}$`, "i");
}
