import { A2AError } from "@parley/a2a";
import {
  Payload,
  type AgentService,
  type CallContext,
  type OperationName,
  type Operations,
  type Reply,
  type StreamItem,
  type StreamName,
  type StreamOperations,
  type StreamReply,
  type UnaryName,
  type UnaryOperations,
} from "@parley/a2a/protocol";
import { untilOver, waits, type ClientHost } from "@parley/a2a/transport/client";
import { grpcWire, type Codec, type Shapes } from "@parley/a2a/wires";
import { decode } from "../protobuf/decode.ts";
import { encode } from "../protobuf/encode.ts";
import { serviceV03, serviceV1, type A2AMethod, type A2AServiceType } from "../services.ts";
import { Statuses } from "../status.ts";
import { errorOf, type AnswerHeaders } from "./errors.ts";
import { activated, metadataOf, type Metadata } from "./parameters.ts";

/** A request, as it goes out by whatever transport. */
export interface Outgoing {
  readonly operation: OperationName;
  readonly path: string;
  readonly metadata: Metadata;
  readonly message: Uint8Array;
  readonly context: CallContext;
  /** Longest wait for the first word of the answer, in milliseconds; the server is told of it. */
  readonly headTimeout: number | false;
}

/** An answer, once it has begun or it is known that there is none. */
export interface Incoming {
  readonly headers: AnswerHeaders | undefined;
  readonly trailers: AnswerHeaders | undefined;
  /** Why it ended, where that was neither its status nor in good order. */
  readonly failure: A2AError | undefined;
  /** Waits for the first message, or for the end: whether there is one. */
  spoke(): Promise<boolean>;
  /** The messages that came since; `undefined` at the end, whatever it was. */
  next(): Promise<readonly Uint8Array[] | undefined>;
  /** Tells the server that nobody waits for the rest. May be called at any time. */
  cancel(): void;
}

export type Transport = (request: Outgoing) => Promise<Incoming>;

/** What the clients of one binding share: tables are read once. */
export class GrpcTypes {
  readonly statuses: Statuses = new Statuses();
  readonly #services = new Map<string, A2AServiceType>();

  service(version: string): A2AServiceType {
    const name = version < "1" ? "0.3" : "1";
    const service = this.#services.get(name) ?? (name === "1" ? serviceV1() : serviceV03());
    this.#services.set(name, service);
    return service;
  }
}

/** An agent behind gRPC, of whatever transport. */
export class GrpcService implements AgentService {
  readonly #codec: Codec;
  readonly #shapes: Shapes;
  readonly #types: GrpcTypes;
  readonly #host: ClientHost;
  readonly #url: string;
  readonly #send: Transport;

  constructor(codec: Codec, types: GrpcTypes, host: ClientHost, url: string, send: Transport) {
    this.#codec = codec;
    this.#shapes = grpcWire(codec);
    this.#types = types;
    this.#host = host;
    this.#url = url;
    this.#send = send;
  }

  async call<Name extends UnaryName>(
    operation: Name,
    request: UnaryOperations[Name]["request"],
    context: CallContext,
  ): Promise<Reply<UnaryOperations[Name]["response"]>> {
    const method = this.#method(operation);
    const usual = waits(operation, request) ? false : this.#host.limits.connectTimeout;
    const answer = await this.#begin(method, request, context, context.outgoing?.connectTimeout ?? usual);
    const messages: Uint8Array[] = [];
    const strange = (count: string): A2AError =>
      new A2AError("InvalidResponse", `${this.#url} answered with ${count} instead of one`);
    for (let some = await answer.next(); some !== undefined; some = await answer.next()) {
      messages.push(...some);
      if (messages.length <= 1) continue;
      // Only one message is allowed: the rest is not read.
      answer.cancel();
      throw strange("several messages");
    }
    this.#check(answer);
    const [message] = messages;
    if (message === undefined) throw strange("no message");
    const payload = new Payload(this.#shapes.decodeResponse<Name>(operation, this.#read(method, message)));
    return { payload, ...activated(answer.headers, answer.trailers) };
  }

  async stream<Name extends StreamName>(
    operation: Name,
    request: StreamOperations[Name]["request"],
    context: CallContext,
  ): Promise<StreamReply> {
    const method = this.#method(operation);
    // Many servers send no headers before their first event, which may be hours away, and some send them before they say
    // what is wrong with the request.
    const answer = await this.#begin(method, request, context, false);
    if (!(await answer.spoke())) this.#check(answer);
    return { batches: this.#batches(answer, operation, method), ...activated(answer.headers) };
  }

  #method(operation: OperationName): A2AMethod {
    const { version } = this.#codec;
    const method = this.#types.service(version).operations.get(operation);
    if (method !== undefined) return method;
    throw new A2AError("UnsupportedOperation", `${operation} is no method of gRPC in A2A ${version}`);
  }

  async #begin<Name extends OperationName>(
    method: A2AMethod,
    request: Operations[Name]["request"],
    context: CallContext,
    headTimeout: number | false,
  ): Promise<Incoming> {
    const message = encode(method.input, this.#shapes.encodeRequest(method.operation, request));
    const metadata = await metadataOf(this.#host, this.#codec, this.#url, method.operation, context);
    const { operation, path } = method;
    return this.#send({ operation, path, metadata, message, context, headTimeout });
  }

  /** A message of a peer, where what is left out means empty. */
  #read(method: A2AMethod, message: Uint8Array): unknown {
    try {
      return decode(method.output, message, { fill: true });
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new A2AError("InvalidResponse", `${this.#url} sent what is no ${method.output.name}: ${why}`, { cause });
    }
  }

  /** Throws what an answer that is over says went wrong. */
  #check({ headers, trailers, failure }: Incoming): void {
    // A status is what counts, even where the connection broke right after it.
    const spoke = trailers !== undefined || headers?.["grpc-status"] !== undefined;
    if (failure !== undefined && !(spoke && failure.code === "ConnectionLost")) throw failure;
    const error =
      headers === undefined
        ? new A2AError("ConnectionLost", `${this.#url} ended the call without an answer`)
        : errorOf(this.#types.statuses, this.#codec, this.#url, headers, trailers);
    if (error !== undefined) throw error;
  }

  #batches(answer: Incoming, operation: StreamName, method: A2AMethod): AsyncIterable<readonly StreamItem[]> {
    const shapes = this.#shapes;
    let ends: true | undefined;
    const itemOf = (message: Uint8Array): StreamItem => {
      const value = this.#read(method, message);
      ends = shapes.endsStream?.(value) === true ? true : undefined;
      return { payload: new Payload(shapes.decodeEvent(value)) };
    };
    const items = untilOver(this.#messages(answer), operation, itemOf, () => ends);
    return {
      [Symbol.asyncIterator]: () => ({
        next: () => items.next(),
        async return() {
          // Also where the generator never began and has nothing to clean up.
          answer.cancel();
          await items.return();
          return { done: true, value: undefined };
        },
      }),
    };
  }

  async *#messages(answer: Incoming): AsyncGenerator<readonly Uint8Array[], void, void> {
    try {
      for (let some = await answer.next(); some !== undefined; some = await answer.next()) yield some;
      this.#check(answer);
    } finally {
      answer.cancel();
    }
  }
}
