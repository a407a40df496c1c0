import { readFile, type EnumDescriptor, type FieldDescriptor, type MessageDescriptor } from "./descriptor.ts";
import {
  addFields,
  fieldTypes,
  isWellKnown,
  makeField,
  messageType,
  type EnumType,
  type Field,
  type MessageType,
} from "./types.ts";

/** The message types and services of a set of .proto files. */
export interface Schema {
  /** Finds a message type by its full name, such as `lf.a2a.v1.Task`. Throws for an unknown name. */
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
  /** Whether the client sends a stream of messages, and whether the server does. */
  readonly clientStream: boolean;
  readonly serverStream: boolean;
}

const repeatedLabel = 3;
const requiredBehavior = 2;

/** Fields to add to those in the files, by the name of their message: the fields of a draft. */
export type Additions = Readonly<Record<string, readonly Omit<FieldDescriptor, "label">[]>>;

/** Reads the message types and services of files, and the types of google.protobuf that they use. */
export function readSchema(files: readonly string[], additions: Additions = {}): Schema {
  const messages = new Map<string, MessageType>();
  const enums = new Map<string, EnumType>();
  const fillers: (() => void)[] = [];

  const messageOf = (name: string): MessageType => {
    const found = messages.get(name);
    if (found !== undefined) return found;
    // Well-known types are read without a table of fields, and Empty has no fields.
    if (!isWellKnown(name) && name !== "google.protobuf.Empty") throw new TypeError(`No message ${name} in the files`);
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
      protoName: field.name,
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
