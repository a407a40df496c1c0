import { randomUUID } from "node:crypto";
import type { Json } from "./format.ts";
import { isMap } from "./path.ts";

/** A variable that has no value. Fails the step that uses it (ACTS §12.2). */
export class Unresolved extends Error {}

/** The value of a variable; undefined where it has none. */
export type Lookup = (name: string) => Json | undefined;

const template = /\{\{([^{}]+)\}\}/g;
const whole = /^\{\{([^{}]+)\}\}$/;

/** Replaces each `{{name}}` by its value, in every text. A text that consists of one template becomes the value, of whatever type. */
export function resolve(value: Json, lookup: Lookup): Json {
  if (typeof value === "string") {
    const [, name] = whole.exec(value) ?? [];
    if (name !== undefined) return valueOf(name, lookup);
    return value.replace(template, (_, part: string) => {
      const found = valueOf(part, lookup);
      return typeof found === "string" ? found : JSON.stringify(found);
    });
  }
  if (Array.isArray(value)) return (value as readonly Json[]).map((one) => resolve(one, lookup));
  if (!isMap(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, resolve(one, lookup)]));
}

function valueOf(text: string, lookup: Lookup): Json {
  const name = text.trim();
  if (name === "$uuid") return randomUUID();
  const found = lookup(name);
  if (found === undefined) throw new Unresolved(`nothing has set the variable ${name}`);
  return found;
}
