import * as descriptors from "../descriptors.ts";
import { decode } from "../protobuf/decode.ts";
import { readFile, readSchema, type FileDescriptor, type MessageDescriptor } from "../protobuf/schema.ts";
import { statusCode, type StatusName } from "../status.ts";
import { ok, type FrameWriter, type Method } from "./method.ts";

/** A request of reflection, as ProtoJSON. */
interface ReflectionRequest {
  readonly fileByFilename?: string;
  readonly fileContainingSymbol?: string;
  readonly fileContainingExtension?: { readonly containingType?: string; readonly extensionNumber?: number };
  readonly allExtensionNumbersOfType?: string;
  readonly listServices?: string;
}

/** grpc.reflection.v1 and v1alpha, which differ by their names alone: what tools such as grpcurl ask for first. By path. */
export function reflectionMethods(services: readonly string[], frames: FrameWriter): ReadonlyMap<string, Method> {
  const index = new Index();
  return new Map(
    [descriptors.reflectionV1, descriptors.reflectionV1alpha].flatMap((file) =>
      readSchema([file]).services.flatMap(({ name, methods }) =>
        methods.map((method): [string, Method] => [
          `/${name}/${method.name}`,
          (call) =>
            Promise.resolve(
              call.stream(async (sink) => {
                for (let bytes = await call.next(); bytes !== undefined; bytes = await call.next()) {
                  const request = decode(method.input, bytes);
                  const answer = answerTo(request, services, index);
                  await sink.write(frames.write(method.output, [{ originalRequest: request, ...answer }]));
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
  if (allExtensionNumbersOfType === undefined) return errorResponse("INVALID_ARGUMENT", "The request asks for nothing");
  if (allExtensionNumbersOfType !== fieldOptions) {
    return index.fileOf(allExtensionNumbersOfType) === undefined
      ? errorResponse("NOT_FOUND", "There is no message of that name here")
      : { allExtensionNumbersResponse: { baseTypeName: allExtensionNumbersOfType } };
  }
  return { allExtensionNumbersResponse: { baseTypeName: fieldOptions, extensionNumber: [fieldBehavior] } };
}

/** The one extension in our files. */
const fieldOptions = "google.protobuf.FieldOptions";
const fieldBehavior = 1052;
const fieldBehaviorFile = "google/api/field_behavior.proto";

function filesResponse(index: Index, name: string | undefined): object {
  const files = name === undefined ? [] : index.withImports(name);
  if (files.length === 0) return errorResponse("NOT_FOUND", "There is no such file or name here");
  return { fileDescriptorResponse: { fileDescriptorProto: files } };
}

function errorResponse(status: StatusName, errorMessage: string): object {
  return { errorResponse: { errorCode: statusCode(status), errorMessage } };
}

/** All files that the server knows, by name and by what stands in them. */
class Index {
  readonly #files: ReadonlyMap<string, { readonly file: FileDescriptor; readonly base64: string }>;
  readonly #symbols: ReadonlyMap<string, string>;

  constructor() {
    const read = Object.values(descriptors).map((base64) => ({ file: readFile(base64), base64 }));
    this.#files = new Map(read.map((each) => [each.file.name, each]));
    this.#symbols = new Map(read.flatMap(({ file }) => symbolsOf(file).map((symbol) => [symbol, file.name] as const)));
  }

  fileOf(symbol: string): string | undefined {
    return this.#symbols.get(symbol);
  }

  /** A file and all that it imports, directly or not, as base64; empty for an unknown one. */
  withImports(name: string): readonly string[] {
    const names = new Set([name]);
    // A set grows while it is walked through.
    for (const each of names) for (const other of this.#files.get(each)?.file.dependency ?? []) names.add(other);
    return [...names].flatMap((each) => this.#files.get(each)?.base64 ?? []);
  }
}

/** Full names of everything that a file declares. */
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
