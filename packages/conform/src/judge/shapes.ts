import type { Json } from "../acts/format.ts";
import { isMap } from "../acts/values.ts";
import { shapesV03, shapesV03Proto, shapesV1, type ShapeTable } from "./shape-tables.ts";

/** The first place where a value does not have its shape. */
export interface ShapeProblem {
  readonly path: string;
  readonly expected: string;
  readonly value: Json | undefined;
}

/** What a table of shapes says of one member. */
interface Field {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  /** `T[]` is a list, `T[1+]` one with at least one element, `T{}` an object with any keys. */
  readonly many: "" | "[]" | "[1+]" | "{}";
}

interface Shape {
  readonly fields: readonly Field[];
  /** Exactly one of these members must be set. */
  readonly oneOf?: readonly string[];
  /** The member `kind` names the shape that is used instead of this one. */
  readonly byKind?: Readonly<Record<string, string>>;
  /** What stands before the names of the shapes of its version. */
  readonly prefix: string;
}

/** Those of 1.0 have the names of the specification, those of 0.3 have `0.3/` before them. */
const shapes: ReadonlyMap<string, Shape> = new Map([
  ...shapesIn(shapesV1, ""),
  ...shapesIn(shapesV03, "0.3/"),
  ...shapesIn(shapesV03Proto, "0.3/proto/"),
]);

function shapesIn(table: ShapeTable, prefix: string): readonly (readonly [name: string, shape: Shape])[] {
  return Object.entries(table).map(([name, text]) => [`${prefix}${name}`, parseShape(text, prefix)]);
}

function parseShape(text: string, prefix: string): Shape {
  const [, how, inside = "", rest = ""] = /^(?:(oneof|kind)\(([^)]*)\),?)?([^]*)$/.exec(text.trim()) ?? [];
  const chosen = fieldsIn(inside);
  const fields = fieldsIn(rest);
  if (how === "kind")
    return { prefix, fields, byKind: Object.fromEntries(chosen.map(({ name, type }) => [name, type])) };
  if (how === "oneof") return { prefix, fields: [...chosen, ...fields], oneOf: chosen.map(({ name }) => name) };
  return { prefix, fields };
}

function fieldsIn(text: string): readonly Field[] {
  return Array.from(
    text.matchAll(/(?<![\w-])([\w-]+)(\??): ([\w|-]+)(\[\]|\[1\+\]|\{\}|)/g),
    ([, name = "", optional, type = "", many = ""]) => ({
      name,
      type,
      required: optional === "",
      many: many as Field["many"],
    }),
  );
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;
const utc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;
const isText = (value: Json): value is string => typeof value === "string";
const isTime = (value: Json): value is string => isText(value) && !Number.isNaN(Date.parse(value));

/** Types that are not shapes, and what a report calls them. */
const scalars: Readonly<Record<string, readonly [is: (value: Json) => boolean, expected: string]>> = {
  text: [isText, "text"],
  nonEmpty: [(value) => isText(value) && value !== "", "text that is not empty"],
  flag: [(value) => typeof value === "boolean", "true or false"],
  integer: [(value) => Number.isInteger(value), "a whole number"],
  object: [isMap, "an object"],
  any: [() => true, "anything"],
  url: [(value) => isText(value) && URL.canParse(value), "an absolute URL"],
  // Of an interface: gRPC addresses commonly have no scheme.
  address: [(value) => isText(value) && /^[^\s/]+(?::\d+$|:\/\/)/.test(value), "an address"],
  bytes: [(value) => isText(value) && base64.test(value), "base64 (RFC 4648 §4)"],
  time: [isTime, "a time of ISO 8601"],
  timestamp: [(value) => isTime(value) && utc.test(value), "a time in UTC, such as 2026-01-31T12:00:00.000Z (§5.6.1)"],
};

export function isShapeName(name: Json): boolean {
  return typeof name === "string" && shapes.has(name);
}

/** The first place where a value does not have the shape of that name. Unknown fields are allowed: a later version may add them. */
export function shapeProblem(name: string, value: Json | undefined, path = ""): ShapeProblem | undefined {
  const shape = shapes.get(name);
  if (shape === undefined) throw new Error(`there is no shape with the name ${name}`);
  if (!isMap(value)) return { path, expected: `a ${name}`, value };
  const at = (field: string): string => (path === "" ? field : `${path}.${field}`);
  const { byKind, oneOf, fields, prefix } = shape;
  if (byKind !== undefined) {
    const { kind } = value;
    const chosen = typeof kind === "string" && Object.hasOwn(byKind, kind) ? byKind[kind] : undefined;
    if (chosen !== undefined) return shapeProblem(prefix + chosen, value, path);
    return { path: at("kind"), expected: `one of ${Object.keys(byKind).join(", ")}`, value: kind };
  }
  const misspelled = fields.find(
    (field) => field.name !== snake(field.name) && Object.hasOwn(value, snake(field.name)),
  );
  if (misspelled !== undefined) {
    const other = snake(misspelled.name);
    return { path: at(other), expected: `the name ${misspelled.name} (§5.5)`, value: value[other] };
  }
  for (const field of fields) {
    const problem = fieldProblem(field, prefix, present(value, field.name), at(field.name));
    if (problem !== undefined) return problem;
  }
  // Only for `data` null is a value.
  const chosen = oneOf?.filter((field) => Object.hasOwn(value, field) && (value[field] !== null || field === "data"));
  if (chosen === undefined || chosen.length === 1) return undefined;
  return { path, expected: `exactly one of ${(oneOf ?? []).join(", ")}`, value };
}

/** The member, or undefined: null is an absent field in ProtoJSON. */
function present(value: Readonly<Record<string, Json>>, field: string): Json | undefined {
  return Object.hasOwn(value, field) && value[field] !== null ? value[field] : undefined;
}

function fieldProblem(
  { type, many, required }: Field,
  prefix: string,
  value: Json | undefined,
  path: string,
): ShapeProblem | undefined {
  if (value === undefined) return required ? { path, expected: "a value: it is required", value } : undefined;
  if (many === "") return typeProblem(type, prefix, value, path);
  if (many === "{}" && !isMap(value)) return { path, expected: "an object", value };
  if (many !== "{}" && !Array.isArray(value)) return { path, expected: "an array", value };
  const elements = Object.entries(value as Readonly<Record<string, Json>>);
  if (many === "[1+]" && elements.length === 0) {
    return { path, expected: "at least one element: it is required (§5.7)", value };
  }
  for (const [key, one] of elements) {
    const problem = typeProblem(type, prefix, one, many === "{}" ? `${path}.${key}` : `${path}[${key}]`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function typeProblem(type: string, prefix: string, value: Json, path: string): ShapeProblem | undefined {
  const scalar = Object.hasOwn(scalars, type) ? scalars[type] : undefined;
  if (scalar !== undefined) return scalar[0](value) ? undefined : { path, expected: scalar[1], value };
  // A version uses the shapes of 1.0 where it has none of its own.
  const shape = [prefix + type, type].find((name) => shapes.has(name));
  if (shape !== undefined) return shapeProblem(shape, value, path);
  const names = type.split("|");
  return isText(value) && names.includes(value) ? undefined : { path, expected: `one of ${names.join(", ")}`, value };
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
