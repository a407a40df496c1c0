import fc, { type Arbitrary } from "fast-check";
import { taskStates, toBase64 } from "../../src/model/index.ts";
import { fieldsOf, isMessageName, oneOfOf, type FieldKind, type MessageName, type Models } from "./proto.ts";

/**
 * Values for every message of the proto. If a field has no presence in protobuf, its default is omitted, so that a value equals its round
 * trip through a protobuf codec.
 */

const filled = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });
/** Values as `JSON.parse` returns them, without member names that other codecs change. */
const json = fc
  .jsonValue({ maxDepth: 3 })
  .map((value) => JSON.parse(JSON.stringify(value)) as unknown)
  .filter((value) => !JSON.stringify(value).includes("__proto__"));
const key = fc.string({ minLength: 1, maxLength: 8 }).filter((name) => name !== "__proto__");

const scalars: Readonly<Record<string, Arbitrary<unknown>>> = {
  filled,
  id: fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }).filter((id) => !id.includes("\0")),
  bytes: fc.uint8Array({ maxLength: 12 }).map(toBase64),
  Timestamp: fc
    .date({ min: new Date("0001-01-01T00:00:00Z"), max: new Date("9999-12-31T23:59:59.999Z"), noInvalidDate: true })
    .map((date) => date.toISOString()),
  page: fc.integer({ min: 1, max: 100 }),
  Role: fc.constantFrom("ROLE_USER", "ROLE_AGENT"),
  TaskState: fc.constantFrom(...taskStates),
  Struct: fc.dictionary(key, json, { maxKeys: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown),
  // The official codec loses null, which another test covers.
  Value: json.filter((value) => value !== null),
};

function one(kind: FieldKind, hasPresence: boolean): Arbitrary<unknown> {
  if (isMessageName(kind.base)) return messageOf(kind.base);
  if (kind.base === "bool") return hasPresence ? fc.boolean() : fc.constant(true);
  if (kind.base === "count") return fc.integer({ min: hasPresence ? 0 : 1, max: 2 ** 31 - 1 });
  if (kind.base === "string") return hasPresence ? fc.string({ unit: "binary", maxLength: 12 }) : filled;
  const scalar = scalars[kind.base];
  if (scalar === undefined) throw new TypeError(`no values for ${kind.base}`);
  return scalar;
}

function valueOf(kind: FieldKind, inOneOf: boolean): Arbitrary<unknown> {
  // A list keeps an element with a default value.
  if (kind.shape === "list") return fc.array(one(kind, true), { minLength: 1, maxLength: 2 });
  if (kind.shape === "map")
    return fc.dictionary(key, one(kind, true), { minKeys: 1, maxKeys: 2, noNullPrototype: true });
  return one(kind, inOneOf || kind.explicit);
}

/** Generates any message with this name. `full`: with every possible field. */
export function messageOf<Name extends MessageName>(name: Name, full = false): Arbitrary<Models[Name]> {
  const choice = oneOfOf(name)?.of ?? [];
  const fields = fieldsOf(name).filter(([field]) => !choice.includes(field));
  const model = Object.fromEntries(fields.map(([field, kind]) => [field, valueOf(kind, false)]));
  const requiredKeys = fields.filter(([, kind]) => full || kind.required).map(([field]) => field);
  const whole = fc.record(model, { requiredKeys, noNullPrototype: true });
  const contents = fieldsOf(name)
    .filter(([field]) => choice.includes(field))
    .map(([field, kind]) => valueOf(kind, true).map((value) => ({ [field]: value })));
  const message =
    contents.length === 0
      ? whole
      : fc.tuple(whole, fc.oneof(...contents)).map(([others, content]) => ({ ...others, ...content }));
  return message as Arbitrary<Models[Name]>;
}
