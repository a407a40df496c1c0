import { A2AError } from "@parley/a2a";
import type { OperationName, StreamReply, UniversalResponse } from "@parley/a2a/protocol";
import {
  answerCall,
  codecOf,
  converted,
  requestedVersion,
  type AnyReply,
  type ServerCall,
  type ServerContext,
  type ServerHost,
} from "@parley/a2a/transport";
import { grpcWire, versionOfSilence, type Codec, type Shapes } from "@parley/a2a/wires";
import { decode } from "../protobuf/decode.ts";
import type { A2AMethod } from "../services.ts";
import type { CallSink } from "./call-sink.ts";
import type { Call } from "./call.ts";
import type { Metadata } from "./framing.ts";
import { ok, type FrameWriter, type Method } from "./method.ts";

/**
 * The version that a call of 1.0's service is to be read in: its drafts share the service. One that names none is of the
 * first, since the name of the service says enough, unless `strictVersion` holds the caller to §3.6.2.
 */
export function requestedCodec(host: ServerHost, codecs: readonly [Codec, ...Codec[]], call: Call): Codec {
  const named = requestedVersion(call, "") ?? (host.strictVersion ? versionOfSilence : undefined);
  return named === undefined || named === codecs[0].version ? codecs[0] : codecOf(codecs, named);
}

/** Answers a method of A2A through the services of a host. */
export function a2aMethod(
  method: A2AMethod,
  host: ServerHost,
  codecFor: (call: Call) => Codec,
  frames: FrameWriter,
): Method {
  // The proto of 0.3 has no tenant, and a call no path: an agent that is alone needs no name.
  const alone = host.services.size === 1 ? [...host.services.keys()][0] : undefined;
  return (call) => answerCall(host, new GrpcServerCall(method, host, codecFor, frames, alone, call));
}

/** A call of A2A on its way through `answerCall`: its answer, whatever it is, is put into frames. */
class GrpcServerCall implements ServerCall<Uint8Array, UniversalResponse> {
  readonly request: Call;
  readonly operation: OperationName;
  readonly weight: number = converted;
  codec: Codec;
  shapes: Shapes;
  tenant: string | undefined;
  readonly #method: A2AMethod;
  readonly #host: ServerHost;
  readonly #codecFor: (call: Call) => Codec;
  readonly #frames: FrameWriter;
  readonly #alone: string | undefined;

  constructor(
    method: A2AMethod,
    host: ServerHost,
    codecFor: (call: Call) => Codec,
    frames: FrameWriter,
    alone: string | undefined,
    call: Call,
  ) {
    this.request = call;
    this.operation = method.operation;
    this.#method = method;
    this.#host = host;
    this.#codecFor = codecFor;
    this.#frames = frames;
    this.#alone = alone;
    this.codec = host.codecs[0];
    this.shapes = this.codec.shapes;
  }

  accept(): void {
    this.codec = this.#codecFor(this.request);
    this.shapes = grpcWire(this.codec);
    if (this.codec.tenantInPath === true) this.tenant = this.#alone;
    if (this.#host.operations[this.operation] === undefined) throw new A2AError("MethodNotFound");
  }

  body(): Promise<Uint8Array> {
    return this.request.only();
  }

  read(bytes: Uint8Array): unknown {
    const input = decode(this.#method.input, bytes, { depth: this.#host.limits.depth, subject: "request" });
    // The zero of a field that is not said: Go's SDK sends it for every list that names no size (A2A 1.0 §3.1.4).
    if (this.operation === "ListTasks" && input["pageSize"] === 0) delete input["pageSize"];
    return input;
  }

  reply(reply: AnyReply, context: ServerContext): UniversalResponse | Promise<UniversalResponse> {
    const call = this.request;
    const metadata = activated(call, reply.extensions);
    const value = this.shapes.responseOf<OperationName>(this.operation, reply);
    const frame = this.#frames.write(this.#method.output, [value]);
    return call.reply(frame, okWith(metadata), metadata, context);
  }

  stream(reply: StreamReply, context: ServerContext): UniversalResponse {
    const metadata = activated(this.request, reply.extensions);
    return this.request.stream((sink) => this.#write(sink, reply.batches, context), okWith(metadata), metadata);
  }

  async #write(sink: CallSink, batches: StreamReply["batches"], context: ServerContext): Promise<void> {
    const source = batches[Symbol.asyncIterator]();
    sink.onClose(() => void source.return?.().catch(() => undefined));
    try {
      while (!sink.closed) {
        const next = await source.next();
        if (next.done === true) break;
        const values = next.value.map((item) => this.shapes.eventOf(item));
        const written = sink.write(this.#frames.write(this.#method.output, values));
        if (written !== undefined) await context.awaitReader(written);
        context.release();
      }
    } finally {
      context.end();
    }
  }

  fail(thrown: unknown): UniversalResponse {
    return this.request.fail(thrown);
  }
}

function okWith(metadata: Metadata | undefined): Metadata {
  return metadata === undefined ? ok : Object.assign({}, ok, metadata);
}

/** Which extensions were activated, in the header that they were asked for in; peers look in the head or in the trailers. */
function activated(call: Call, extensions: readonly string[] | undefined): Metadata | undefined {
  if (extensions === undefined || extensions.length === 0) return undefined;
  const former = !call.header("a2a-extensions") && call.header("x-a2a-extensions") !== undefined;
  return { [former ? "x-a2a-extensions" : "a2a-extensions"]: extensions.join(", ") };
}
