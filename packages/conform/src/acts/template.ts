import { randomUUID } from "node:crypto";
import type { Json } from "./format.ts";
import { isMap } from "./path.ts";

/** A variable that nobody has set: the step fails with it (ACTS §12.2). */
export class Unresolved extends Error {}

/** What `{{name}}` stands for; undefined where nothing is known of it. */
export type Lookup = (name: string) => Json | undefined;

const template = /\{\{([^{}]+)\}\}/g;
const whole = /^\{\{([^{}]+)\}\}$/;

/** Puts values in the place of `{{name}}`, in text wherever it stands. A text that is one template takes the value's type. */
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
