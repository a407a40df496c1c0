import type { ClientBinding } from "@parley/a2a/internal/client/index";
import { levels, type Level, type Suite } from "./acts/format.ts";
import { ConformError, type BindingReport, type TestReport } from "./report/report.ts";

/** Progress of a run, for `onTest`. */
export interface Progress {
  /** Number of finished tests, including this one. A test over two bindings counts twice. */
  readonly done: number;
  /** Number of all tests. */
  readonly total: number;
  /** The binding of the test. */
  readonly binding: Pick<BindingReport, "binding" | "transport" | "version" | "url">;
}

/** Options of `conform()`. All are optional. */
export interface ConformOptions {
  /** The tests, from `readSuites` or `parseSuites`. Default: the tests of this package. */
  readonly suites?: readonly Suite[];
  /** Run only tests of these protocol versions, such as `1.0`. Default: all versions that have tests. */
  readonly versions?: readonly string[];
  /** Test only these bindings, named as on the card: `JSONRPC`, `HTTP+JSON`, `GRPC`, or a URI. Default: all. */
  readonly bindings?: readonly string[];
  /** Run only tests of this level and above. Default: `may`, which means all. */
  readonly level?: Level;
  /** Run only tests and suites with one of these ids. `*` matches any text; case is ignored. Default: all. */
  readonly filter?: readonly string[];
  /** Run only tests with one of these tags. Default: all. */
  readonly tags?: readonly string[];

  /**
   * The test behaviors that the agent implements (ACTS §11), as message prefixes, or `"all"`. Tests that need another behavior do not run. A
   * record maps a prefix to the agent's own wording: `{ "tck-task-failure": "please fail" }`. Default: the behaviors that the card offers, as
   * the id of a skill or at the start of one of its examples. If `suites` is set: all.
   */
  readonly behaviors?: "all" | readonly string[] | Readonly<Record<string, string>>;
  /** Headers of every request, including credentials. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Credentials of a second caller, to test that tasks are private. Default: such tests do not run. */
  readonly otherHeaders?: Readonly<Record<string, string>>;
  /** Values of `{{name}}` in tests. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Values of `{{env.NAME}}` in tests. Default: none. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /**
   * Where the server sends push notifications to reach this machine: `http://HOST:PORT`. The receiver then listens on that port of all
   * network interfaces. Default: a free port of 127.0.0.1.
   */
  readonly webhook?: string;
  /** Clients of custom bindings (A2A 1.0 §5.8, §12), by their `name` on the card. */
  readonly clientBindings?: readonly ClientBinding[];

  /** Time limit of a step, in milliseconds. Default: 30,000. */
  readonly stepTimeout?: number;
  /** Time limit of the whole run, in milliseconds. Unfinished tests count as not run. Default: 1,800,000. */
  readonly timeout?: number;
  /** Maximum size of a response, stream or delivery, in bytes. A test that exceeds it fails. Default: 8 MiB. */
  readonly maxBytes?: number;
  /** Number of parallel tests, from 1 to 64. Default: 4. */
  readonly concurrency?: number;
  /** Aborts the run. `conform()` then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Called after each test. If it throws, the run ends with its error. */
  readonly onTest?: (test: TestReport, progress: Progress) => void;
}

export interface Limits {
  readonly stepTimeout: number;
  readonly timeout: number;
  readonly maxBytes: number;
  readonly concurrency: number;
}

type Kind = readonly [what: string, is: (value: unknown) => boolean];

const strings: Kind = ["an array of strings", isStrings];
const stringRecord: Kind = ["an object with string values", isStringRecord];
/** Maximum delay of a timer. */
const maxDelay = 2 ** 31 - 1;

/** Checks of options, for callers without a type checker. */
const kinds: ReadonlyMap<string, Kind> = new Map(
  Object.entries({
    suites: ["an array of suites", Array.isArray],
    versions: strings,
    bindings: strings,
    level: ["must, should or may", (value) => levels.some((level) => level === value)],
    filter: strings,
    tags: strings,
    behaviors: [
      '"all", an array of strings, or an object with string values',
      (value) => value === "all" || isStrings(value) || isStringRecord(value),
    ],
    headers: stringRecord,
    otherHeaders: stringRecord,
    variables: stringRecord,
    env: ["an object", isRecord],
    webhook: ["an http URL (the receiver does not support TLS)", isHttpUrl],
    clientBindings: ["an array of bindings", (value) => Array.isArray(value) && value.every(isRecord)],
    stepTimeout: limit(maxDelay),
    timeout: limit(maxDelay),
    maxBytes: limit(Number.MAX_SAFE_INTEGER),
    concurrency: limit(64),
    signal: ["an AbortSignal", (value) => value instanceof AbortSignal],
    onTest: ["a function", (value) => typeof value === "function"],
  } satisfies Record<keyof ConformOptions, Kind>),
);

function limit(max: number): Kind {
  return [
    `an integer from 1 to ${max}`,
    (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= max,
  ];
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function isStringRecord(value: unknown): boolean {
  return isRecord(value) && isStrings(Object.values(value));
}

function isHttpUrl(value: unknown): boolean {
  return typeof value === "string" && /^http:\/\//i.test(value) && URL.canParse(value);
}

/** Throws ConformError for an unknown or invalid option. An option may be undefined. */
export function checkOptions(options: ConformOptions): void {
  for (const [name, value] of Object.entries<unknown>({ ...options })) {
    const kind = kinds.get(name);
    if (kind === undefined) throw new ConformError("InvalidOptions", `unknown option ${name}`);
    const [what, is] = kind;
    if (value !== undefined && !is(value)) throw new ConformError("InvalidOptions", `${name} must be ${what}`);
  }
}

export function limitsOf(options: ConformOptions): Limits {
  const { stepTimeout = 30_000, timeout = 1_800_000, maxBytes = 8 << 20, concurrency = 4 } = options;
  return { stepTimeout, timeout, maxBytes, concurrency };
}

/** The tests that the options select, and those that they exclude. Throws ConformError if none is selected. */
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
