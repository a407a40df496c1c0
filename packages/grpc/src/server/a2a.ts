import { A2AError } from "@parley/a2a/internal/model/index";
import type { LogFields } from "@parley/a2a/internal/base/index";
import {
  isMethod,
  type IncomingFiles,
  type OperationName,
  type Principal,
  type StreamReply,
  type UniversalResponse,
} from "@parley/a2a/internal/protocol/index";
import {
  answerCall,
  converted,
  type AnyReply,
  type ServerCall,
} from "@parley/a2a/internal/transport/server/answer-call";
import type { ServerContext } from "@parley/a2a/internal/transport/server/context";
import { codecOf, requestedVersion } from "@parley/a2a/internal/transport/server/request";
import type { ServerHost } from "@parley/a2a/internal/transport/server/binding";
import { grpcWire, methodShapes, versionOfSilence, type Codec, type Shapes } from "@parley/a2a/internal/wire/codec";
import { decode } from "../protobuf/decode.ts";
import type { A2AMethod } from "../services.ts";
import type { Call, CallWriter, Method } from "./call.ts";
import { ok, type FrameWriter, type Metadata } from "./framing.ts";

/**
 * The codec of the requested version. Drafts of a version share its service. A call without a version uses the first
 * codec, because the service implies the version, unless `strictVersion` requires the header (A2A 1.0 §3.6.2).
 */
export function requestedCodec(host: ServerHost, codecs: readonly [Codec, ...Codec[]], call: Call): Codec {
  const named = requestedVersion(call, "") ?? (host.strictVersion ? versionOfSilence : undefined);
  return named === undefined || named === codecs[0].version ? codecs[0] : codecOf(codecs, named);
}

/** A method of A2A, and the dependencies of its answers. */
export interface A2ARoute {
  readonly method: A2AMethod;
  readonly host: ServerHost;
  readonly codecFor: (call: Call) => Codec;
  readonly frames: FrameWriter;
}

/** Answers a method of A2A with the services of a host. */
export function a2aMethod(route: A2ARoute): Method {
  return (call) => answerCall(route.host, new GrpcServerCall(route, call));
}

export function isSend(operation: OperationName): boolean {
  return operation === "SendMessage" || operation === "SendStreamingMessage";
}

/** A call of A2A for `answerCall`, which answers in frames. */
class GrpcServerCall implements ServerCall<Uint8Array, UniversalResponse> {
  readonly request: Call;
  readonly operation: OperationName;
  readonly weight: number = converted;
  codec: Codec;
  shapes: Shapes;
  tenant: string | undefined;
  files?: IncomingFiles;
  readonly #route: A2ARoute;

  constructor(route: A2ARoute, call: Call) {
    this.#route = route;
    this.request = call;
    this.operation = route.method.operation;
    this.codec = route.host.codecs[0];
    this.shapes = this.codec.shapes;
  }

  accept(): void {
    const { host, codecFor } = this.#route;
    this.codec = codecFor(this.request);
    this.shapes = isMethod(this.operation) ? { ...grpcWire(this.codec), ...methodShapes } : grpcWire(this.codec);
    // A 0.3 call has no field for a tenant, so it goes to the only agent.
    if (this.codec.tenantInPath === true && host.services.size === 1) [this.tenant] = host.services.keys();
    if (host.operations[this.operation] === undefined) throw new A2AError("MethodNotFound");
  }

  body(principal: Principal): Promise<Uint8Array> {
    const { receiver, services, limits } = this.#route.host;
    if (receiver === undefined || !isSend(this.operation)) return this.request.only();
    return this.request.only(async (large) => {
      const { readLargeMessage } = await import("./large-message.ts");
      const address = this.request.facts?.remoteAddress;
      const sender = { principal, address, services, bytes: large.length, signal: () => this.request.signal };
      this.files = await receiver.open(sender);
      return readLargeMessage(this.#route.method.input, large, { files: this.files, receiver, limits });
    });
  }

  read(bytes: Uint8Array): unknown {
    const input = decode(this.#route.method.input, bytes, { depth: this.#route.host.limits.depth, subject: "request" });
    // The SDK for Go sends 0 for an unset page size (A2A 1.0 §3.1.4).
    if (this.operation === "ListTasks" && input["pageSize"] === 0) delete input["pageSize"];
    return input;
  }

  reply(reply: AnyReply, context: ServerContext): UniversalResponse | Promise<UniversalResponse> {
    const call = this.request;
    call.context = context;
    const metadata = activated(call, reply.extensions);
    const value = this.shapes.responseOf<OperationName>(this.operation, reply);
    const frame = this.#route.frames.write(this.#route.method.output, [value]);
    return call.reply(frame, okWith(metadata), metadata, context);
  }

  stream(reply: StreamReply, context: ServerContext): UniversalResponse {
    const metadata = activated(this.request, reply.extensions);
    this.request.context = context;
    return this.request.stream((writer) => this.#write(writer, reply.batches, context), okWith(metadata), metadata);
  }

  async #write(writer: CallWriter, batches: StreamReply["batches"], context: ServerContext): Promise<void> {
    const source = batches[Symbol.asyncIterator]();
    writer.onClose(() => void source.return?.().catch(() => undefined));
    try {
      while (!writer.closed) {
        const next = await source.next();
        if (next.done === true) break;
        const values = next.value.map((item) => this.shapes.eventOf(item));
        const written = writer.write(this.#route.frames.write(this.#route.method.output, values));
        if (written !== undefined) await context.awaitReader(written);
        context.release();
      }
    } finally {
      context.end();
    }
  }

  fail(thrown: unknown, fields?: LogFields): UniversalResponse {
    return this.request.fail(thrown, fields);
  }
}

function okWith(metadata: Metadata | undefined): Metadata {
  return metadata === undefined ? ok : Object.assign({}, ok, metadata);
}

/** The activated extensions, in the header that the client used. Some clients read the headers, some the trailers. */
function activated(call: Call, extensions: readonly string[] | undefined): Metadata | undefined {
  if (extensions === undefined || extensions.length === 0) return undefined;
  const older = !call.header("a2a-extensions") && call.header("x-a2a-extensions") !== undefined;
  return { [older ? "x-a2a-extensions" : "a2a-extensions"]: extensions.join(", ") };
}
