import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";
import { isJsonObject } from "./check.ts";
import type { A2uiEntry08 } from "./messages.ts";

/* The data model of a surface: JSON whose values are set by JSON pointers. */

const maxSteps = 64;
/** Largest index that may be set. Unset items before it are `null`. */
const maxIndex = 9_999;
/** A careless reader would reach the prototype of an object with these. */
const forbidden = new Set(["__proto__", "constructor", "prototype"]);

export class PathFault extends Error {}

/**
 * Containers created since a draft began, which may be changed in place. All others belong to readers, so a container
 * is copied once per event, however many messages change it.
 */
export class Draft {
  readonly #own = new WeakSet<object>();

  /** The value if it may be changed, or a copy. */
  own<T extends object>(value: T): T {
    if (this.#own.has(value)) return value;
    const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...value }) as T;
    this.#own.add(copy);
    return copy;
  }
}

/** The steps of a path; none for the whole data model. A path without a leading slash also starts at the root. */
export function stepsOf(path: string): readonly string[] {
  const steps = path
    .split("/")
    .filter((step) => step !== "")
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  if (steps.length > maxSteps) throw new PathFault(`must not have more than ${maxSteps} steps`);
  const wrong = steps.find((step) => forbidden.has(step));
  if (wrong !== undefined) throw new PathFault(`must not have the step ${wrong}`);
  return steps;
}

/* Approximate memory of values, in bytes: small values take far more than their JSON. */
const perContainer = 56;
const perMember = 40;
const perItem = 8;
const perText = 24;
const perNumber = 16;

/**
 * Memory that `setAt()` adds, in bytes.
 *
 * @throws PathFault if the path leads through a primitive, or an index is too large.
 */
export function growthAt(
  target: JsonValue | undefined,
  steps: readonly string[],
  value: JsonValue | undefined,
): number {
  if (value === undefined && !hasAt(target, steps)) return 0;
  const [step, ...rest] = steps;
  if (step === undefined) return sizeOf(value === undefined ? {} : value) - sizeOf(target);
  const removes = rest.length === 0 && value === undefined;
  const made = target === undefined || target === null ? perContainer : 0;
  const container = target ?? (isIndex(step) ? [] : {});
  if (Array.isArray(container)) {
    const index = indexOf(step);
    const before = (container as readonly JsonValue[])[index];
    if (removes) return -sizeOf(before);
    const holes = perItem * Math.max(0, index - container.length);
    return made + holes + growthAt(before, rest, value) + (before === undefined ? perItem : 0);
  }
  if (!isJsonObject(container)) throw new PathFault(`leads through a value that is not an object, at ${step}`);
  const before = memberOf(container, step);
  const name = perMember + 2 * step.length;
  if (removes) return -sizeOf(before) - name;
  return made + growthAt(before, rest, value) + (before === undefined ? name : 0);
}

/**
 * The data with a value set, or removed if `undefined`. Missing containers are created: an array if the next step is a
 * number, otherwise an object. A removed array item becomes `null`. Call `growthAt()` first: it checks the path.
 */
export function setAt(
  draft: Draft,
  target: JsonValue | undefined,
  steps: readonly string[],
  value: JsonValue | undefined,
): JsonValue {
  if (value === undefined && !hasAt(target, steps)) return target ?? {};
  const [step, ...rest] = steps;
  if (step === undefined) return value === undefined ? {} : value;
  const removes = rest.length === 0 && value === undefined;
  const container = target ?? (isIndex(step) ? [] : {});
  if (Array.isArray(container)) {
    const own = draft.own(container as JsonValue[]);
    const index = indexOf(step);
    while (own.length < index) own.push(null);
    own[index] = removes ? null : setAt(draft, own[index], rest, value);
    return own;
  }
  const own = draft.own(container as Record<string, JsonValue>);
  if (removes) delete own[step];
  else own[step] = setAt(draft, memberOf(own, step), rest, value);
  return own;
}

function hasAt(target: JsonValue | undefined, [step, ...rest]: readonly string[]): boolean {
  if (step === undefined) return target !== undefined;
  if (Array.isArray(target)) return isIndex(step) && hasAt((target as readonly JsonValue[])[Number(step)], rest);
  return isJsonObject(target) && hasAt(memberOf(target, step), rest);
}

function memberOf(container: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(container, name) ? container[name] : undefined;
}

function indexOf(step: string): number {
  if (!isIndex(step)) throw new PathFault(`has ${step} where an array needs a number`);
  if (Number(step) > maxIndex) throw new PathFault(`must not have an index above ${maxIndex}`);
  return Number(step);
}

/** Approximate memory of a value, in bytes. The cost of a change does not depend on the number of members. */
export function sizeOf(value: unknown): number {
  if (typeof value === "string") return perText + 2 * value.length;
  if (typeof value === "number") return perNumber;
  if (typeof value !== "object" || value === null) return 0;
  let size = perContainer;
  if (Array.isArray(value)) for (const item of value as readonly unknown[]) size += perItem + sizeOf(item);
  else for (const [name, member] of Object.entries(value)) size += perMember + 2 * name.length + sizeOf(member);
  return size;
}

const isIndex = (step: string): boolean => /^\d{1,9}$/.test(step);

/** The data of 0.8 as JSON. A single entry `.` is a value without an object, as in renderers of 0.8. */
export function dataOf(entries: readonly A2uiEntry08[]): JsonValue {
  const [first] = entries;
  if (entries.length === 1 && first?.key === ".") return valueOf(first);
  const values: Record<string, JsonValue> = {};
  for (const entry of entries) if (!forbidden.has(entry.key)) values[entry.key] = valueOf(entry);
  return values;
}

function valueOf({ valueString, valueNumber, valueBoolean, valueMap }: A2uiEntry08): JsonValue {
  return valueString ?? valueNumber ?? valueBoolean ?? dataOf(valueMap ?? []);
}

/**
 * JSON as entries of 0.8. An array becomes a map with its indexes as keys.
 *
 * @throws TypeError for `null`, which 0.8 does not have.
 */
export function entriesOf(data: JsonValue): readonly A2uiEntry08[] {
  return Object.entries(data as JsonObject).map(([key, value]) => entryOf(key, value));
}

function entryOf(key: string, value: JsonValue): A2uiEntry08 {
  if (typeof value === "string") return { key, valueString: value };
  if (typeof value === "number") return { key, valueNumber: value };
  if (typeof value === "boolean") return { key, valueBoolean: value };
  if (value === null) throw new TypeError(`A2UI 0.8 has no null: ${key}`);
  return { key, valueMap: entriesOf(value) };
}
