import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";
import { isJsonList, isJsonObject } from "../shared/values.ts";
import type { A2uiEntry08 } from "./messages.ts";

/* The data model of a surface: JSON whose values are addressed by JSON pointers. */

const maxSteps = 64;
/** Largest index that may be set. Unset items before it are `null`. */
const maxIndex = 9_999;
/** Keys that could reach the prototype of an object. */
const forbidden = new Set(["__proto__", "constructor", "prototype"]);

export class PathFault extends Error {}

/**
 * The containers that this draft has created and may change in place. Readers may hold all other containers, so the draft
 * copies a container before its first change: once per event, however many messages change it.
 */
export class Draft {
  readonly #lists = new WeakMap<object, JsonValue[]>();
  readonly #objects = new WeakMap<object, Record<string, JsonValue>>();

  /** The list if it may be changed, or a copy. */
  list(value: readonly JsonValue[]): JsonValue[] {
    const own = this.#lists.get(value) ?? [...value];
    this.#lists.set(own, own);
    return own;
  }

  /** The object if it may be changed, or a copy. */
  object(value: JsonObject): Record<string, JsonValue> {
    const own = this.#objects.get(value) ?? { ...value };
    this.#objects.set(own, own);
    return own;
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
  if (isJsonList(container)) {
    const index = indexOf(step);
    const before = container[index];
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
  if (isJsonList(container)) {
    const own = draft.list(container);
    const index = indexOf(step);
    while (own.length < index) own.push(null);
    own[index] = removes ? null : setAt(draft, own[index], rest, value);
    return own;
  }
  const own = draft.object(isJsonObject(container) ? container : {});
  if (removes) delete own[step];
  else own[step] = setAt(draft, memberOf(own, step), rest, value);
  return own;
}

function hasAt(target: JsonValue | undefined, [step, ...rest]: readonly string[]): boolean {
  if (step === undefined) return target !== undefined;
  if (isJsonList(target)) return isIndex(step) && hasAt(target[Number(step)], rest);
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
  if (isJsonList(value)) for (const item of value) size += perItem + sizeOf(item);
  else for (const [name, member] of Object.entries(value)) size += perMember + 2 * name.length + sizeOf(member);
  return size;
}

const isIndex = (step: string): boolean => /^\d{1,9}$/.test(step);

/** The data of 0.8 as JSON. A single entry `.` stands for the value itself, as in renderers of 0.8. */
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
export function entriesOf(data: JsonObject | readonly JsonValue[]): readonly A2uiEntry08[] {
  return Object.entries<JsonValue>(data).map(([key, value]) => entryOf(key, value));
}

function entryOf(key: string, value: JsonValue): A2uiEntry08 {
  if (typeof value === "string") return { key, valueString: value };
  if (typeof value === "number") return { key, valueNumber: value };
  if (typeof value === "boolean") return { key, valueBoolean: value };
  if (value === null) throw new TypeError(`A2UI 0.8 has no null: ${key}`);
  return { key, valueMap: entriesOf(value) };
}

/* A map with cheap versions, for the components of a surface. */

/** A key that a later version added. */
const absent: unique symbol = Symbol("absent");

/** Maximum number of versions to search. Beyond it an older version gets its own map. */
const maxVersions = 32;

/**
 * An immutable map. Creating its next version costs only the changes. All versions share the map of the newest one; an older
 * version links to the next version, and stores the values that it replaced. Keys are never removed, so the keys of an older
 * version come first.
 */
export class GrowingMap<Value extends object> implements ReadonlyMap<string, Value> {
  readonly size: number;
  #map: Map<string, Value>;
  /** The former values of keys that the next version changed. */
  #before: Map<string, Value | typeof absent> | undefined;
  #next: GrowingMap<Value> | undefined;

  /** @param map - Must not be changed by anyone else. */
  constructor(map: Map<string, Value> = new Map()) {
    this.#map = map;
    this.size = map.size;
  }

  /** The next version. This one is unchanged. */
  with(changes: ReadonlyMap<string, Value>): GrowingMap<Value> {
    // There is or was a next version already, so this is another branch.
    if (this.#next !== undefined) this.#detach();
    const before = new Map<string, Value | typeof absent>();
    for (const [key, value] of changes) {
      before.set(key, this.#map.get(key) ?? absent);
      this.#map.set(key, value);
    }
    this.#before = before;
    return (this.#next = new GrowingMap(this.#map));
  }

  get(key: string): Value | undefined {
    const found = this.#find(key);
    return found === absent ? undefined : found;
  }

  has(key: string): boolean {
    return this.#find(key) !== absent;
  }

  *entries(): MapIterator<[string, Value]> {
    let left = this.size;
    for (const key of this.#map.keys()) {
      if (left === 0) return;
      left -= 1;
      const value = this.get(key);
      if (value !== undefined) yield [key, value];
    }
  }

  *keys(): MapIterator<string> {
    for (const [key] of this.entries()) yield key;
  }

  *values(): MapIterator<Value> {
    for (const [, value] of this.entries()) yield value;
  }

  forEach(visit: (value: Value, key: string, map: ReadonlyMap<string, Value>) => void, self?: unknown): void {
    for (const [key, value] of this.entries()) visit.call(self, value, key, this);
  }

  [Symbol.iterator](): MapIterator<[string, Value]> {
    return this.entries();
  }

  #find(key: string): Value | typeof absent {
    const found = findFrom(this.#step(), key);
    if (found !== tooFar) return found;
    this.#detach();
    return this.#find(key);
  }

  #step(): Step<Value> {
    const next = this.#next;
    return { map: this.#map, before: this.#before, next: next && (() => next.#step()) };
  }

  #detach(): void {
    const later: (Map<string, Value | typeof absent> | undefined)[] = [];
    let step = this.#step();
    for (; step.next !== undefined; step = step.next()) later.push(step.before);
    const own = new Map(step.map);
    for (const before of later.toReversed()) {
      for (const [key, value] of before ?? []) {
        if (value === absent) own.delete(key);
        else own.set(key, value);
      }
    }
    this.#map = own;
    this.#next = this.#before = undefined;
  }
}

interface Step<Value> {
  readonly map: ReadonlyMap<string, Value>;
  readonly before: Map<string, Value | typeof absent> | undefined;
  readonly next: (() => Step<Value>) | undefined;
}

const tooFar: unique symbol = Symbol("too far");

function findFrom<Value extends object>(first: Step<Value>, key: string): Value | typeof absent | typeof tooFar {
  let step = first;
  for (let count = 0; step.next !== undefined; count += 1) {
    if (count === maxVersions) return tooFar;
    const before = step.before?.get(key);
    if (before !== undefined) return before;
    step = step.next();
  }
  return step.map.get(key) ?? absent;
}
