import type { Json } from "../acts/format.ts";
import { firstOf, isList, isMap, member } from "../acts/values.ts";
import { isShapeName, shapeProblem } from "./shapes.ts";

/** The first difference between a value and its assertion. */
export interface Mismatch {
  /** Path of the value, such as `task.status.state`. Empty for the value itself. */
  readonly path: string;
  readonly expected: string;
  readonly actual: string;
}

/** The server does not meet the expectation of a step. */
export class Failed extends Error {
  readonly mismatch: Mismatch | undefined;

  constructor(message: string, mismatch?: Mismatch) {
    super(message);
    this.mismatch = mismatch;
  }
}

/** Throws Failed if there is a mismatch. Default of `message`: the expected and the actual value. */
export function demand(mismatch: Mismatch | undefined, message?: string): void {
  if (mismatch === undefined) return;
  const { path, expected, actual } = mismatch;
  throw new Failed(message ?? `${path === "" ? "" : `${path}: `}expected ${expected}, got ${actual}`, mismatch);
}

/** A value as reports show it: JSON, cut after 300 characters. */
export function show(value: unknown): string {
  if (value === undefined) return "no value";
  const text = JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

/** Checks a value against an assertion (ACTS §5) and returns the first mismatch. `undefined`: the value is absent. */
export function check(assertion: Json, value: Json | undefined, path = ""): Mismatch | undefined {
  if (isList(assertion)) {
    if (!isList(value)) return { path, expected: "an array", actual: show(value) };
    return firstOf(assertion, (one, at) => check(one, value[at], `${path}[${at}]`));
  }
  if (!isMap(assertion)) {
    return value === assertion ? undefined : { path, expected: show(assertion), actual: show(value) };
  }
  return firstOf(Object.entries(assertion), ([name, argument]) => {
    const operator = Object.hasOwn(operators, name) ? operators[name] : undefined;
    return operator?.takes(argument) === true
      ? operator.check(argument, value, path)
      : check(argument, member(value, name), path === "" ? name : `${path}.${name}`);
  });
}

interface Operator {
  /** Whether the argument is valid. If not, the key is a member name: a card may have a member `type`. */
  readonly takes: (argument: Json) => boolean;
  readonly check: (argument: Json, value: Json | undefined, path: string) => Mismatch | undefined;
}

const isText = (value: Json): value is string => typeof value === "string";
const isNumber = (value: Json): value is number => typeof value === "number";
const isTrue = (value: Json): value is true => value === true;
const isAny = (value: Json): value is Json => value !== undefined;

function typeOf(value: Json): string {
  if (value === null) return "null";
  return isList(value) ? "array" : typeof value;
}

const types = ["string", "number", "boolean", "array", "object", "null"];
const isType = (value: Json): value is string => isText(value) && types.includes(value);

function checking<A extends Json>(
  takes: (argument: Json) => argument is A,
  check: (argument: A, value: Json | undefined, path: string) => Mismatch | undefined,
): Operator {
  return { takes, check: (argument, value, path) => (takes(argument) ? check(argument, value, path) : undefined) };
}

/** An operator that checks the value as a whole. `expected` describes the expectation. */
function operator<A extends Json>(
  takes: (argument: Json) => argument is A,
  holds: (value: Json | undefined, argument: A) => boolean,
  expected: (argument: A) => string,
): Operator {
  return checking(takes, (argument, value, path) =>
    holds(value, argument) ? undefined : { path, expected: expected(argument), actual: show(value) },
  );
}

function textOperator(words: string, holds: (text: string, argument: string) => boolean): Operator {
  return operator(
    isText,
    (value, argument) => value !== undefined && isText(value) && holds(value, argument),
    (argument) => `a string that ${words} ${show(argument)}`,
  );
}

function numberOperator(words: string, holds: (value: number, argument: number) => boolean): Operator {
  return operator(
    isNumber,
    (value, argument) => value !== undefined && isNumber(value) && holds(value, argument),
    (argument) => `${words} ${argument}`,
  );
}

/** Compares the length of a list. */
function countOperator(words: string, holds: (length: number, argument: number) => boolean): Operator {
  return operator(
    isNumber,
    (value, argument) => isList(value) && holds(value.length, argument),
    (argument) => `${words} ${argument} elements`.trimStart(),
  );
}

const oneOf = operator(
  isList,
  (value, choices) => choices.some((choice) => check(choice, value) === undefined),
  (choices) => (choices.length === 1 ? show(choices[0]) : `one of ${show(choices)}`),
);
const contains = textOperator("contains", (text, argument) => text.includes(argument));

const operators: Readonly<Record<string, Operator>> = {
  type: operator(
    isType,
    (value, argument) => value !== undefined && typeOf(value) === argument,
    (argument) => `of type ${argument}`,
  ),
  exists: operator(
    isTrue,
    (value) => value !== undefined,
    () => "a value",
  ),
  absent: operator(
    isTrue,
    (value) => value === undefined,
    () => "no value",
  ),
  not: operator(
    isAny,
    (value, argument) => check(argument, value) !== undefined,
    (argument) => `not ${show(argument)}`,
  ),
  one_of: oneOf,
  any_of: oneOf,
  all_of: checking(isList, (argument, value, path) => firstOf(argument, (one) => check(one, value, path))),
  // A list contains an element, a string contains a string.
  contains: checking(isText, (argument, value, path) => {
    if (!isList(value)) return contains.check(argument, value, path);
    return value.includes(argument)
      ? undefined
      : { path, expected: `a list that contains ${show(argument)}`, actual: show(value) };
  }),
  matches: textOperator("matches", (text, argument) => new RegExp(argument, "u").test(text)),
  starts_with: textOperator("starts with", (text, argument) => text.startsWith(argument)),
  ends_with: textOperator("ends with", (text, argument) => text.endsWith(argument)),
  gte: numberOperator("at least", (value, argument) => value >= argument),
  lte: numberOperator("at most", (value, argument) => value <= argument),
  gt: numberOperator("more than", (value, argument) => value > argument),
  lt: numberOperator("less than", (value, argument) => value < argument),
  count: countOperator("", (length, argument) => length === argument),
  count_gte: countOperator("at least", (length, argument) => length >= argument),
  count_lte: countOperator("at most", (length, argument) => length <= argument),
  // Not in ACTS: the official files use `items`, for each element or by position. `schema` is an addition of this runner.
  items: {
    takes: (argument) => isList(argument) || isMap(argument),
    check(argument, value, path) {
      if (isList(argument)) return check(argument, value, path);
      if (!isList(value)) return { path, expected: "an array", actual: show(value) };
      return firstOf(value, (one, at) => check(argument, one, `${path}[${at}]`));
    },
  },
  schema: checking(isShapeName, (name, value, path) => {
    const problem = shapeProblem(name, value, path);
    return problem && { path: problem.path, expected: problem.expected, actual: show(problem.value) };
  }),
};
