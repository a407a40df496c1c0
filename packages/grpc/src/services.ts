import { operations, type CoreName, type MethodRoute, type OperationName } from "@parley/a2a/internal/protocol/index";
import { a2aV03, a2aV1 } from "./descriptors.ts";
import { type Additions, readSchema, type Schema, writeFile } from "./protobuf/descriptor.ts";
import { fieldTypes, messageType, type MessageType } from "./protobuf/types.ts";

/** The service of A2A, in version 1.0 or 0.3. */
export interface A2AServiceType {
  /** Full name: `lf.a2a.v1.A2AService`. */
  readonly name: string;
  /** The methods by path, such as `/lf.a2a.v1.A2AService/GetTask`. */
  readonly methods: ReadonlyMap<string, A2AMethod>;
  /** The methods by operation. A version may lack some. */
  readonly operations: ReadonlyMap<OperationName, A2AMethod>;
}

export interface A2AMethod {
  readonly path: string;
  readonly operation: OperationName;
  /** Whether the answer is a stream. */
  readonly stream: boolean;
  readonly input: MessageType;
  readonly output: MessageType;
}

/**
 * Fields that the 1.1 draft adds to messages of 1.0. They are in no .proto file, and the codec of 1.0 ignores them, so
 * only a client that asks for 1.1 sees them.
 */
const draft: Additions = {
  "lf.a2a.v1.Task": [{ name: "generation", jsonName: "generation", number: 7, type: fieldTypes.int64 }],
  "lf.a2a.v1.TaskStatusUpdateEvent": [
    { name: "generation", jsonName: "generation", number: 5, type: fieldTypes.int64 },
  ],
  "lf.a2a.v1.TaskArtifactUpdateEvent": [
    { name: "generation", jsonName: "generation", number: 7, type: fieldTypes.int64 },
  ],
  "lf.a2a.v1.GetTaskRequest": [optional("current_generation", "currentGeneration", 4)],
  "lf.a2a.v1.SendMessageConfiguration": [optional("if_generation_match", "ifGenerationMatch", 5)],
};

function optional(name: string, jsonName: string, number: number): Additions[string][number] {
  return { name, jsonName, number, type: fieldTypes.int64, oneofIndex: number, proto3Optional: true };
}

/** The service of A2A 1.0 (§10) and of the 1.1 draft. */
export function serviceV1(): A2AServiceType {
  return serviceOf(readSchema([a2aV1], draft));
}

export function serviceV03(): A2AServiceType {
  return serviceOf(readSchema([a2aV03]));
}

const struct: MessageType = /* @__PURE__ */ messageType("google.protobuf.Struct", new Map());

/** A method of an extension: unary, with JSON objects as request and response. */
export function methodOf({ name, grpc }: MethodRoute): A2AMethod {
  return { path: grpc, operation: name, stream: false, input: struct, output: struct };
}

/** The service in a path: `example.notes.v1.Notes` of `/example.notes.v1.Notes/FindNotes`. */
function serviceNameOf(path: string): string {
  return path.slice(1, path.lastIndexOf("/"));
}

/**
 * The services of extension methods by full name, each with its .proto file. It does not contain the extension's
 * schemas: the messages are JSON objects.
 */
export function extensionServices(methods: readonly MethodRoute[]): ReadonlyMap<string, string> {
  const names = [...new Set(methods.map(({ grpc }) => serviceNameOf(grpc)))];
  return new Map(
    names.map((name) => [
      name,
      serviceFile(
        name,
        methods.filter(({ grpc }) => serviceNameOf(grpc) === name),
      ),
    ]),
  );
}

/** A file with one service, under the path of the service, because two extensions may share a package. */
function serviceFile(name: string, methods: readonly MethodRoute[]): string {
  const dot = name.lastIndexOf(".");
  const service = {
    name: name.slice(dot + 1),
    method: methods.map(({ grpc, idempotent }) => ({
      name: grpc.slice(grpc.lastIndexOf("/") + 1),
      inputType: `.${struct.name}`,
      outputType: `.${struct.name}`,
      ...(idempotent && { options: { idempotencyLevel: 2 } }),
    })),
  };
  return writeFile({
    name: `${name.replaceAll(".", "/")}.proto`,
    ...(dot > 0 && { package: name.slice(0, dot) }),
    dependency: ["google/protobuf/struct.proto"],
    service: [service],
    syntax: "proto3",
  });
}

function serviceOf({ services }: Schema): A2AServiceType {
  const [service] = services;
  if (service === undefined) throw new TypeError("The file has no service");
  const methods = service.methods.map(({ name, input, output, serverStream }): A2AMethod => {
    return { path: `/${service.name}/${name}`, operation: operationOf(name), stream: serverStream, input, output };
  });
  return {
    name: service.name,
    methods: new Map(methods.map((method) => [method.path, method])),
    operations: new Map(methods.map((method) => [method.operation, method])),
  };
}

/** Methods of 0.3 with another name in 1.0. */
const renamed: Readonly<Record<string, CoreName>> = {
  TaskSubscription: "SubscribeToTask",
  ListTaskPushNotificationConfig: "ListTaskPushNotificationConfigs",
  GetAgentCard: "GetExtendedAgentCard",
};

function operationOf(method: string): CoreName {
  const name = renamed[method] ?? method;
  if (!isOperation(name)) throw new TypeError(`${method} is not a method of A2A`);
  return name;
}

function isOperation(name: string): name is CoreName {
  return Object.hasOwn(operations, name);
}
