/** Tables that bytes are read and written by. */

/** Types of fields, with their numbers in descriptor.proto; only those that our messages have. */
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

/** How values of a type stand on the wire: 0 as a varint, 2 with their length before them. */
export function wireOf(type: FieldType): 0 | 2 | undefined {
  switch (type) {
    case fieldTypes.int64:
    case fieldTypes.int32:
    case fieldTypes.bool:
    case fieldTypes.enum:
      return 0;
    case fieldTypes.string:
    case fieldTypes.message:
    case fieldTypes.bytes:
      return 2;
    default:
      return undefined;
  }
}

export interface MessageType {
  /** Full name. */
  readonly name: string;
  readonly byNumber: (Field | undefined)[];
  /** By JSON name. */
  readonly byName: Map<string, Field>;
  /** Those that the .proto calls required and that cannot be told from absent on the wire: lists, maps, scalars. */
  required: readonly Field[];
  isMapEntry: boolean;
  readonly wellKnown: "Struct" | "Value" | "ListValue" | "Timestamp" | "Duration" | "Any" | undefined;
  /** All of its schema: what an Any may hold. */
  readonly siblings: ReadonlyMap<string, MessageType>;
}

export interface Field {
  readonly number: number;
  /** In JSON. */
  readonly name: string;
  readonly type: FieldType;
  readonly wire: 0 | 2;
  /** As it is written. */
  readonly tag: number;
  readonly repeated: boolean;
  /** Written as one field with all the values. */
  readonly packed: boolean;
  /** Whether absent and zero are two things. */
  readonly presence: boolean;
  readonly required: boolean;
  /** The other members of its oneof. */
  readonly rivals: readonly string[];
  readonly message: MessageType | undefined;
  readonly enum: EnumType | undefined;
}

export interface EnumType {
  readonly names: ReadonlyMap<number, string>;
  readonly numbers: ReadonlyMap<string, number>;
}

export type JsonObject = Record<string, unknown>;
