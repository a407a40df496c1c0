import type { OutgoingHttpHeaders } from "node:http2";
import { gzipSync } from "node:zlib";
import { A2AError } from "@parley/a2a";
import type {
  AgentService,
  CallContext,
  OperationName,
  Operations,
  Reply,
  StreamItem,
  StreamName,
  StreamOperations,
  StreamReply,
  UnaryName,
  UnaryOperations,
} from "@parley/a2a/protocol";
import { type ClientBinding, type ClientHost, type Codec, type Shapes, untilOver, waits } from "@parley/a2a/transport";
import { compressed, frameOf } from "../frames.ts";
import { formatTimeout } from "../metadata.ts";
import { decode } from "../protobuf/decode.ts";
import { encode } from "../protobuf/encode.ts";
import { serviceV03, serviceV1, type A2AMethod, type A2AServiceType } from "../services.ts";
import { Statuses } from "../status.ts";
import { readAddress } from "./address.ts";
import { begin, type Call } from "./call.ts";
import { Channel, type ChannelOptions } from "./channel.ts";
import { errorOf } from "./errors.ts";
import { activated, metadataOf } from "./parameters.ts";

export interface GrpcBindingOptions extends ChannelOptions {
  /** Packs requests with gzip where they are longer than this many bytes. Default: never, since not every server unpacks them. */
  readonly compressAbove?: number;
}

/**
 * gRPC as a client speaks it (A2A 1.0 §10), 0.3 as well: for `connect(agent, { bindings: [grpcBinding(codecs)] })`. One connection is
 * kept to each address, for all clients that this binding is given to.
 *
 * @param codecs - The versions to speak, such as `codecV1` and `codecV03` of `@parley/a2a/wires`.
 */
export function grpcBinding(codecs: readonly Codec[], options: GrpcBindingOptions = {}): ClientBinding {
  const channels = new Map<string, Channel>();
  const statuses = new Statuses();
  const services = new Map<Codec, A2AServiceType>();
  return {
    name: "GRPC",
    versions: codecs.map(({ version }) => version),
    unusable: (url) => (readAddress(url) === undefined ? "is no address of gRPC, such as example.com:443" : undefined),
    open(target, version, host, card) {
      const codec = codecs.find((one) => one.version === version) as Codec;
      const { origin } = readAddress(target.url, card) as { origin: string };
      const channel = channels.get(origin) ?? new Channel(origin, options);
      channels.set(origin, channel);
      const service = services.get(codec) ?? serviceOf(version);
      services.set(codec, service);
      return new GrpcClient({ codec, service, channel, statuses, host, url: target.url, options });
    },
  };
}

function serviceOf(version: string): A2AServiceType {
  return version < "1" ? serviceV03() : serviceV1();
}

interface Parts {
  readonly codec: Codec;
  readonly service: A2AServiceType;
  readonly channel: Channel;
  readonly statuses: Statuses;
  readonly host: ClientHost;
  readonly url: string;
  readonly options: GrpcBindingOptions;
}

class GrpcClient implements AgentService {
  readonly #parts: Parts;
  readonly #shapes: Shapes;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#shapes = parts.codec.grpc ?? parts.codec.rest;
  }

  async call<Name extends UnaryName>(
    operation: Name,
    request: UnaryOperations[Name]["request"],
    context: CallContext,
  ): Promise<Reply<UnaryOperations[Name]["response"]>> {
    const { host, url } = this.#parts;
    const method = this.#method(operation);
    const usual = waits(operation, request) ? false : host.limits.connectTimeout;
    const call = await this.#begin(method, request, context, context.outgoing?.connectTimeout ?? usual);
    const messages: Uint8Array[] = [];
    for (let some = await call.next(); some !== undefined; some = await call.next()) messages.push(...some);
    this.#check(call);
    const [message] = messages;
    if (message === undefined || messages.length > 1) {
      throw new A2AError("InvalidResponse", `${url} answered with ${messages.length} messages instead of one`);
    }
    const value = this.#shapes.decodeResponse<Name>(operation, this.#read(method, message));
    return { value, ...activated(call.headers, call.trailers) };
  }

  async stream<Name extends StreamName>(
    operation: Name,
    request: StreamOperations[Name]["request"],
    context: CallContext,
  ): Promise<StreamReply> {
    const method = this.#method(operation);
    // Many servers send no headers before their first event, which may be hours away, and some send them before they say
    // what is wrong with the request. Pings tell whether they live.
    const call = await this.#begin(method, request, context, false);
    if (!(await call.spoke())) this.#check(call);
    return { batches: this.#batches(call, operation, method), ...activated(call.headers) };
  }

  #method(operation: OperationName): A2AMethod {
    const { service, codec } = this.#parts;
    const method = service.operations.get(operation);
    if (method !== undefined) return method;
    throw new A2AError("UnsupportedOperation", `${operation} is no method of gRPC in A2A ${codec.version}`);
  }

  async #begin<Name extends OperationName>(
    method: A2AMethod,
    request: Operations[Name]["request"],
    context: CallContext,
    headTimeout: number | false,
  ): Promise<Call> {
    const { codec, host, url, channel, options } = this.#parts;
    const message = encode(method.input, this.#shapes.encodeRequest(method.operation, request));
    const packs = message.length > (options.compressAbove ?? Infinity);
    const headers: OutgoingHttpHeaders = {
      ...(await metadataOf(host, codec, url, method.operation, context)),
      ":method": "POST",
      ":path": method.path,
      "content-type": "application/grpc+proto",
      te: "trailers",
      "grpc-accept-encoding": "gzip,deflate,identity",
    };
    if (packs) headers["grpc-encoding"] = "gzip";
    if (headTimeout !== false) headers["grpc-timeout"] = formatTimeout(headTimeout);
    return begin(channel, headers, packs ? frameOf(gzipSync(message), compressed) : frameOf(message), {
      url,
      clock: host.clock,
      signal: context.signal,
      connectTimeout: context.outgoing?.connectTimeout ?? host.limits.connectTimeout,
      headTimeout,
      maxMessageBytes: host.limits.maxResponseBytes,
    });
  }

  /** A message of a peer, where what is left out means empty. */
  #read(method: A2AMethod, message: Uint8Array): unknown {
    try {
      return decode(method.output, message, { fill: true });
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new A2AError("InvalidResponse", `${this.#parts.url} sent what is no ${method.output.name}: ${why}`, {
        cause,
      });
    }
  }

  /** Throws what a call that is over says went wrong. */
  #check(call: Call): void {
    const { statuses, codec, url } = this.#parts;
    // A status is what counts, even where the connection broke right after it.
    const spoke = call.trailers !== undefined || call.headers?.["grpc-status"] !== undefined;
    if (call.failure !== undefined && !(spoke && call.failure.code === "ConnectionLost")) throw call.failure;
    const error =
      call.headers === undefined
        ? new A2AError("ConnectionLost", `${url} ended the call without an answer`)
        : errorOf(statuses, codec, url, call.headers, call.trailers);
    if (error !== undefined) throw error;
  }

  #batches(call: Call, operation: StreamName, method: A2AMethod): AsyncIterable<readonly StreamItem[]> {
    const shapes = this.#shapes;
    let ends: boolean | undefined;
    const itemOf = (message: Uint8Array): StreamItem => {
      const value = this.#read(method, message);
      ends = shapes.endsStream?.(value);
      return { event: shapes.decodeEvent(value) };
    };
    const items = untilOver(this.#messages(call), operation, itemOf, () => ends);
    return {
      [Symbol.asyncIterator]: () => ({
        next: () => items.next(),
        async return() {
          // Also where the generator never began and has nothing to clean up.
          call.cancel();
          await items.return();
          return { done: true, value: undefined };
        },
      }),
    };
  }

  async *#messages(call: Call): AsyncGenerator<readonly Uint8Array[], void, void> {
    try {
      for (let some = await call.next(); some !== undefined; some = await call.next()) yield some;
      this.#check(call);
    } finally {
      call.cancel();
    }
  }
}
