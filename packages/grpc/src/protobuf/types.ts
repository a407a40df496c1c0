/** Tables that drive encoding and decoding. */

/** Types of fields in our messages, with their numbers in descriptor.proto. */
export const fieldTypes = {
  int64: 3,
  int32: 5,
  bool: 8,
  string: 9,
  message: 11,
  bytes: 12,
  enum: 14,
} as const;

export type FieldType = (typeof fieldTypes)[keyof typeof fieldTypes];

const supported: readonly number[] = Object.values(fieldTypes);
/** These are a varint on the wire, the other types are length-delimited. */
const varints: readonly number[] = [fieldTypes.int64, fieldTypes.int32, fieldTypes.bool, fieldTypes.enum];

export interface MessageType {
  /** Full name. */
  readonly name: string;
  readonly byNumber: (Field | undefined)[];
  /** By JSON name. */
  readonly byName: Map<string, Field>;
  /** Required fields whose empty value is not sent: lists, maps, scalars. */
  required: readonly Field[];
  isMapEntry: boolean;
  readonly wellKnown: "Struct" | "Value" | "ListValue" | "Timestamp" | "Duration" | "Any" | undefined;
  /** All messages of the schema, which an Any may hold. */
  readonly siblings: ReadonlyMap<string, MessageType>;
}

export interface Field {
  readonly number: number;
  /** The name in JSON. */
  readonly name: string;
  /** The name in the .proto file. */
  readonly protoName: string;
  readonly type: FieldType;
  readonly wire: 0 | 2;
  /** Number and wire type as written. */
  readonly tag: number;
  readonly repeated: boolean;
  /** Whether all values are written as one field. */
  readonly packed: boolean;
  /** Whether an absent value differs from zero. */
  readonly presence: boolean;
  readonly required: boolean;
  /** The other fields of the same oneof. */
  readonly rivals: readonly string[];
  readonly message: MessageType | undefined;
  readonly enum: EnumType | undefined;
}

export interface EnumType {
  readonly names: ReadonlyMap<number, string>;
  readonly numbers: ReadonlyMap<string, number>;
}

export type JsonObject = Record<string, unknown>;

/** The google.protobuf types with a special form in ProtoJSON. */
const wellKnown = /^google\.protobuf\.(?:Struct|Value|ListValue|Timestamp|Duration|Any)$/;

export function isWellKnown(name: string): boolean {
  return wellKnown.test(name);
}

export function messageType(name: string, siblings: ReadonlyMap<string, MessageType>): MessageType {
  return {
    name,
    byNumber: [],
    byName: new Map(),
    required: [],
    isMapEntry: false,
    wellKnown: isWellKnown(name)
      ? (name.slice("google.protobuf.".length) as NonNullable<MessageType["wellKnown"]>)
      : undefined,
    siblings,
  };
}

export function addFields(type: MessageType, fields: readonly Field[]): void {
  for (const field of fields) {
    type.byNumber[field.number] = field;
    type.byName.set(field.name, field);
  }
  type.required = fields.filter((field) => field.required && (field.repeated || !field.presence));
}

type FieldFacts = Pick<Field, "number" | "name" | "protoName" | "repeated" | "presence" | "required" | "rivals"> & {
  readonly type: number;
  readonly message?: MessageType;
  readonly enum?: EnumType;
};

export function makeField({ type, message, enum: names, ...facts }: FieldFacts): Field {
  if (!supported.includes(type)) throw new TypeError(`${facts.name} has an unsupported type`);
  const wire = varints.includes(type) ? 0 : 2;
  const packed = facts.repeated && wire !== 2;
  return {
    ...facts,
    type: type as FieldType,
    wire,
    packed,
    tag: ((facts.number << 3) | (packed ? 2 : wire)) >>> 0,
    message,
    enum: names,
  };
}

/** The value of an absent scalar field. */
export function zeroOf(field: Field): unknown {
  const { type } = field;
  if (type === fieldTypes.bool) return false;
  if (type === fieldTypes.int32) return 0;
  if (type === fieldTypes.enum) return field.enum?.names.get(0) ?? 0;
  return type === fieldTypes.int64 ? "0" : "";
}

/** A path with the names of the .proto file: `message.parts[0].mediaType` becomes `message.parts[0].media_type`. */
export function protoPath(path: string, type: MessageType): string {
  return renamed(path, type, ({ protoName }) => protoName);
}

/** A path in either spelling with JSON names. */
export function jsonPath(path: string, type: MessageType): string {
  return renamed(path, type, ({ name }) => name);
}

/** Looks names up instead of converting them: unknown names, and names in maps and JSON values, stay. */
function renamed(path: string, type: MessageType, nameOf: (field: Field) => string): string {
  const [name = ""] = path.split(/[.[]/, 1);
  const [index = ""] = /^(?:\[\d+\])*/.exec(path.slice(name.length)) ?? [];
  const rest = path.slice(name.length + index.length);
  const field = type.byName.get(name) ?? type.byNumber.find((each) => each?.protoName === name);
  if (field === undefined) return path;
  const inner = field.message;
  const begun = nameOf(field) + index;
  if (inner === undefined || inner.isMapEntry || !rest.startsWith(".")) return begun + rest;
  return `${begun}.${renamed(rest.slice(1), inner, nameOf)}`;
}
