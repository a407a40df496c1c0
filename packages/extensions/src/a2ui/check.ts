import type { JsonObject, StandardSchema } from "@parley/a2a/internal/model/index";

/* Checks of messages. Like the schemas of A2UI, most objects allow no other members. */

/** A fault: a JSON pointer to the field, and a sentence. */
export interface Fault {
  readonly path: string;
  readonly message: string;
}

/** Returns the first fault of a value. */
export type Check = (value: unknown) => Fault | undefined;

type Members = Readonly<Record<string, Check>>;

const here = (message: string): Fault => ({ path: "", message });

/** A fault as seen from the containing object or list. */
export function inside(name: string | number, fault: Fault): Fault {
  return { path: `/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}${fault.path}`, message: fault.message };
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const text: Check = (value) => (typeof value === "string" ? undefined : here("must be a string"));
export const flag: Check = (value) => (typeof value === "boolean" ? undefined : here("must be true or false"));
export const number: Check = (value) =>
  typeof value === "number" && Number.isFinite(value) ? undefined : here("must be a number");
export const anything: Check = (value) => (value === undefined ? here("is required") : undefined);
export const anyObject: Check = (value) => (isJsonObject(value) ? undefined : here("must be an object"));

const dateTime = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;
export const time: Check = (value) =>
  typeof value === "string" && dateTime.test(value) && !Number.isNaN(Date.parse(value))
    ? undefined
    : here("must be an RFC 3339 time such as 2026-01-31T12:00:00Z");

export function oneOf(values: readonly string[]): Check {
  return (value) =>
    typeof value === "string" && values.includes(value) ? undefined : here(`must be ${values.join(" or ")}`);
}

/** A list of at least `min` items. */
export function list(item: Check, min = 0): Check {
  return (value) => {
    if (!Array.isArray(value)) return here("must be an array");
    if (value.length < min) return here("must not be empty");
    for (let at = 0; at < value.length; at += 1) {
      const fault = item(value[at]);
      if (fault !== undefined) return inside(at, fault);
    }
    return undefined;
  };
}

/** An object. `others` checks members without a check of their own; absent, such members are faults. */
export function object(required: Members, optional: Members = {}, others?: Check): Check {
  const names = Object.keys(required);
  return (value) => {
    if (!isJsonObject(value)) return here("must be an object");
    const missing = names.find((name) => !Object.hasOwn(value, name));
    if (missing !== undefined) return inside(missing, here("is required"));
    for (const [name, member] of Object.entries(value)) {
      const check = memberOf(required, name) ?? memberOf(optional, name) ?? others;
      const fault = check === undefined ? here("is not a field of this message") : check(member);
      if (fault !== undefined) return inside(name, fault);
    }
    return undefined;
  };
}

function memberOf(members: Members, name: string): Check | undefined {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}

/** Members that belong to a kind of message beside its content. */
type More = Readonly<Record<string, { readonly required: Members; readonly optional?: Members }>>;

/** An object with `shared` members and exactly one of several kinds of content. */
export function kinds(shared: Members, byKind: Members, more: More = {}): Check {
  const checks = new Map<string, Check>();
  for (const [kind, content] of Object.entries(byKind)) {
    const { required, optional } = more[kind] ?? {};
    checks.set(kind, object({ ...shared, [kind]: content, ...required }, optional));
  }
  const ofKind: Check = (value) => {
    const kind = Object.keys(value as object).find((name) => checks.has(name)) ?? "";
    return checks.get(kind)?.(value);
  };
  return both(anyObject, exactlyOne(...checks.keys()), ofKind);
}

/** The first fault that any check finds. */
export function both(...checks: readonly Check[]): Check {
  return (value) => {
    for (const check of checks) {
      const fault = check(value);
      if (fault !== undefined) return fault;
    }
    return undefined;
  };
}

/** A condition on an object. */
export function where(holds: (value: JsonObject) => boolean, message: string): Check {
  return (value) => (isJsonObject(value) && !holds(value) ? here(message) : undefined);
}

/** An object with exactly one of these members. */
export function exactlyOne(...names: readonly string[]): Check {
  return where(
    (value) => names.filter((name) => Object.hasOwn(value, name)).length === 1,
    `must have exactly one of ${names.join(", ")}`,
  );
}

/** A Standard Schema of a check. `read` converts a valid value for its readers. */
export function schemaOf<Value>(check: Check, read: (value: unknown) => Value): StandardSchema<Value> {
  return {
    "~standard": {
      version: 1,
      vendor: "parley",
      validate(value) {
        const fault = check(value);
        if (fault === undefined) return { value: read(value) };
        return { issues: [{ message: fault.message, path: fault.path.split("/").slice(1).map(nameOf) }] };
      },
    },
  };
}

/** Decodes a step of a JSON pointer. */
function nameOf(step: string): PropertyKey {
  return /^\d+$/.test(step) ? Number(step) : step.replaceAll("~1", "/").replaceAll("~0", "~");
}
