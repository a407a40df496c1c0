import type { Expectation } from "./given.ts";

/**
 * The `expect` of the suites where a runner has none. Values are equal if they have the same members with equal values. A
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

/** The own members of an object, also `__proto__`. Those of an array include its length. */
function membersOf(value: Readonly<Record<string, unknown>>): readonly string[] {
  return Array.isArray(value) ? [...Object.keys(value), "length"] : Object.keys(value);
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 2000 ? `${text.slice(0, 2000)} …` : text;
}
