import { randomUUID } from "node:crypto";
import { defined } from "@parley/a2a/internal/base/defined";
import type { Json, JsonMap } from "./format.ts";

/* The values of tests: paths and conditions (ACTS §5.2, §9.1), templates, and requests that the runner completes. */

const steps = /([^.[\]]+)|\[(\d+|\*)\]/g;

export function isMap(value: Json | undefined): value is JsonMap {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

/** An own member of an object: `constructor` is absent unless the JSON has it. */
export function member(value: Json | undefined, name: string): Json | undefined {
  return isMap(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** All values at a path such as `a.b[0].c`; `[*]` stands for each element (ACTS §5.2). */
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

/** Evaluates `path == v`, `path != v` or `path in [v, …]` (ACTS §9.1). Throws for anything else. */
export function holds(condition: string, value: Json | undefined): boolean {
  const [, path = "", operator, rest = ""] = /^(\S+)\s+(==|!=|in)\s+(\S.*)$/.exec(condition.trim()) ?? [];
  const found = find(value, path);
  const actual = found === undefined ? undefined : typeof found === "string" ? found : JSON.stringify(found);
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

/** A variable has no value. Fails the step that uses it (ACTS §12.2). */
export class Unresolved extends Error {}

/** The value of a variable; undefined where it has none. */
export type Lookup = (name: string) => Json | undefined;

const template = /\{\{([^{}]+)\}\}/g;
const whole = /^\{\{([^{}]+)\}\}$/;

/** Replaces each `{{name}}` in every text. A text that consists of one template becomes the value, of whatever type. */
export function resolve(value: Json, lookup: Lookup): Json {
  if (typeof value === "string") {
    const [, name] = whole.exec(value) ?? [];
    if (name !== undefined) return valueOf(name, lookup);
    return value.replace(template, (_, part: string) => {
      const found = valueOf(part, lookup);
      return typeof found === "string" ? found : JSON.stringify(found);
    });
  }
  if (isList(value)) return value.map((one) => resolve(one, lookup));
  if (!isMap(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, resolve(one, lookup)]));
}

function valueOf(text: string, lookup: Lookup): Json {
  const name = text.trim();
  if (name === "$uuid") return randomUUID();
  const found = lookup(name);
  if (found === undefined) throw new Unresolved(`the variable ${name} is not set`);
  return found;
}

/**
 * Completes the parameters of a request: a message without an id gets one (ACTS §4.3). Moves ids that a file writes beside their
 * message into it, and the members of `pushNotificationConfig`, which A2A 1.0 does not have, one level up.
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

/** The same for a body that a test wrote itself: the `params` of a JSON-RPC request, or the body of a REST request. */
export function completeBody(body: Json): Json {
  if (!isMap(body)) return body;
  const params = member(body, "params");
  return isMap(params) ? { ...body, params: completeParams(params) } : completeParams(body);
}

/** Replaces the prefix of a behavior (ACTS §11) at the start of each text by the agent's own words. The longest prefix wins. */
export function inWords(value: Json, behaviors: readonly string[], words: Readonly<Record<string, string>>): Json {
  if (typeof value === "string") {
    const [prefix] = behaviors.filter((one) => value.startsWith(one)).sort((a, b) => b.length - a.length);
    const own = prefix === undefined || !Object.hasOwn(words, prefix) ? undefined : words[prefix];
    return prefix === undefined || own === undefined ? value : own + value.slice(prefix.length);
  }
  if (isList(value)) return value.map((one) => inWords(one, behaviors, words));
  if (!isMap(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, inWords(one, behaviors, words)]));
}
