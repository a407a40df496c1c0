import { decode } from "./decode.ts";
import { encode } from "./encode.ts";
import { fromBase64, toBase64 } from "./text.ts";
import {
  addFields,
  type EnumType,
  type Field,
  type FieldType,
  fieldTypes,
  makeField,
  messageType,
  type MessageType,
  wellKnownOf,
} from "./types.ts";

/** A google.protobuf.FileDescriptorProto (a compiled .proto file), with only the used fields. */
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

interface FieldDescriptor {
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

interface EnumDescriptor {
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

/** Writes a file in the form of `descriptors.ts`. */
export function writeFile(file: FileDescriptor): string {
  return toBase64(encode(fileType, file));
}

// The messages of descriptor.proto, with only the used fields.

const { string, int32, bool, message } = fieldTypes;
const none: readonly string[] = [];

type Row = readonly [number: number, name: string, type: FieldType, flags?: string, type?: MessageType];

/** In `flags`, `*` means repeated, and `?` that an absent value differs from zero. */
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

/** The message types and services of a set of .proto files. */
export interface Schema {
  /** Finds a message type by its full name, such as `lf.a2a.v1.Task`. Throws for an unknown name. */
  message(name: string): MessageType;
  readonly services: readonly ServiceType[];
}

interface ServiceType {
  /** Full name. */
  readonly name: string;
  readonly methods: readonly MethodType[];
}

export interface MethodType {
  readonly name: string;
  readonly input: MessageType;
  readonly output: MessageType;
  readonly serverStream: boolean;
}

const repeatedLabel = 3;
const requiredBehavior = 2;

/** Fields of a draft to add to the messages of the files, by message name. */
export type Additions = Readonly<Record<string, readonly Omit<FieldDescriptor, "label">[]>>;

/** Reads the message types and services of files, with the google.protobuf types that they use. */
export function readSchema(files: readonly string[], additions: Additions = {}): Schema {
  const messages = new Map<string, MessageType>();
  const enums = new Map<string, EnumType>();
  const fillers: (() => void)[] = [];

  const messageOf = (name: string): MessageType => {
    const found = messages.get(name);
    if (found !== undefined) return found;
    // Well-known types need no table of fields, and Empty has no fields.
    if (wellKnownOf(name) === undefined && name !== "google.protobuf.Empty")
      throw new TypeError(`No message ${name} in the files`);
    return declare(name);
  };
  const declare = (name: string): MessageType => {
    const type = messageType(name, messages);
    messages.set(name, type);
    return type;
  };
  const fieldOf = (field: FieldDescriptor, all: readonly FieldDescriptor[]): Field => {
    const target = field.typeName?.slice(1) ?? "";
    const message = field.type === fieldTypes.message ? messageOf(target) : undefined;
    return makeField({
      number: field.number,
      name: field.jsonName,
      protoName: field.name,
      type: field.type,
      repeated: field.label === repeatedLabel,
      presence: field.oneofIndex !== undefined || message !== undefined,
      required: field.options?.fieldBehavior?.includes(requiredBehavior) ?? false,
      rivals: rivalsOf(field, all),
      message,
      enum: enums.get(target),
    });
  };
  const declareEnums = (prefix: string, descriptors: readonly EnumDescriptor[] = []): void => {
    for (const each of descriptors) enums.set(prefix + each.name, enumOf(each));
  };
  const declareMessage = (prefix: string, descriptor: MessageDescriptor): void => {
    const name = prefix + descriptor.name;
    const type = declare(name);
    declareEnums(`${name}.`, descriptor.enumType);
    for (const each of descriptor.nestedType ?? []) declareMessage(`${name}.`, each);
    const fields = [...(descriptor.field ?? []), ...(additions[name] ?? []).map((field) => ({ ...field, label: 1 }))];
    fillers.push(() =>
      addFields(
        type,
        fields.map((field) => fieldOf(field, fields)),
        descriptor.options?.mapEntry,
      ),
    );
  };

  const read = files.map(readFile);
  for (const file of read) {
    const prefix = file.package === undefined ? "" : `${file.package}.`;
    declareEnums(prefix, file.enumType);
    for (const each of file.messageType ?? []) declareMessage(prefix, each);
  }
  for (const fill of fillers) fill();
  return { message: messageOf, services: read.flatMap((file) => servicesOf(file, messageOf)) };
}

/** JSON names of the other fields in the same oneof. An optional proto3 field is the only one in its oneof. */
function rivalsOf(field: FieldDescriptor, all: readonly FieldDescriptor[]): readonly string[] {
  const { oneofIndex } = field;
  if (oneofIndex === undefined || field.proto3Optional === true) return [];
  const rivals = all.filter((other) => other !== field && other.oneofIndex === oneofIndex);
  return rivals.flatMap(({ jsonName, proto3Optional }) => (proto3Optional === true ? [] : [jsonName]));
}

function enumOf({ value }: EnumDescriptor): EnumType {
  const entries = value.map(({ name, number = 0 }) => [name, number] as const);
  return { numbers: new Map(entries), names: new Map(entries.map(([name, number]) => [number, name])) };
}

function servicesOf(file: FileDescriptor, messageOf: (name: string) => MessageType): readonly ServiceType[] {
  return (file.service ?? []).map(({ name, method }) => ({
    name: `${file.package}.${name}`,
    methods: method.map((each) => ({
      name: each.name,
      input: messageOf(each.inputType.slice(1)),
      output: messageOf(each.outputType.slice(1)),
      serverStream: each.serverStreaming ?? false,
    })),
  }));
}
