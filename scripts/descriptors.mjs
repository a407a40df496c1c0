// npm run descriptors: writes packages/grpc/src/descriptors.ts from the .proto files beside it.

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  file_google_protobuf_any,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
} from "@bufbuild/protobuf/wkt";
import { root } from "./ready.mjs";

/** Our files: path below `proto/`, and the name of the constant. @type {Readonly<Record<string, string>>} */
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

/** Files of google.protobuf, in the version of @bufbuild/protobuf. */
const imported = [
  file_google_protobuf_descriptor,
  file_google_protobuf_any,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
];

/** The text of the generated file. @returns {string} */
export function generate() {
  const buf = join(root, "node_modules/@bufbuild/buf/bin/buf");
  const options = ["--as-file-descriptor-set", "--exclude-source-info", "--output=-"];
  const output = execFileSync(process.execPath, [buf, "build", join(root, "packages/grpc/proto"), ...options]);
  const { file: built } = fromBinary(FileDescriptorSetSchema, output);
  const ours = Object.entries(files).map(([path, name]) => ({ name, file: built.find((file) => file.name === path) }));
  const theirs = imported.map(({ proto }) => ({ name: basename(proto.name, ".proto"), file: proto }));
  return [
    "// Written by `npm run descriptors` from the files of proto/: each a google.protobuf.FileDescriptorProto, base64.\n",
    ...[...ours, ...theirs].map(({ name, file }) => {
      if (file === undefined) throw new Error(`proto/ has no file for ${name}`);
      const bytes = Buffer.from(toBinary(FileDescriptorProtoSchema, file)).toString("base64");
      return `/** ${file.name} */\nexport const ${name} =\n  "${bytes}";\n`;
    }),
  ].join("\n");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  writeFileSync(join(root, "packages/grpc/src/descriptors.ts"), generate());
}
