import type { UniversalResponse } from "@parley/a2a/internal/protocol/index";
import type { ServerHost } from "@parley/a2a/internal/transport/server/binding";
import * as descriptors from "../descriptors.ts";
import { decode } from "../protobuf/decode.ts";
import {
  type FileDescriptor,
  type MessageDescriptor,
  type MethodType,
  readFile,
  readSchema,
} from "../protobuf/descriptor.ts";
import type { MessageType } from "../protobuf/types.ts";
import { statusCode, StatusError, type StatusName } from "../status.ts";
import type { Call, CallWriter, Method } from "./call.ts";
import { ok, type FrameWriter } from "./framing.ts";

/** grpc.health.v1: tells load balancers which services are served. */
export class Health {
  readonly #services: ReadonlySet<string>;
  readonly #frames: FrameWriter;
  #stopping = false;
  readonly #watchers = new Set<() => void>();
  readonly #readiness: Required<ServerHost>["readiness"];

  /** `services`: known names. The empty name is the whole server. */
  constructor(services: readonly string[], frames: FrameWriter, readiness: Required<ServerHost>["readiness"]) {
    this.#services = new Set(["", ...services]);
    this.#frames = frames;
    this.#readiness = readiness;
  }

  /** Reports that the server is stopping, and ends the streams of watchers. */
  stop(): void {
    this.#stopping = true;
    for (const wake of this.#watchers) wake();
  }

  /** The methods by path. */
  methods(): ReadonlyMap<string, Method> {
    const [service] = readSchema([descriptors.health]).services;
    return new Map(
      (service?.methods ?? []).map((method) => [
        `/${service?.name}/${method.name}`,
        (call: Call) => (method.serverStream ? this.#watch(call, method) : this.#check(call, method)),
      ]),
    );
  }

  async #check(call: Call, { input, output }: MethodType): Promise<UniversalResponse> {
    const service = await serviceIn(call, input);
    if (!this.#services.has(service)) throw new StatusError("NOT_FOUND", "Unknown service");
    const status = (await this.#readiness()) === "ready" ? this.#status : "NOT_SERVING";
    return call.reply(this.#frames.write(output, [{ status }]), ok);
  }

  async #watch(call: Call, { input, output }: MethodType): Promise<UniversalResponse> {
    const service = await serviceIn(call, input);
    return call.stream((writer) => this.#report(writer, service, output), ok);
  }

  async #report(writer: CallWriter, service: string, output: MessageType): Promise<void> {
    const known = this.#services.has(service);
    await writer.write(this.#frames.write(output, [{ status: known ? this.#status : "SERVICE_UNKNOWN" }]));
    if (!this.#stopping) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#watchers.delete(wake);
          resolve();
        };
        this.#watchers.add(wake);
        writer.onClose(wake);
      });
      if (known) await writer.write(this.#frames.write(output, [{ status: this.#status }]));
    }
    throw new StatusError("UNAVAILABLE", "The server is stopping");
  }

  get #status(): string {
    return this.#stopping ? "NOT_SERVING" : "SERVING";
  }
}

/** The name in a request of the health service. */
async function serviceIn(call: Call, input: MessageType): Promise<string> {
  const { service } = decode(input, await call.only());
  return typeof service === "string" ? service : "";
}

interface ReflectionRequest {
  readonly fileByFilename?: string;
  readonly fileContainingSymbol?: string;
  readonly fileContainingExtension?: { readonly containingType?: string; readonly extensionNumber?: number };
  readonly allExtensionNumbersOfType?: string;
  readonly listServices?: string;
}

/**
 * grpc.reflection.v1 and v1alpha, for tools such as grpcurl. They differ only in their names. Returns the methods by
 * path. `files`: more .proto files, in base64.
 */
export function reflectionMethods(
  services: readonly string[],
  files: readonly string[],
  frames: FrameWriter,
): ReadonlyMap<string, Method> {
  const index = new Index(files);
  return new Map(
    [descriptors.reflectionV1, descriptors.reflectionV1alpha].flatMap((file) =>
      readSchema([file]).services.flatMap(({ name, methods }) =>
        methods.map((method): [string, Method] => [
          `/${name}/${method.name}`,
          (call) =>
            Promise.resolve(
              call.stream(async (writer) => {
                for (let bytes = await call.next(); bytes !== undefined; bytes = await call.next()) {
                  const request = decode(method.input, bytes);
                  const answer = answerTo(request, services, index);
                  await writer.write(frames.write(method.output, [{ originalRequest: request, ...answer }]));
                }
              }, ok),
            ),
        ]),
      ),
    ),
  );
}

function answerTo(request: ReflectionRequest, services: readonly string[], index: Index): object {
  const { fileByFilename, fileContainingSymbol, fileContainingExtension, allExtensionNumbersOfType } = request;
  if (request.listServices !== undefined) {
    return { listServicesResponse: { service: services.map((name) => ({ name })) } };
  }
  if (fileByFilename !== undefined) return filesResponse(index, fileByFilename);
  if (fileContainingSymbol !== undefined) return filesResponse(index, index.fileOf(fileContainingSymbol));
  if (fileContainingExtension !== undefined) {
    const { containingType, extensionNumber } = fileContainingExtension;
    const known = containingType === fieldOptions && extensionNumber === fieldBehavior;
    return filesResponse(index, known ? fieldBehaviorFile : undefined);
  }
  if (allExtensionNumbersOfType === undefined) return errorResponse("INVALID_ARGUMENT", "The request is empty");
  if (allExtensionNumbersOfType !== fieldOptions) {
    return index.fileOf(allExtensionNumbersOfType) === undefined
      ? errorResponse("NOT_FOUND", "Unknown message")
      : { allExtensionNumbersResponse: { baseTypeName: allExtensionNumbersOfType } };
  }
  return { allExtensionNumbersResponse: { baseTypeName: fieldOptions, extensionNumber: [fieldBehavior] } };
}

/** The message that our .proto files extend. */
const fieldOptions = "google.protobuf.FieldOptions";
const fieldBehavior = 1052;
const fieldBehaviorFile = "google/api/field_behavior.proto";

function filesResponse(index: Index, name: string | undefined): object {
  const files = name === undefined ? [] : index.withImports(name);
  if (files.length === 0) return errorResponse("NOT_FOUND", "Unknown file or symbol");
  return { fileDescriptorResponse: { fileDescriptorProto: files } };
}

function errorResponse(status: StatusName, errorMessage: string): object {
  return { errorResponse: { errorCode: statusCode(status), errorMessage } };
}

/** All .proto files of the server, by name and declared symbol. */
class Index {
  readonly #files: ReadonlyMap<string, { readonly file: FileDescriptor; readonly base64: string }>;
  readonly #symbols: ReadonlyMap<string, string>;

  constructor(more: readonly string[]) {
    const read = [...Object.values(descriptors), ...more].map((base64) => ({ file: readFile(base64), base64 }));
    this.#files = new Map(read.map((each) => [each.file.name, each]));
    this.#symbols = new Map(read.flatMap(({ file }) => symbolsOf(file).map((symbol) => [symbol, file.name] as const)));
  }

  fileOf(symbol: string): string | undefined {
    return this.#symbols.get(symbol);
  }

  /** A file and all its imports, transitively, in base64; empty for an unknown file. */
  withImports(name: string): readonly string[] {
    const names = new Set([name]);
    // The loop also visits names that it adds.
    for (const each of names) for (const other of this.#files.get(each)?.file.dependency ?? []) names.add(other);
    return [...names].flatMap((each) => this.#files.get(each)?.base64 ?? []);
  }
}

/** Full names of all declarations in a file. */
function symbolsOf(file: FileDescriptor): string[] {
  const prefix = file.package === undefined ? "" : `${file.package}.`;
  const ofMessage = (outer: string, message: MessageDescriptor): string[] => {
    const name = outer + message.name;
    return [
      name,
      ...(message.field ?? []).map((field) => `${name}.${field.name}`),
      ...(message.enumType ?? []).map((each) => `${name}.${each.name}`),
      ...(message.nestedType ?? []).flatMap((each) => ofMessage(`${name}.`, each)),
    ];
  };
  return [
    ...(file.messageType ?? []).flatMap((each) => ofMessage(prefix, each)),
    ...(file.enumType ?? []).map((each) => prefix + each.name),
    ...(file.service ?? []).flatMap((service) => [
      prefix + service.name,
      ...service.method.map((method) => `${prefix}${service.name}.${method.name}`),
    ]),
  ];
}
