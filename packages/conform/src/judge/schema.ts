import type { Json } from "../acts/format.ts";
import { isMap } from "../acts/path.ts";
import type { Field, Kind, Shape } from "./shape.ts";
import { shapesV03 } from "./shapes-v03.ts";
import { shapesV1 } from "./shapes-v1.ts";

export interface ShapeProblem {
  readonly path: string;
  readonly expected: string;
  readonly value: Json | undefined;
}

/** By name. Those of 1.0 have the names of the specification, those of 0.3 have `0.3/` before them. */
const shapes: Readonly<Record<string, Shape>> = { ...shapesV1, ...shapesV03 };

export function isShapeName(name: Json): boolean {
  return typeof name === "string" && Object.hasOwn(shapes, name);
}

/** The first place where a value does not have the shape of that name. Unknown fields are allowed: a later version may add them. */
export function shapeProblem(name: string, value: Json | undefined, path = ""): ShapeProblem | undefined {
  const shape = shapes[name];
  if (shape === undefined) throw new Error(`there is no shape with the name ${name}`);
  if (!isMap(value)) return { path, expected: `a ${name}`, value };
  if (shape.byKind !== undefined) {
    const { kind } = value;
    const chosen = typeof kind === "string" && Object.hasOwn(shape.byKind, kind) ? shape.byKind[kind] : undefined;
    if (chosen !== undefined) return shapeProblem(chosen, value, path);
    const expected = `one of ${Object.keys(shape.byKind).join(", ")}`;
    return { path: path === "" ? "kind" : `${path}.kind`, expected, value: kind };
  }
  const at = (field: string): string => (path === "" ? field : `${path}.${field}`);
  const spelling = Object.keys(shape.fields).find(
    (field) => field !== snake(field) && Object.hasOwn(value, snake(field)),
  );
  if (spelling !== undefined) {
    return { path: at(snake(spelling)), expected: `the name ${spelling} (§5.5)`, value: value[snake(spelling)] };
  }
  for (const [field, rule] of Object.entries(shape.fields)) {
    const problem = fieldProblem(rule, present(value, field), at(field));
    if (problem !== undefined) return problem;
  }
  // Only for `data` null is a value.
  const chosen = shape.oneOf?.filter(
    (field) => Object.hasOwn(value, field) && (value[field] !== null || field === "data"),
  );
  if (chosen === undefined || chosen.length === 1) return undefined;
  return { path, expected: `exactly one of ${(shape.oneOf ?? []).join(", ")}`, value };
}

/** The member, or undefined: null is an absent field in ProtoJSON. */
function present(value: Readonly<Record<string, Json>>, field: string): Json | undefined {
  return Object.hasOwn(value, field) && value[field] !== null ? value[field] : undefined;
}

function fieldProblem(rule: Field, value: Json | undefined, path: string): ShapeProblem | undefined {
  if (value === undefined)
    return rule.required === true ? { path, expected: "a value: it is required", value } : undefined;
  if (rule.map === true) {
    if (!isMap(value)) return { path, expected: "an object", value };
    for (const [key, one] of Object.entries(value)) {
      const problem = kindProblem(rule.kind, one, `${path}.${key}`);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
  if (rule.list !== true) return kindProblem(rule.kind, value, path);
  if (!Array.isArray(value)) return { path, expected: "an array", value };
  if (value.length === 0 && rule.required === true && rule.mayBeEmpty !== true) {
    return { path, expected: "at least one element: it is required (§5.7)", value };
  }
  for (const [at, one] of (value as readonly Json[]).entries()) {
    const problem = kindProblem(rule.kind, one, `${path}[${at}]`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function kindProblem(kind: Kind | string, value: Json, path: string): ShapeProblem | undefined {
  if (typeof kind === "string") return shapeProblem(kind, value, path);
  const expected = kind(value);
  return expected === undefined ? undefined : { path, expected, value };
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
