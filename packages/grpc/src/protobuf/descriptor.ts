import { decode } from "./decode.ts";
import { encode } from "./encode.ts";
import { fromBase64, toBase64 } from "./text.ts";
import { addFields, fieldTypes, makeField, messageType, type FieldType, type MessageType } from "./types.ts";

/** A google.protobuf.FileDescriptorProto: a .proto file, compiled. It is read by the tables at the end of this file. */
export interface FileDescriptor {
  readonly name: string;
  readonly package?: string;
  readonly dependency?: readonly string[];
  readonly messageType?: readonly MessageDescriptor[];
  readonly enumType?: readonly EnumDescriptor[];
  readonly service?: readonly ServiceDescriptor[];
  readonly syntax?: "proto3";
}

export interface MessageDescriptor {
  readonly name: string;
  readonly field?: readonly FieldDescriptor[];
  readonly nestedType?: readonly MessageDescriptor[];
  readonly enumType?: readonly EnumDescriptor[];
  readonly options?: { readonly mapEntry?: boolean };
}

export interface FieldDescriptor {
  readonly name: string;
  readonly jsonName: string;
  readonly number: number;
  readonly label: number;
  readonly type: number;
  readonly typeName?: string;
  readonly oneofIndex?: number;
  readonly proto3Optional?: boolean;
  readonly options?: { readonly fieldBehavior?: readonly number[] };
}

export interface EnumDescriptor {
  readonly name: string;
  readonly value: readonly { readonly name: string; readonly number?: number }[];
}

interface ServiceDescriptor {
  readonly name: string;
  readonly method: readonly {
    readonly name: string;
    readonly inputType: string;
    readonly outputType: string;
    readonly clientStreaming?: boolean;
    readonly serverStreaming?: boolean;
    /** A `MethodOptions.IdempotencyLevel`: 2 is IDEMPOTENT. */
    readonly options?: { readonly idempotencyLevel?: number };
  }[];
}

/** Reads a file of `descriptors.ts`. */
export function readFile(base64: string): FileDescriptor {
  return decode(fileType, fromBase64(base64)) as unknown as FileDescriptor;
}

/** Writes a file as those of `descriptors.ts` are written. */
export function writeFile(file: FileDescriptor): string {
  return toBase64(encode(fileType, file));
}

// The messages of descriptor.proto, as far as they are needed here.

const { string, int32, bool, message } = fieldTypes;
const none: readonly string[] = [];

type Row = readonly [number: number, name: string, type: FieldType, flags?: string, type?: MessageType];

/** In `flags`, `*` means repeated, and `?` means that an absent value differs from zero. */
function describe(rows: readonly Row[]): MessageType {
  const type = messageType("", new Map());
  addFields(
    type,
    rows.map(([number, name, kind, flags = "", of]) =>
      makeField({
        number,
        name,
        protoName: name,
        type: kind,
        repeated: flags.includes("*"),
        presence: flags.includes("?") || of !== undefined,
        required: false,
        rivals: none,
        ...(of !== undefined && { message: of }),
      }),
    ),
  );
  return type;
}

const fieldOptions = describe([[1052, "fieldBehavior", int32, "*"]]);
const fieldType = describe([
  [1, "name", string],
  [3, "number", int32],
  [4, "label", int32],
  [5, "type", int32],
  [6, "typeName", string],
  [8, "options", message, "", fieldOptions],
  [9, "oneofIndex", int32, "?"],
  [10, "jsonName", string],
  [17, "proto3Optional", bool],
]);
const enumType = describe([
  [1, "name", string],
  [
    2,
    "value",
    message,
    "*",
    describe([
      [1, "name", string],
      [2, "number", int32],
    ]),
  ],
]);
const nestedType = describe([
  [1, "name", string],
  [2, "field", message, "*", fieldType],
  [4, "enumType", message, "*", enumType],
  [7, "options", message, "", describe([[7, "mapEntry", bool]])],
]);
const outerType = describe([
  [1, "name", string],
  [2, "field", message, "*", fieldType],
  // Our files nest messages one level deep.
  [3, "nestedType", message, "*", nestedType],
  [4, "enumType", message, "*", enumType],
]);
const serviceType = describe([
  [1, "name", string],
  [
    2,
    "method",
    message,
    "*",
    describe([
      [1, "name", string],
      [2, "inputType", string],
      [3, "outputType", string],
      [4, "options", message, "", describe([[34, "idempotencyLevel", int32]])],
      [5, "clientStreaming", bool],
      [6, "serverStreaming", bool],
    ]),
  ],
]);
const fileType = describe([
  [1, "name", string],
  [2, "package", string],
  [3, "dependency", string, "*"],
  [4, "messageType", message, "*", outerType],
  [5, "enumType", message, "*", enumType],
  [6, "service", message, "*", serviceType],
  [12, "syntax", string],
]);
