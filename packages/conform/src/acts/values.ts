import { randomUUID } from "node:crypto";
import { defined } from "@parley/a2a/internal/base/defined";
import type { Json, JsonMap } from "./format.ts";

/* Values in tests: paths and conditions (ACTS §5.2, §9.1), templates, and defaults of requests. */

const steps = /([^.[\]]+)|\[(\d+|\*)\]/g;

/** `value`: parsed JSON. */
export function isMap(value: unknown): value is JsonMap {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `value`: parsed JSON. */
export function isList(value: unknown): value is readonly Json[] {
  return Array.isArray(value);
}

/** An own member of an object: `constructor` is absent unless the JSON has it. */
export function member(value: unknown, name: string): Json | undefined {
  return isMap(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** The first result that is not undefined. */
export function firstOf<T, R>(list: readonly T[], ask: (one: T, at: number) => R | undefined): R | undefined {
  for (const [at, one] of list.entries()) {
    const result = ask(one, at);
    if (result !== undefined) return result;
  }
  return undefined;
}

/** All values at a path such as `a.b[0].c`. `[*]` means every element (ACTS §5.2). */
export function findAll(value: Json | undefined, path: string): readonly Json[] {
  let found = value === undefined ? [] : [value];
  for (const [, name, index] of path.matchAll(steps)) {
    found = found.flatMap((one): readonly Json[] => {
      if (name !== undefined) {
        const inside = member(one, name);
        return inside === undefined ? [] : [inside];
      }
      if (!isList(one)) return [];
      if (index === "*") return one;
      const element = one[Number(index)];
      return element === undefined ? [] : [element];
    });
  }
  return found;
}

export function find(value: Json | undefined, path: string): Json | undefined {
  return findAll(value, path)[0];
}

/** Evaluates `path == v`, `path != v` or `path in [v, …]` (ACTS §9.1). Throws for any other condition. */
export function holds(condition: string, value: Json | undefined): boolean {
  const [, path = "", operator, rest = ""] = /^(\S+)\s+(==|!=|in)\s+(\S.*)$/.exec(condition.trim()) ?? [];
  const found = find(value, path);
  const actual = found === undefined ? undefined : textOf(found);
  const literal = (text: string): string => text.trim().replace(/^(["'])(.*)\1$/, "$2");
  switch (operator) {
    case "==":
      return actual === literal(rest);
    case "!=":
      return actual !== literal(rest);
    case "in":
      return (
        actual !== undefined &&
        rest
          .replace(/^\[|\]$/g, "")
          .split(",")
          .map(literal)
          .includes(actual)
      );
    default:
      throw new Error(`"${condition}" is not a condition: path == value, path != value or path in [value, …]`);
  }
}

/** A variable has no value, so the step that uses it fails (ACTS §12.2). */
export class Unresolved extends Error {}

const template = /\{\{([^{}]+)\}\}/g;
const whole = /^\{\{([^{}]+)\}\}$/;

/** Replaces every string in a value. */
function mapStrings(value: Json, map: (text: string) => Json): Json {
  if (typeof value === "string") return map(value);
  if (isList(value)) return value.map((one) => mapStrings(one, map));
  if (!isMap(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, mapStrings(one, map)]));
}

/** Replaces each `{{name}}` in every string. A string that is a single template becomes the value, of any type. */
export function resolve(value: Json, lookup: (name: string) => Json | undefined): Json {
  const valueOf = (text: string): Json => {
    const name = text.trim();
    const found = name === "$uuid" ? randomUUID() : lookup(name);
    if (found === undefined) throw new Unresolved(`variable ${name} is not set`);
    return found;
  };
  return mapStrings(value, (text) => {
    const [, name] = whole.exec(text) ?? [];
    return name === undefined ? text.replace(template, (_, part: string) => textOf(valueOf(part))) : valueOf(name);
  });
}

/** A string unchanged, any other value as JSON. */
export function textOf(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * Completes the parameters of a request. A message without an id gets one (ACTS §4.3). Ids next to the message move into it. The members
 * of `pushNotificationConfig`, which A2A 1.0 does not have, move one level up.
 */
export function completeParams(params: JsonMap): JsonMap {
  const { message, taskId, contextId, pushNotificationConfig, ...rest } = params;
  if (isMap(message)) {
    const ids = defined({ taskId, contextId });
    return { ...rest, message: { messageId: randomUUID(), ...message, ...ids } };
  }
  if (!isMap(pushNotificationConfig)) return params;
  return { ...rest, ...defined({ taskId }), ...pushNotificationConfig };
}

/** Completes the body of a raw step: the `params` of a JSON-RPC request, or the body of a REST request. */
export function completeBody(body: Json): Json {
  if (!isMap(body)) return body;
  const params = member(body, "params");
  return isMap(params) ? { ...body, params: completeParams(params) } : completeParams(body);
}

/** Replaces the prefix that requests a behavior (ACTS §11) at the start of each string by the agent's own. The longest prefix wins. */
export function inWords(value: Json, behaviors: readonly string[], words: Readonly<Record<string, string>>): Json {
  const longestFirst = behaviors.toSorted((a, b) => b.length - a.length);
  return mapStrings(value, (text) => {
    const prefix = longestFirst.find((one) => text.startsWith(one));
    if (prefix === undefined || !Object.hasOwn(words, prefix)) return text;
    return `${words[prefix]}${text.slice(prefix.length)}`;
  });
}

/** Types a value of the model as JSON. TypeScript does not assign the model's interfaces to an index signature. */
export function asJson(value: object): JsonMap {
  return value as JsonMap;
}
