import { utf8Length } from "../base/index.ts";
import { fail, isObject, jsonName, type Schema } from "../model/schema.ts";

/**
 * A schema of an object that refuses members with other names, as some extensions demand. Members may have their proto names, such as
 * `client_id` for `clientId`.
 */
export function withoutOthers<T>(names: readonly (keyof T & string)[], schema: Schema<T>): Schema<T> {
  const known = new Set<string>(names);
  const nameOf = (name: string): string => (known.has(name) ? name : jsonName(name));
  return (value, state) => {
    if (!isObject(value)) return schema(value, state);
    const members = Object.entries(value).map(([name, member]) => [nameOf(name), member] as const);
    if (members.every(([name]) => known.has(name))) return schema(Object.fromEntries(members), state);
    return fail(state, `must not have other members than ${names.join(", ")}`);
  };
}

/** Size of a value as JSON, in bytes. Infinite for a value that is nested so deeply that the stack does not hold it. */
export function jsonBytes(value: unknown): number {
  try {
    return utf8Length(JSON.stringify(value));
  } catch {
    return Infinity;
  }
}
