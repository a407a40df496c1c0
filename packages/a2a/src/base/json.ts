/* Checks whether values of programs are JSON. */

/** Maximum depth that is inspected. Serialization rejects values that nest deeper. */
const deepest = 500;

/** The path of a value, and its problem: `[".order.at", " is a Date"]`. */
type Fault = readonly [path: string, what: string];

/**
 * The path and the problem of the first part of a value that is not JSON: `.order.at is a Date`; `undefined` if all is JSON.
 * `JSON.stringify` silently changes or drops such parts. Allows members that are `undefined`, which JSON omits.
 */
export function notJson(value: unknown): string | undefined {
  let fault = faultIn(value, 0);
  if (fault === tooDeep) fault = circleIn(value, []);
  return fault && `${fault[0]}${fault[1]}`;
}

/** Too deeply nested: either JSON, or circular. */
const tooDeep: Fault = ["", ""];

function faultIn(value: unknown, depth: number): Fault | undefined {
  switch (typeof value) {
    case "string":
    case "boolean":
      return undefined;
    case "number":
      return Number.isFinite(value) ? undefined : ["", ` is ${value}`];
    case "undefined":
      return ["", " is undefined"];
    case "object":
      return value === null ? undefined : faultInObject(value, depth);
    default:
      return ["", ` is a ${typeof value}`];
  }
}

function faultInObject(value: object, depth: number): Fault | undefined {
  if (depth > deepest) return tooDeep;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) {
      const fault = faultIn(value[at], depth + 1);
      if (fault !== undefined) return within(`[${at}]`, fault);
    }
    return undefined;
  }
  if (losesContent(value)) return ["", ` is ${kindOf(value)}`];
  const members: readonly (readonly [string, unknown])[] = Object.entries(value);
  for (const [name, member] of members) {
    if (member === undefined) continue;
    const fault = faultIn(member, depth + 1);
    if (fault !== undefined) return within(memberPath(name), fault);
  }
  return undefined;
}

function within(place: string, fault: Fault): Fault {
  return fault === tooDeep ? tooDeep : [place + fault[0], fault[1]];
}

/** Whether the JSON of an instance loses content, because the instance has its own form, is a list, or has no members. */
function losesContent(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  // The prototype of an object from another realm has no prototype of its own.
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return false;
  const toJSON = "toJSON" in value ? value.toJSON : undefined;
  return typeof toJSON === "function" || Symbol.iterator in value || Object.keys(value).length === 0;
}

function kindOf(value: object): string {
  const { name } = value.constructor;
  return `${/^[aeio]/i.test(name) ? "an" : "a"} ${name || "class instance"}`;
}

/** A member name that needs no quotes. */
const plainName = /^[\w$-]{1,64}$/;

function memberPath(name: string): string {
  return plainName.test(name) ? `.${name}` : `[${JSON.stringify(name.slice(0, 64))}]`;
}

/** The path at which a value contains itself. `undefined` if it is only nested too deeply. */
function circleIn(value: unknown, around: readonly object[]): Fault | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (around.includes(value)) return ["", " contains itself"];
  if (around.length > deepest) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const circle = circleIn(member, [...around, value]);
    if (circle !== undefined) return within(Array.isArray(value) ? `[${name}]` : memberPath(name), circle);
  }
  return undefined;
}

/** The advice for an error. `verb`: such as `return`. */
export function jsonAdvice(verb: string): string {
  return `${verb} plain objects, lists, strings, finite numbers, booleans or null`;
}

/** Freezes a JSON value and everything in it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}

/** Reads and writes JSON of one type. The text was checked before it was stored, so reading does not check it again. */
export interface StoredJson<Value> {
  /** Parses a text. */
  read(text: string): Value;
  /** Writes a value. */
  write(value: Value): string;
}

/** The JSON of a type. */
export function storedJson<Value>(): StoredJson<Value> {
  return { read: (text) => JSON.parse(text) as Value, write: (value) => JSON.stringify(value) };
}
