/** Tables that drive encoding and decoding. */

/** The supported field types, with their numbers in descriptor.proto. */
export const fieldTypes = { int64: 3, int32: 5, bool: 8, string: 9, message: 11, bytes: 12, enum: 14 } as const;

export type FieldType = (typeof fieldTypes)[keyof typeof fieldTypes];

type ScalarType = Exclude<FieldType, typeof fieldTypes.message | typeof fieldTypes.enum>;

const { int64, int32, bool, string, bytes } = fieldTypes;
const scalars: readonly ScalarType[] = [int64, int32, bool, string, bytes];
/** Types that are a varint on the wire. The other types are length-delimited. */
const varints: readonly number[] = [int64, int32, bool, fieldTypes.enum];

/** The google.protobuf types with a special form in ProtoJSON. */
const wellKnown = ["Struct", "Value", "ListValue", "Timestamp", "Duration", "Any"] as const;

export interface MessageType {
  readonly name: string;
  readonly byNumber: (Field | undefined)[];
  /** By JSON name. */
  readonly byName: Map<string, Field>;
  /** Required fields that are absent on the wire if empty: lists, maps, scalars. */
  required: readonly Field[];
  /** The value field, if this is the entry type of a map. */
  mapValue: Field | undefined;
  readonly wellKnown: (typeof wellKnown)[number] | undefined;
  /** All messages of the schema, which an Any may contain. */
  readonly siblings: ReadonlyMap<string, MessageType>;
}

interface FieldShape {
  readonly number: number;
  /** The name in JSON. */
  readonly name: string;
  readonly protoName: string;
  readonly wire: 0 | 2;
  /** The encoded tag: field number and wire type. */
  readonly tag: number;
  readonly repeated: boolean;
  /** Whether all values are written as one field. */
  readonly packed: boolean;
  /** Whether an absent value differs from zero. */
  readonly presence: boolean;
  readonly required: boolean;
  /** The other fields of the same oneof. */
  readonly rivals: readonly string[];
}

/** The type of a field, with its message type or enum if it has one. */
type FieldKind =
  | { readonly type: typeof fieldTypes.message; readonly message: MessageType; readonly enum: undefined }
  | { readonly type: typeof fieldTypes.enum; readonly message: undefined; readonly enum: EnumType }
  | { readonly type: ScalarType; readonly message: undefined; readonly enum: undefined };

export type Field = FieldShape & FieldKind;

export interface EnumType {
  readonly names: ReadonlyMap<number, string>;
  readonly numbers: ReadonlyMap<string, number>;
}

export type JsonObject = Record<string, unknown>;

export function wellKnownOf(name: string): MessageType["wellKnown"] {
  return wellKnown.find((each) => name === `google.protobuf.${each}`);
}

export function messageType(name: string, siblings: ReadonlyMap<string, MessageType>): MessageType {
  return {
    name,
    byNumber: [],
    byName: new Map(),
    required: [],
    mapValue: undefined,
    wellKnown: wellKnownOf(name),
    siblings,
  };
}

export function addFields(type: MessageType, fields: readonly Field[], isMapEntry = false): void {
  for (const field of fields) {
    type.byNumber[field.number] = field;
    type.byName.set(field.name, field);
  }
  if (isMapEntry) type.mapValue = type.byNumber[2];
  type.required = fields.filter((field) => field.required && (field.repeated || !field.presence));
}

type FieldFacts = Omit<FieldShape, "wire" | "packed" | "tag"> & {
  readonly type: number;
  readonly message?: MessageType | undefined;
  readonly enum?: EnumType | undefined;
};

export function makeField({ type, message, enum: names, ...facts }: FieldFacts): Field {
  const kind = kindOf(type, message, names);
  if (kind === undefined) throw new TypeError(`${facts.name} has an unsupported type`);
  const wire = varints.includes(type) ? 0 : 2;
  const packed = facts.repeated && wire !== 2;
  return { ...facts, ...kind, wire, packed, tag: ((facts.number << 3) | (packed ? 2 : wire)) >>> 0 };
}

function kindOf(type: number, message?: MessageType, names?: EnumType): FieldKind | undefined {
  if (type === fieldTypes.message) return message && { type, message, enum: undefined };
  if (type === fieldTypes.enum) return names && { type, message: undefined, enum: names };
  const scalar = scalars.find((each) => each === type);
  return scalar && { type: scalar, message: undefined, enum: undefined };
}

/** The value of an absent scalar field. */
export function zeroOf(field: Field): unknown {
  switch (field.type) {
    case fieldTypes.bool:
      return false;
    case fieldTypes.int32:
      return 0;
    case fieldTypes.int64:
      return "0";
    case fieldTypes.enum:
      return field.enum.names.get(0) ?? 0;
    default:
      return "";
  }
}

/** Converts a path to the names of the .proto file: `message.parts[0].mediaType` becomes `message.parts[0].media_type`. */
export function protoPath(path: string, type: MessageType): string {
  return renamed(path, type, ({ protoName }) => protoName);
}

/** Converts a path with .proto or JSON names to JSON names. */
export function jsonPath(path: string, type: MessageType): string {
  return renamed(path, type, ({ name }) => name);
}

/** Renames the fields in a path. Looks names up in the schema, so unknown names and keys of maps and JSON values stay unchanged. */
function renamed(path: string, type: MessageType, nameOf: (field: Field) => string): string {
  const [name = ""] = path.split(/[.[]/, 1);
  const [index = ""] = /^(?:\[\d+\])*/.exec(path.slice(name.length)) ?? [];
  const rest = path.slice(name.length + index.length);
  const field = type.byName.get(name) ?? type.byNumber.find((each) => each?.protoName === name);
  if (field === undefined) return path;
  const inner = field.message;
  const begun = nameOf(field) + index;
  if (inner === undefined || inner.mapValue !== undefined || !rest.startsWith(".")) return begun + rest;
  return `${begun}.${renamed(rest.slice(1), inner, nameOf)}`;
}
