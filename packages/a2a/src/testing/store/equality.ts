import type { Expectation } from "./given.ts";

/**
 * What the suites use where a runner brings no `expect`. Equal is what has the same members with equal values; one that
 * is `undefined` is as good as none.
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

/** The path of the first difference: `""` where the values themselves differ, `undefined` where nothing does. */
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

/** Own members alone, `__proto__` among them, and those of an array with its length. */
function membersOf(value: Readonly<Record<string, unknown>>): readonly string[] {
  return Array.isArray(value) ? [...Object.keys(value), "length"] : Object.keys(value);
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 2000 ? `${text.slice(0, 2000)} …` : text;
}
