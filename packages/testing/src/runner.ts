/**
 * The functions of a test runner that a suite uses. Pass the functions of vitest, jest, `node:test` or `bun:test` unchanged.
 * A case may take several seconds, so set the runner's timeout to a minute.
 */
export interface Runner {
  /** Groups tests. */
  describe(name: string, body: () => void): unknown;
  /** Declares a test. */
  it(name: string, body: () => Promise<void>): unknown;
  /** The runner's `expect`. Default: `plainExpect`, which names the path of the first difference. */
  expect?(actual: unknown): Expectation;
}

/** The part of an assertion library that the suites use, such as vitest's, jest's or your own. */
export interface Expectation {
  /** Fails unless the values are deeply equal. */
  toEqual(expected: unknown): void;
}

export type Expect = (actual: unknown) => Expectation;

/** The runner's `expect`, or `plainExpect`. */
export function expectOf(runner: Runner): Expect {
  return (actual) => runner.expect?.(actual) ?? plainExpect(actual);
}

type Case<Given> = (given: Given, expect: Expect) => Promise<void>;

interface Opened<Given> {
  readonly given: Given;
  /** Called at the end of the case. */
  close(): Promise<unknown>;
}

/** Declares a case. `open` creates the arguments of the case. */
function declareCase<Given>(
  runner: Runner,
  name: string,
  body: Case<Given>,
  open: (expect: Expect) => Opened<Given> | Promise<Opened<Given>>,
): void {
  const expect = expectOf(runner);
  runner.it(name, async () => {
    const { given, close } = await open(expect);
    try {
      await body(given, expect);
    } finally {
      await close();
    }
  });
}

/** Declares the cases of a chapter. */
export function declareCases<Given>(
  runner: Runner,
  chapter: string,
  cases: Readonly<Record<string, Case<Given>>>,
  open: (expect: Expect) => Opened<Given> | Promise<Opened<Given>>,
): void {
  runner.describe(chapter, () => {
    for (const [name, body] of Object.entries(cases)) declareCase(runner, name, body, open);
  });
}

/**
 * The `expect` of runners without one. Values are equal if they have the same members with equal values. A
 * member that is `undefined` counts as absent.
 */
export function plainExpect(actual: unknown): Expectation {
  return {
    toEqual(expected) {
      const where = difference(actual, expected, "");
      if (where === undefined) return;
      throw new Error(
        `Not equal${where === "" ? "" : ` at ${where}`}: found ${shown(actual)}, expected ${shown(expected)}`,
      );
    },
  };
}

/** The path of the first difference. `""`: the values themselves differ. `undefined`: they are equal. */
function difference(actual: unknown, expected: unknown, path: string): string | undefined {
  if (Object.is(actual, expected)) return undefined;
  if (!isObject(actual) || !isObject(expected) || Array.isArray(actual) !== Array.isArray(expected)) return path;
  for (const name of new Set([...membersOf(actual), ...membersOf(expected)])) {
    const found = difference(actual[name], expected[name], `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** The own members of an object, including `__proto__`. For an array, also its length. */
function membersOf(value: Readonly<Record<string, unknown>>): readonly string[] {
  return Array.isArray(value) ? [...Object.keys(value), "length"] : Object.keys(value);
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 2000 ? `${text.slice(0, 2000)} …` : text;
}

/** Waits for a condition. The timeout error contains `what`. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const end = performance.now() + 30_000;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`Timed out waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
