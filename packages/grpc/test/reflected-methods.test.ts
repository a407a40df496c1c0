import {
  createFileRegistry,
  create,
  fromBinary,
  fromJson,
  toBinary,
  toJson,
  type FileRegistry,
} from "@bufbuild/protobuf";
import {
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  MethodOptions_IdempotencyLevel,
} from "@bufbuild/protobuf/wkt";
import { Metadata } from "@grpc/grpc-js";
import { defineAgent } from "@parley/server";
import type { StandardSchema } from "@parley/a2a/internal/model/index";
import { defineExtension, extensionMethod, type AnyExtension, type ExtensionMethods } from "@parley/a2a/extensions";
import { describe, expect, test } from "vitest";
import { GrpcJs, statusOf } from "./support/grpc-js.ts";
import { serve } from "./support/host.ts";

/**
 * The methods of extensions in reflection (grpc.reflection.v1): a tool such as grpcurl, which has no .proto files, finds and
 * calls them.
 */

const object: StandardSchema<Record<string, unknown>> = {
  "~standard": { version: 1, vendor: "test", validate: (value) => ({ value: value as Record<string, unknown> }) },
};

function extensionOf(name: string, paths: readonly `/${string}/${string}`[], idempotent = false) {
  const methods = paths.map((grpc, at) => [
    `${name}/${at}`,
    extensionMethod({
      request: object,
      response: object,
      idempotent,
      rest: { method: "POST", path: `/${name}:${at}` },
      grpc,
      onCall: (request) => ({ of: name, at, request }),
    }),
  ]);
  const uri = `https://example.com/extensions/${name}/v1`;
  return defineExtension({ uri, kind: "method", methods: Object.fromEntries(methods) as ExtensionMethods });
}

const notes = extensionOf("notes", ["/example.notes.v1.Notes/FindNotes", "/example.notes.v1.Notes/ReadNotes"], true);
const books = extensionOf("books", ["/example.notes.v1.Books/List"]);
const plain = extensionOf("plain", ["/Plain/Ask"]);

function agentOf(name: string, extensions: readonly AnyExtension[]) {
  return defineAgent({
    name,
    description: "Answers",
    version: "1.0.0",
    skills: [],
    extensions,
    onMessage: (turn) => turn.reply(name),
  });
}

const serveAll = () =>
  serve([
    { agent: agentOf("north", [notes, plain]), tenant: "north" },
    { agent: agentOf("south", [notes, books]), tenant: "south" },
  ]);

interface Reflected {
  readonly listServicesResponse?: { readonly service: readonly { readonly name: string }[] };
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto: readonly string[] };
}

/** Asks the reflection service one question. */
async function ask(client: GrpcJs, request: object, version = "v1"): Promise<Reflected> {
  const call = client.bidi(`/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`);
  call.write(request);
  call.end();
  let found: Reflected = {};
  for await (const answer of call) found = answer as Reflected;
  return found;
}

/** The descriptors that a tool gets when it asks for a symbol. */
async function registryOf(client: GrpcJs, fileContainingSymbol: string, version?: string): Promise<FileRegistry> {
  const answer = await ask(client, { fileContainingSymbol }, version);
  const files = (answer.fileDescriptorResponse?.fileDescriptorProto ?? []).map((base64) =>
    fromBinary(FileDescriptorProtoSchema, Buffer.from(base64, "base64")),
  );
  // The reader needs a file after those that it imports.
  return createFileRegistry(create(FileDescriptorSetSchema, { file: files.reverse() }));
}

/** Calls a method with the messages that a registry has, and JSON at both ends, as `grpcurl -d` does. */
function call(client: GrpcJs, registry: FileRegistry, path: string, json: object, uri: string): Promise<unknown> {
  const [, service = "", name] = path.split("/");
  const method = registry.getService(service)?.methods.find((each) => each.name === name);
  if (method === undefined) throw new Error(`reflection has no ${path}`);
  const metadata = new Metadata();
  metadata.set("a2a-extensions", uri);
  return new Promise((resolve, reject) =>
    client.client.makeUnaryRequest(
      path,
      (value: object) => Buffer.from(toBinary(method.input, fromJson(method.input, value as never))),
      (bytes: Buffer) => toJson(method.output, fromBinary(method.output, bytes)),
      json,
      metadata,
      (error, value) => (error === null ? resolve(value) : reject(error)),
    ),
  );
}

describe("reflection of methods of extensions", () => {
  test.each(["v1", "v1alpha"])("lists their services, each once, in %s", async (version) => {
    await using server = await serveAll();
    using client = new GrpcJs(server.address);
    const answer = await ask(client, { listServices: "*" }, version);
    const names = answer.listServicesResponse?.service.map(({ name }) => name) ?? [];
    expect(names.filter((name) => !/^(?:lf|a2a|grpc)\./.test(name))).toEqual([
      "example.notes.v1.Notes",
      "Plain",
      "example.notes.v1.Books",
    ]);
    expect(new Set(names).size).toBe(names.length);
    const registry = await registryOf(client, "example.notes.v1.Notes", version);
    expect(registry.getService("example.notes.v1.Notes")?.methods).toHaveLength(2);
  });

  test.each([
    ["/example.notes.v1.Notes/FindNotes", notes.uri, { of: "notes", at: 0 }],
    ["/example.notes.v1.Notes/ReadNotes", notes.uri, { of: "notes", at: 1 }],
    ["/example.notes.v1.Books/List", books.uri, { of: "books", at: 0 }],
    ["/Plain/Ask", plain.uri, { of: "plain", at: 0 }],
  ])("calls %s using only what it has found", async (path, uri, answer) => {
    await using server = await serveAll();
    using client = new GrpcJs(server.address);
    const [, service = "", method] = path.split("/");
    const registry = await registryOf(client, `${service}.${method}`);
    const found = registry.getService(service)?.methods.find(({ name }) => name === method);
    expect([found?.methodKind, found?.input.typeName, found?.output.typeName]).toEqual([
      "unary",
      "google.protobuf.Struct",
      "google.protobuf.Struct",
    ]);
    expect(found?.idempotency).toBe(
      uri === notes.uri
        ? MethodOptions_IdempotencyLevel.IDEMPOTENT
        : MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN,
    );
    const tenant = uri === books.uri ? "south" : "north";
    const json = { text: "milk", nested: { list: [1, null, true] } };
    expect(await call(client, registry, path, { ...json, tenant }, uri)).toEqual({ ...answer, request: json });
  });

  test("describes a method correctly: an agent without it, and a caller without the extension, are rejected", async () => {
    await using server = await serveAll();
    using client = new GrpcJs(server.address);
    const path = "/example.notes.v1.Books/List";
    const registry = await registryOf(client, "example.notes.v1.Books");
    const refusals = [
      call(client, registry, path, { tenant: "north" }, books.uri),
      call(client, registry, path, { tenant: "south" }, notes.uri),
    ];
    const codes = (await Promise.allSettled(refusals)).map((each) =>
      each.status === "rejected" ? statusOf(each.reason).code : 0,
    );
    expect(codes).toEqual([12, 9]);
  });

  test("knows the health of their services", async () => {
    await using server = await serveAll();
    using client = new GrpcJs(server.address);
    const { value } = await client.unary("/grpc.health.v1.Health/Check", { service: "example.notes.v1.Books" });
    expect(value).toEqual({ status: "SERVING" });
  });

  test("has none of them if no agent has such an extension", async () => {
    await using server = await serve(agentOf("plain", []));
    using client = new GrpcJs(server.address);
    expect(await ask(client, { fileContainingSymbol: "example.notes.v1.Notes" })).toMatchObject({
      errorResponse: { errorCode: 5 },
    });
  });
});
