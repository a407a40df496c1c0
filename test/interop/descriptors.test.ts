import { fromBinary } from "@bufbuild/protobuf";
import {
  FileDescriptorProtoSchema,
  type DescriptorProto,
  type EnumDescriptorProto,
  type FieldDescriptorProto,
  type FileDescriptorProto,
} from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { a2aV03, a2aV1 } from "../../packages/grpc/src/descriptors.ts";
import { describePeer, printed } from "./peer.ts";

/** Our handwritten .proto files, compared with those that the SDKs include: they must encode the same bytes. */

const files = [
  {
    name: "lf.a2a.v1, compared with the Python SDK 1.3.0",
    environment: "python1",
    program: "descriptors.py",
    module: "a2a.types.a2a_pb2",
    ours: a2aV1,
  },
  {
    name: "a2a.v1, compared with the Python SDK 0.3.26",
    environment: "python03",
    program: "descriptors.py",
    module: "a2a.grpc.a2a_pb2",
    ours: a2aV03,
  },
] as const;

/** A line for each property that peers must agree on, independent of the order in the file. */
function linesOf(file: FileDescriptorProto): string[] {
  const lines: string[] = [];
  const enumeration = (scope: string, { name, value }: EnumDescriptorProto): void => {
    for (const each of value) lines.push(`enum ${scope}.${name}: ${each.name} = ${each.number}`);
  };
  const message = (scope: string, type: DescriptorProto): void => {
    const name = `${scope}.${type.name}`;
    lines.push(`message ${name}${type.options?.mapEntry === true ? ", of a map" : ""}`);
    for (const field of type.field) lines.push(`message ${name}: ${fieldOf(field, type)}`);
    for (const nested of type.nestedType) message(name, nested);
    for (const nested of type.enumType) enumeration(name, nested);
  };
  for (const type of file.messageType) message(file.package, type);
  for (const type of file.enumType) enumeration(file.package, type);
  for (const { name, method } of file.service) {
    for (const each of method) {
      const stream = `${each.clientStreaming ? "stream " : ""}, ${each.serverStreaming ? "stream " : ""}`;
      lines.push(`service ${file.package}.${name}: ${each.name} (${each.inputType}${stream}${each.outputType})`);
    }
  }
  return lines.sort();
}

function fieldOf(field: FieldDescriptorProto, { oneofDecl }: DescriptorProto): string {
  const oneof = field.proto3Optional ? "optional" : (oneofDecl[field.oneofIndex]?.name ?? "");
  const isMember = field.proto3Optional || Object.hasOwn(field, "oneofIndex");
  return [
    `${field.name} = ${field.number}`,
    `type ${field.type} ${field.typeName}`,
    `label ${field.label}`,
    `oneof ${isMember ? oneof : "none"}`,
    `json ${field.jsonName === "" ? jsonNameOf(field.name) : field.jsonName}`,
  ].join(", ");
}

/** The default JSON name, as protoc derives it. */
function jsonNameOf(name: string): string {
  return name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

function parse(base64: string): FileDescriptorProto {
  return fromBinary(FileDescriptorProtoSchema, Buffer.from(base64, "base64"));
}

for (const { ours, module, ...program } of files) {
  describePeer(program, () => {
    it("has the same messages, fields, enums, services and methods", async () => {
      const theirs = parse(await printed(program, [module]));
      expect(linesOf(parse(ours))).toEqual(linesOf(theirs));
    });
  });
}
