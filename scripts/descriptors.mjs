// npm run descriptors: writes packages/grpc/src/descriptors.ts from the .proto files beside it.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  file_google_protobuf_any,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
} from "@bufbuild/protobuf/wkt";
import protobuf from "protobufjs";
import { root } from "./ready.mjs";

/** Our files: path below `proto/`, and the name of the constant that is written. @type {Readonly<Record<string, string>>} */
const files = {
  "lf/a2a/v1/a2a.proto": "a2aV1",
  "a2a/v1/a2a.proto": "a2aV03",
  "google/rpc/status.proto": "status",
  "google/rpc/error_details.proto": "errorDetails",
  "grpc/health/v1/health.proto": "health",
  "grpc/reflection/v1/reflection.proto": "reflectionV1",
  "grpc/reflection/v1alpha/reflection.proto": "reflectionV1alpha",
  "google/api/field_behavior.proto": "fieldBehavior",
};

/** Files of google.protobuf, which come with @bufbuild/protobuf. */
const imported = {
  descriptor: file_google_protobuf_descriptor,
  any: file_google_protobuf_any,
  duration: file_google_protobuf_duration,
  empty: file_google_protobuf_empty,
  struct: file_google_protobuf_struct,
  timestamp: file_google_protobuf_timestamp,
};

/** Numbers of google.protobuf.FieldDescriptorProto.Type. Any other name is that of a message or an enum. */
const scalars = { double: 1, float: 2, int64: 3, uint64: 4, int32: 5, bool: 8, string: 9, bytes: 12, uint32: 13 };
const messageType = 11;
const enumType = 14;
/** Numbers of google.protobuf.FieldDescriptorProto.Label. */
const label = { optional: 1, repeated: 3 };
/** google.api.field_behavior = REQUIRED, as an option of a field on the wire. */
const required = { no: 1052, wireType: 0, data: Uint8Array.of(2) };

/**
 * A file as `protobufjs` parses it: plain data, with names as they are written.
 * @typedef {{ type: string, id: number, rule?: string, keyType?: string, extend?: string, options?: Record<string, unknown> }} ParsedField
 * @typedef {{ requestType: string, responseType: string, requestStream?: boolean, responseStream?: boolean }} ParsedMethod
 * @typedef {{ fields?: Record<string, ParsedField>, oneofs?: Record<string, { oneof: string[] }>, values?: Record<string, number>,
 *   methods?: Record<string, ParsedMethod>, nested?: Record<string, Parsed> } & Partial<ParsedField>} Parsed
 */

/** @param {string} path */
function describe(path) {
  const source = readFileSync(join(root, "packages/grpc/proto", path), "utf8");
  const parsed = protobuf.parse(source, new protobuf.Root(), { keepCase: true });
  const name = parsed.package ?? "";
  const space = /** @type {Record<string, Parsed>} */ (parsed.root.lookup(name)?.toJSON()["nested"]);
  const entries = Object.entries(space);
  const context = contextOf(name, space);
  return create(FileDescriptorProtoSchema, {
    name: path,
    package: name,
    dependency: parsed.imports ?? [],
    messageType: entries.filter(([, { fields }]) => fields).map(([each, value]) => messageOf(each, value, context)),
    enumType: entries.filter(([, { values }]) => values).map(([each, value]) => enumOf(each, value)),
    service: entries.filter(([, { methods }]) => methods).map(([each, value]) => serviceOf(each, value, context)),
    extension: entries.filter(([, { extend }]) => extend).map(([each, value]) => extensionOf(each, value, context)),
    syntax: "proto3",
  });
}

/** For resolving names: the scope that they are used in, and all known types. @typedef {{ scope: string, types: ReadonlyMap<string, "message" | "enum"> }} Context */

/** @param {string} prefix @param {Record<string, Parsed>} space @returns {Context} */
function contextOf(prefix, space) {
  /** @type {Map<string, "message" | "enum">} */
  const types = new Map();
  /** @param {string} outer @param {Record<string, Parsed>} names */
  const walk = (outer, names) => {
    for (const [name, { fields, values, nested }] of Object.entries(names)) {
      if (fields) types.set(`${outer}.${name}`, "message");
      else if (values) types.set(`${outer}.${name}`, "enum");
      if (nested) walk(`${outer}.${name}`, nested);
    }
  };
  walk(prefix, space);
  return { scope: prefix, types };
}

/** @param {string} name @param {Context} context */
function resolve(name, { scope, types }) {
  for (let outer = scope; outer !== ""; outer = outer.slice(0, Math.max(0, outer.lastIndexOf(".")))) {
    const kind = types.get(`${outer}.${name}`);
    if (kind !== undefined) return { typeName: `.${outer}.${name}`, type: kind === "enum" ? enumType : messageType };
  }
  // Imported types are written with their full name.
  return { typeName: `.${name}`, type: messageType };
}

/**
 * @param {string} name @param {Parsed} parsed @param {Context} context
 * @returns {import("@bufbuild/protobuf").MessageInitShape<typeof import("@bufbuild/protobuf/wkt").DescriptorProtoSchema>}
 */
function messageOf(name, { fields = {}, oneofs = {}, nested = {} }, context) {
  const inside = { ...context, scope: `${context.scope}.${name}` };
  const groups = Object.entries(oneofs);
  const entries = Object.entries(nested);
  const maps = Object.entries(fields).filter(([, { keyType }]) => keyType !== undefined);
  return {
    name,
    field: Object.entries(fields).map(([each, field]) => {
      const group = groups.findIndex(([, { oneof }]) => oneof.includes(each));
      const target = field.keyType === undefined ? undefined : `${inside.scope}.${entryName(each)}`;
      return {
        ...fieldOf(each, target === undefined ? field : { ...field, type: target, rule: "repeated" }, inside),
        ...(group >= 0 && { oneofIndex: group }),
        ...(field.options?.["proto3_optional"] === true && { proto3Optional: true }),
      };
    }),
    nestedType: [
      ...maps.map(([each, { keyType = "string", type }]) => ({
        name: entryName(each),
        field: [fieldOf("key", { type: keyType, id: 1 }, inside), fieldOf("value", { type, id: 2 }, inside)],
        options: { mapEntry: true },
      })),
      ...entries.filter(([, value]) => value.fields).map(([each, value]) => messageOf(each, value, inside)),
    ],
    enumType: entries.filter(([, { values }]) => values).map(([each, value]) => enumOf(each, value)),
    oneofDecl: groups.map(([each]) => ({ name: each })),
  };
}

/** @param {string} name @param {ParsedField} field @param {Context} context */
function fieldOf(name, { type, id, rule, options = {} }, context) {
  const scalar = Object.hasOwn(scalars, type)
    ? { type: scalars[/** @type {"string"} */ (type)] }
    : resolve(type, context);
  const needed = options["(google.api.field_behavior)"] === "REQUIRED";
  const settings = create(FieldOptionsSchema, {
    ...(options["deprecated"] === true && { deprecated: true }),
    ...(typeof options["packed"] === "boolean" && { packed: options["packed"] }),
  });
  if (needed) settings.$unknown = [required];
  const hasSettings = needed || Object.keys(options).some((each) => each === "deprecated" || each === "packed");
  return {
    name,
    number: id,
    label: rule === "repeated" ? label.repeated : label.optional,
    ...scalar,
    jsonName: /** @type {string} */ (options["json_name"] ?? camelCase(name)),
    ...(hasSettings && { options: settings }),
  };
}

/** @param {string} name @param {Parsed} parsed @param {Context} context */
function extensionOf(name, { type = "", id = 0, rule = "", extend = "", options = {} }, context) {
  return { ...fieldOf(name, { type, id, rule, options }, context), extendee: `.${extend}` };
}

/** @param {string} name @param {Parsed} parsed */
function enumOf(name, { values = {} }) {
  return { name, value: Object.entries(values).map(([each, number]) => ({ name: each, number })) };
}

/** @param {string} name @param {Parsed} parsed @param {Context} context */
function serviceOf(name, { methods = {} }, context) {
  return {
    name,
    method: Object.entries(methods).map(([each, { requestType, responseType, requestStream, responseStream }]) => ({
      name: each,
      inputType: resolve(requestType, context).typeName,
      outputType: resolve(responseType, context).typeName,
      ...(requestStream === true && { clientStreaming: true }),
      ...(responseStream === true && { serverStreaming: true }),
    })),
  };
}

/** @param {string} name */
function camelCase(name) {
  return name.replaceAll(/_(.)/g, (_, letter) => String(letter).toUpperCase());
}

/** @param {string} name */
function entryName(name) {
  const camel = camelCase(name);
  return `${camel.charAt(0).toUpperCase()}${camel.slice(1)}Entry`;
}

/** The text of the generated file. @returns {string} */
export function generate() {
  const described = [
    ...Object.entries(files).map(([path, name]) => /** @type {const} */ ([name, describe(path)])),
    ...Object.entries(imported).map(([name, { proto }]) => /** @type {const} */ ([name, proto])),
  ];
  return [
    "// Written by `npm run descriptors` from the files of proto/: each a google.protobuf.FileDescriptorProto, base64.\n",
    ...described.map(([name, file]) => {
      const bytes = Buffer.from(toBinary(FileDescriptorProtoSchema, file)).toString("base64");
      return `/** ${file.name} */\nexport const ${name} =\n  "${bytes}";\n`;
    }),
  ].join("\n");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  writeFileSync(join(root, "packages/grpc/src/descriptors.ts"), generate());
}
