import type { Json } from "../acts/format.ts";
import { isMap, member } from "../acts/path.ts";
import { isShapeName, shapeProblem } from "./schema.ts";

/** The first place where a value is not what was expected. */
export interface Mismatch {
  /** Path of the value, such as `task.status.state`; empty for the value itself. */
  readonly path: string;
  readonly expected: string;
  readonly actual: string;
}

/** A value as a report shows it: JSON, cut after 300 characters. */
export function show(value: Json | undefined): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

function typeOf(value: Json): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

const types = ["string", "number", "boolean", "array", "object", "null"];
const isText = (argument: Json): boolean => typeof argument === "string";
const isNumber = (argument: Json): boolean => typeof argument === "number";
const isTrue = (argument: Json): boolean => argument === true;
const isList = (argument: Json): boolean => Array.isArray(argument);
const anything = (): boolean => true;

/**
 * Operators of assertions, each with the arguments that it takes. With any other argument the name is that of a member: a card may
 * have a member `type`.
 */
const operators: Readonly<Record<string, (argument: Json) => boolean>> = {
  type: (argument) => typeof argument === "string" && types.includes(argument),
  exists: isTrue,
  absent: isTrue,
  contains: isText,
  matches: isText,
  starts_with: isText,
  ends_with: isText,
  gte: isNumber,
  lte: isNumber,
  gt: isNumber,
  lt: isNumber,
  count: isNumber,
  count_gte: isNumber,
  count_lte: isNumber,
  one_of: isList,
  any_of: isList,
  all_of: isList,
  not: anything,
  // Not in ACTS: the official files use `items`, for each element or by position, and `schema` is an addition of this runner.
  items: (argument) => isList(argument) || isMap(argument),
  schema: isShapeName,
};

/** Checks a value against an assertion (ACTS §5); `undefined` is an absent value. Returns the first mismatch. */
export function check(assertion: Json, value: Json | undefined, path = ""): Mismatch | undefined {
  if (Array.isArray(assertion)) {
    if (value === undefined || !Array.isArray(value)) return { path, expected: "an array", actual: show(value) };
    return first(assertion as readonly Json[], (one, at) =>
      check(one, (value as readonly Json[])[at], `${path}[${at}]`),
    );
  }
  if (!isMap(assertion)) {
    return value === assertion ? undefined : { path, expected: show(assertion), actual: show(value) };
  }
  return first(Object.entries(assertion), ([name, argument]) =>
    operators[name]?.(argument) === true
      ? operate(name, argument, value, path)
      : check(argument, member(value, name), path === "" ? name : `${path}.${name}`),
  );
}

function first<T>(list: readonly T[], ask: (one: T, at: number) => Mismatch | undefined): Mismatch | undefined {
  for (const [at, one] of list.entries()) {
    const wrong = ask(one, at);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function operate(name: string, argument: Json, value: Json | undefined, path: string): Mismatch | undefined {
  const wrong = (expected: string): Mismatch => ({ path, expected, actual: show(value) });
  const unless = (holds: boolean, expected: string): Mismatch | undefined => (holds ? undefined : wrong(expected));
  switch (name) {
    case "absent":
      return unless(value === undefined, "nothing");
    case "exists":
      return unless(value !== undefined, "something");
    case "not":
      return unless(check(argument, value, path) !== undefined, `not ${show(argument)}`);
    case "one_of":
    case "any_of": {
      const choices = argument as readonly Json[];
      return unless(
        choices.some((choice) => check(choice, value, path) === undefined),
        choices.length === 1 ? show(choices[0]) : `one of ${show(argument)}`,
      );
    }
    case "all_of":
      return first(argument as readonly Json[], (one) => check(one, value, path));
  }
  if (value === undefined) return wrong(`${name.replaceAll("_", " ")} ${show(argument)}`);
  switch (name) {
    case "type":
      return unless(typeOf(value) === argument, `of type ${argument as string}`);
    case "schema": {
      const problem = shapeProblem(argument as string, value);
      if (problem === undefined) return undefined;
      const inside = [path, problem.path].filter((one) => one !== "").join(".");
      return { path: inside, expected: problem.expected, actual: show(problem.value) };
    }
    case "items":
      return Array.isArray(argument)
        ? check(argument, value, path)
        : Array.isArray(value)
          ? first(value as readonly Json[], (one, at) => check(argument, one, `${path}[${at}]`))
          : wrong("an array");
  }
  if (typeof argument === "string") {
    // `contains` looks for a part of a text, or for an element of a list.
    if (name === "contains" && Array.isArray(value)) {
      return unless(value.includes(argument), `a list with ${show(argument)}`);
    }
    const text = typeof value === "string" ? value : undefined;
    const holds =
      text !== undefined &&
      (name === "contains"
        ? text.includes(argument)
        : name === "matches"
          ? new RegExp(argument, "u").test(text)
          : name === "starts_with"
            ? text.startsWith(argument)
            : text.endsWith(argument));
    return unless(holds, `text that ${name.replaceAll("_", " ")} ${show(argument)}`);
  }
  const wanted = argument as number;
  if (name.startsWith("count")) {
    const size = Array.isArray(value) ? value.length : undefined;
    const [sign, holds] = compare(name.slice("count_".length), size, wanted);
    return unless(holds, `${sign}${wanted} elements`);
  }
  const [sign, holds] = compare(name, typeof value === "number" ? value : undefined, wanted);
  return unless(holds, `${sign}${wanted}`);
}

function compare(operator: string, value: number | undefined, wanted: number): readonly [sign: string, holds: boolean] {
  switch (operator) {
    case "gte":
      return ["at least ", value !== undefined && value >= wanted];
    case "lte":
      return ["at most ", value !== undefined && value <= wanted];
    case "gt":
      return ["more than ", value !== undefined && value > wanted];
    case "lt":
      return ["less than ", value !== undefined && value < wanted];
    default:
      return ["", value === wanted];
  }
}
