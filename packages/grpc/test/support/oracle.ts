import {
  create,
  createFileRegistry,
  fromBinary,
  fromJson,
  toBinary,
  toJson,
  type DescField,
  type DescMessage,
  type FileRegistry,
  type JsonValue,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import * as files from "../../src/descriptors.ts";

const { descriptor, fieldBehavior, any, duration, empty, struct, timestamp: time, ...others } = files;
/** Imported files come first. */
const inOrder = [descriptor, fieldBehavior, any, duration, empty, struct, time, ...Object.values(others)];

/** The files of proto/ as the library of buf reads them: a second opinion on every message. */
export const registry: FileRegistry = createFileRegistry(
  create(FileDescriptorSetSchema, {
    file: inOrder.map((file) => fromBinary(FileDescriptorProtoSchema, Buffer.from(file, "base64"))),
  }),
);

export function messageOf(name: string): DescMessage {
  const found = registry.getMessage(name);
  if (found === undefined) throw new Error(`no message ${name}`);
  return found;
}

export function oracleBytes(type: DescMessage, json: unknown): Uint8Array {
  return toBinary(type, fromJson(type, json as JsonValue, { registry }));
}

export function oracleJson(type: DescMessage, bytes: Uint8Array): unknown {
  return toJson(type, fromBinary(type, bytes), { registry });
}

const text = fc.string({ unit: "binary", maxLength: 12 });
/** A name without a meaning in JavaScript: the library of buf fails on the others. */
const key = text.filter((name) => name !== "__proto__");
const number = fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0));
const jsonValue: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constant(null),
    fc.boolean(),
    number,
    text,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(key, tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value;
const jsonObject = fc.dictionary(key, jsonValue, { maxKeys: 3, noNullPrototype: true });
/** Always with a fraction: the library writes none otherwise, and A2A requires milliseconds. */
const timestamp = fc
  .date({ min: new Date("0001-01-01T00:00:00.001Z"), max: new Date("9999-12-31T23:59:59Z"), noInvalidDate: true })
  .map((date) => (date.getUTCMilliseconds() === 0 ? new Date(date.getTime() + 1) : date))
  .chain((date) => fc.constantFrom("", "001", "000001").map((more) => date.toISOString().replace("Z", `${more}Z`)));

/** ProtoJSON values of a message, each with some of its fields. */
export function valuesOf(type: DescMessage, depth = 4): fc.Arbitrary<Record<string, unknown>> {
  switch (type.typeName) {
    case "google.protobuf.Struct":
      return jsonObject;
    case "google.protobuf.Value":
      return jsonValue as fc.Arbitrary<Record<string, unknown>>;
    case "google.protobuf.Timestamp":
      return timestamp as unknown as fc.Arbitrary<Record<string, unknown>>;
    case "google.protobuf.Duration":
      return fc.integer({ min: 0, max: 99_999 }).map((n) => `${n}.5s`) as unknown as fc.Arbitrary<
        Record<string, unknown>
      >;
    case "google.protobuf.Any":
      return valuesOf(messageOf("google.rpc.ErrorInfo")).map((info) => ({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        ...info,
      }));
    default:
      break;
  }
  const members = type.members.map((member) => {
    const fields = member.kind === "oneof" ? member.fields : [member];
    return fc
      .constantFrom(...fields)
      .chain((field) => (depth === 0 && field.message ? fc.constant({}) : memberOf(field, depth)));
  });
  return members.length === 0
    ? fc.constant({})
    : fc
        .tuple(...members.map((member) => fc.option(member, { nil: {}, freq: 3 })))
        .map((parts) => Object.assign({}, ...parts) as Record<string, unknown>);
}

function memberOf(field: DescField, depth: number): fc.Arbitrary<Record<string, unknown>> {
  return fieldValues(field, depth).map((value) => ({ [field.jsonName]: value }));
}

function fieldValues(field: DescField, depth: number): fc.Arbitrary<unknown> {
  switch (field.fieldKind) {
    case "list":
      return fc.array(single(field, depth), { maxLength: 3 });
    case "map":
      return fc.dictionary(key, single(field, depth), { maxKeys: 3, noNullPrototype: true });
    default:
      return single(field, depth);
  }
}

function single(field: DescField, depth: number): fc.Arbitrary<unknown> {
  if (field.message) return valuesOf(field.message, depth - 1);
  if (field.enum) return fc.constantFrom(...field.enum.values.map(({ name }) => name));
  // The numbers of google.protobuf.FieldDescriptorProto.Type.
  switch (field.scalar as number) {
    case 9:
      return text;
    case 8:
      return fc.boolean();
    case 5:
      return fc.integer();
    case 12:
      return fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes).toString("base64"));
    default:
      throw new Error(`a scalar of type ${field.scalar} in ${field.name}`);
  }
}
