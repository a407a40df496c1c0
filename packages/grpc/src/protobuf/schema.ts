import { decode } from "./decode.ts";
import { fromBase64 } from "./base64.ts";
import { fieldTypes, wireOf, type EnumType, type Field, type FieldType, type MessageType } from "./types.ts";

/** What a set of .proto files says: tables that bytes are read and written by. */
export interface Schema {
  /** By full name, such as `lf.a2a.v1.Task`; throws for one that is not there. */
  message(name: string): MessageType;
  readonly services: readonly ServiceType[];
}

export interface ServiceType {
  /** Full name. */
  readonly name: string;
  readonly methods: readonly MethodType[];
}

export interface MethodType {
  readonly name: string;
  readonly input: MessageType;
  readonly output: MessageType;
  /** Whether requests, and answers, come as streams. */
  readonly clientStream: boolean;
  readonly serverStream: boolean;
}

// A google.protobuf.FileDescriptorProto as our own codec reads it, by the tables at the end of this file.

export interface FileDescriptor {
  readonly name: string;
  readonly package?: string;
  readonly dependency?: readonly string[];
  readonly messageType?: readonly MessageDescriptor[];
  readonly enumType?: readonly EnumDescriptor[];
  readonly service?: readonly ServiceDescriptor[];
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

export interface EnumDescriptor {
  readonly name: string;
  readonly value: readonly { readonly name: string; readonly number?: number }[];
}

export interface ServiceDescriptor {
  readonly name: string;
  readonly method: readonly {
    readonly name: string;
    readonly inputType: string;
    readonly outputType: string;
    readonly clientStreaming?: boolean;
    readonly serverStreaming?: boolean;
  }[];
}

const repeatedLabel = 3;
const requiredBehavior = 2;

/** The types of google.protobuf whose JSON is not that of their fields. */
const wellKnown: ReadonlySet<string> = new Set(
  ["Struct", "Value", "ListValue", "Timestamp", "Duration", "Any"].map((name) => `google.protobuf.${name}`),
);

/** A file out of `descriptors.ts`. */
export function readFile(base64: string): FileDescriptor {
  return decode(fileType, fromBase64(base64)) as unknown as FileDescriptor;
}

/** Fields that are not in the files, by the name of their message: those of a draft. */
export type Additions = Readonly<Record<string, readonly Omit<FieldDescriptor, "label">[]>>;

/** Tables of all that stands in the files, and in the types of google.protobuf that they use. */
export function readSchema(files: readonly string[], additions: Additions = {}): Schema {
  const messages = new Map<string, MessageType>();
  const enums = new Map<string, EnumType>();
  const fillers: (() => void)[] = [];

  const messageOf = (name: string): MessageType => {
    const found = messages.get(name);
    if (found !== undefined) return found;
    // What has a JSON of its own is read without its fields, and an Empty has none.
    if (!wellKnown.has(name) && name !== "google.protobuf.Empty")
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
    const rivals =
      field.oneofIndex === undefined || field.proto3Optional === true
        ? []
        : all.filter(
            (other) => other !== field && other.oneofIndex === field.oneofIndex && other.proto3Optional !== true,
          );
    return makeField({
      number: field.number,
      name: field.jsonName,
      type: field.type,
      repeated: field.label === repeatedLabel,
      presence: field.oneofIndex !== undefined || message !== undefined,
      required: field.options?.fieldBehavior?.includes(requiredBehavior) ?? false,
      rivals: rivals.map(({ jsonName }) => jsonName),
      ...(message !== undefined && { message }),
      ...(field.type === fieldTypes.enum && { enum: enums.get(target) as EnumType }),
    });
  };
  const declareEnum = (prefix: string, { name, value }: EnumDescriptor): void => {
    const entries = value.map((each) => [each.name, each.number ?? 0] as const);
    enums.set(prefix + name, {
      numbers: new Map(entries),
      names: new Map(entries.map(([key, number]) => [number, key])),
    });
  };
  const declareMessage = (prefix: string, descriptor: MessageDescriptor): void => {
    const name = prefix + descriptor.name;
    const type = declare(name);
    type.isMapEntry = descriptor.options?.mapEntry ?? false;
    for (const each of descriptor.enumType ?? []) declareEnum(`${name}.`, each);
    for (const each of descriptor.nestedType ?? []) declareMessage(`${name}.`, each);
    const fields = [...(descriptor.field ?? []), ...(additions[name] ?? []).map((field) => ({ ...field, label: 1 }))];
    fillers.push(() =>
      addFields(
        type,
        fields.map((field) => fieldOf(field, fields)),
      ),
    );
  };

  const read = files.map(readFile);
  for (const file of read) {
    const prefix = file.package === undefined ? "" : `${file.package}.`;
    for (const each of file.enumType ?? []) declareEnum(prefix, each);
    for (const each of file.messageType ?? []) declareMessage(prefix, each);
  }
  for (const fill of fillers) fill();

  const services = read.flatMap((file) =>
    (file.service ?? []).map(({ name, method }) => ({
      name: `${file.package}.${name}`,
      methods: method.map((each) => ({
        name: each.name,
        input: messageOf(each.inputType.slice(1)),
        output: messageOf(each.outputType.slice(1)),
        clientStream: each.clientStreaming ?? false,
        serverStream: each.serverStreaming ?? false,
      })),
    })),
  );
  return { message: messageOf, services };
}

function messageType(name: string, siblings: ReadonlyMap<string, MessageType>): MessageType {
  return {
    name,
    byNumber: [],
    byName: new Map(),
    required: [],
    isMapEntry: false,
    wellKnown: wellKnown.has(name)
      ? (name.slice("google.protobuf.".length) as NonNullable<MessageType["wellKnown"]>)
      : undefined,
    siblings,
  };
}

function addFields(type: MessageType, fields: readonly Field[]): void {
  for (const field of fields) {
    type.byNumber[field.number] = field;
    type.byName.set(field.name, field);
  }
  type.required = fields.filter((field) => field.required && (field.repeated || !field.presence));
}

type FieldFacts = Pick<Field, "number" | "name" | "repeated" | "presence" | "required" | "rivals"> & {
  readonly type: number;
  readonly message?: MessageType;
  readonly enum?: EnumType;
};

function makeField({ type, message, enum: names, ...facts }: FieldFacts): Field {
  const known = type as FieldType;
  const wire = wireOf(known);
  if (wire === undefined) throw new TypeError(`${facts.name} is of a type that nothing here uses`);
  const packed = facts.repeated && wire !== 2;
  return {
    ...facts,
    type: known,
    wire,
    packed,
    tag: ((facts.number << 3) | (packed ? 2 : wire)) >>> 0,
    message,
    enum: names,
  };
}

// What of descriptor.proto is needed to read the rest.

const { string, int32, bool, message } = fieldTypes;
const none: readonly string[] = [];

type Row = readonly [number: number, name: string, type: FieldType, flags?: string, type?: MessageType];

/** In `flags`, `*` is repeated and `?` tells absent from zero. */
function describe(rows: readonly Row[]): MessageType {
  const type = messageType("", new Map());
  addFields(
    type,
    rows.map(([number, name, kind, flags = "", of]) =>
      makeField({
        number,
        name,
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
  // As deep as our files go: messages within messages, none within those.
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
]);
