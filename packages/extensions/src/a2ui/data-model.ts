import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";
import { isJsonObject } from "./check.ts";
import type { A2uiEntry08 } from "./messages.ts";

/* The data model of a surface: JSON, whose values are set by JSON pointers. */

/** Most steps of a path. */
const maxSteps = 64;
/** Largest index of an array that is set: what is before it and was not set is `null`. */
const maxIndex = 9_999;
/** They would reach the prototype of an object in a careless reader. */
const forbidden = new Set(["__proto__", "constructor", "prototype"]);

/** Why a path cannot be set. */
export class PathFault extends Error {}

/**
 * Objects and arrays that were made since a draft began, and may be changed. All others are as their readers have them. So a container
 * is copied once for all messages of an event, however many change it.
 */
export class Draft {
  readonly #own = new WeakSet<object>();

  /** The value, or a copy of it that may be changed. */
  own<T extends object>(value: T): T {
    if (this.#own.has(value)) return value;
    const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...value }) as T;
    this.#own.add(copy);
    return copy;
  }
}

/** The steps of a path. Empty: the whole data model. A path without a slash in front counts from the root as well. */
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

/* About what values take in memory, in bytes: small ones take far more than their JSON. */
const perContainer = 56;
const perMember = 40;
const perItem = 8;
const perText = 24;
const perNumber = 16;

/**
 * By how many bytes the memory grows when `setAt()` sets the value.
 *
 * @throws PathFault where the way leads through a text, a number or a truth value, or an index is too large.
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
  if (!isJsonObject(container)) throw new PathFault(`leads through a value that is no object, at ${step}`);
  const before = memberOf(container, step);
  const name = perMember + 2 * step.length;
  if (removes) return -sizeOf(before) - name;
  return made + growthAt(before, rest, value) + (before === undefined ? name : 0);
}

/**
 * The data with a value at some steps, or without it where it is `undefined`. What is missing on the way is made: an array where the next
 * step is a number, else an object. In an array `null` stays in place of what was removed. `growthAt()` comes first: it checks the way.
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

/** Whether there is a value. */
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

/** About how many bytes a value takes in memory. What a change adds does not depend on how many members there are. */
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

/** The data of 0.8: entries become an object. The single entry `.` is a value by itself, as renderers of 0.8 have it. */
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
 * Data as the entries of 0.8. An array becomes a map with its positions as keys.
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
