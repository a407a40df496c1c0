import { A2AError, type AgentCard } from "@parley/a2a/model";
import { isLoopback } from "@parley/a2a/internal/base/index";
import type { CallContext, OperationName, StreamName, StreamReply } from "@parley/a2a/internal/protocol/index";
import {
  clientService,
  readEvents,
  type ClientTransport,
  type EncodedCall,
} from "@parley/a2a/internal/transport/client/service";
import type { ClientBinding, ClientHost } from "@parley/a2a/internal/transport/client/binding";
import { grpcWire, byVersion, type Codec } from "@parley/a2a/internal/wire/codec";
import { decode } from "../protobuf/decode.ts";
import { encode } from "../protobuf/encode.ts";
import { methodOf, serviceV03, serviceV1, type A2AMethod, type A2AServiceType } from "../services.ts";
import { Statuses } from "../status.ts";
import { activated, errorOf, metadataOf, textOf, type AnswerHeaders, type Callee, type Metadata } from "./headers.ts";

/** A request on any transport. */
export interface Outgoing {
  readonly operation: OperationName;
  readonly path: string;
  readonly metadata: Metadata;
  readonly message: Uint8Array;
  readonly context: CallContext;
  /** Timeout for the headers of the answer, in milliseconds; sent as `grpc-timeout`. */
  readonly headTimeout: number | false;
}

/** An answer that has begun, or a call that ended without one. */
export interface Incoming {
  readonly headers: AnswerHeaders | undefined;
  readonly trailers: AnswerHeaders | undefined;
  /** Why the call ended without a status. */
  readonly failure: A2AError | undefined;
  /** Waits for a message or the end. Returns whether there is a message. */
  hasMessage(): Promise<boolean>;
  /** The received messages; `undefined` after the end or a failure. */
  next(): Promise<readonly Uint8Array[] | undefined>;
  /** Cancels the call. May be called at any time. */
  cancel(): void;
}

export type Transport = (request: Outgoing) => Promise<Incoming>;

/** The services of A2A, read when they are first used. */
class Services {
  #v1: A2AServiceType | undefined;
  #v03: A2AServiceType | undefined;

  of(version: string): A2AServiceType {
    return version < "1" ? (this.#v03 ??= serviceV03()) : (this.#v1 ??= serviceV1());
  }
}

/** Calls an agent over gRPC or gRPC-Web. */
interface GrpcClient extends Callee {
  readonly services: Services;
  readonly send: Transport;
}

class GrpcCalls implements ClientTransport {
  readonly #client: GrpcClient;

  constructor(client: GrpcClient) {
    this.#client = client;
  }

  async call(call: EncodedCall): Promise<{ result: unknown; extensions?: readonly string[] }> {
    const method = this.#method(call);
    const answer = await this.#begin(method, call);
    const messages: Uint8Array[] = [];
    const unexpected = (count: string): A2AError =>
      new A2AError("InvalidResponse", `${this.#client.url} answered with ${count} instead of one`);
    for (let some = await answer.next(); some !== undefined; some = await answer.next()) {
      messages.push(...some);
      if (messages.length <= 1) continue;
      // The second message is already an error, so do not read the rest.
      answer.cancel();
      throw unexpected("several messages");
    }
    this.#check(method, answer);
    const [message] = messages;
    if (message === undefined) throw unexpected("no message");
    return { result: this.#read(method, message), ...activated(answer.headers, answer.trailers) };
  }

  async stream(call: EncodedCall<StreamName>): Promise<StreamReply> {
    const method = this.#method(call);
    // Many servers send their headers with the first event, which may take hours. Some send headers and then an error.
    const answer = await this.#begin(method, { ...call, timeout: false });
    if (!(await answer.hasMessage())) this.#check(method, answer);
    const batches = readEvents(grpcWire(this.#client.codec), call.operation, {
      batches: this.#messages(method, answer),
      read: (message) => ({ event: this.#read(method, message) }),
      close: () => answer.cancel(),
    });
    return { batches, ...activated(answer.headers) };
  }

  #method({ operation, context: { outgoing } }: EncodedCall): A2AMethod {
    const { version } = this.#client.codec;
    if (outgoing?.method !== undefined) return methodOf(outgoing.method);
    const method = this.#client.services.of(version).operations.get(operation);
    if (method !== undefined) return method;
    throw new A2AError("UnsupportedOperation", `${operation} is not a method of gRPC in A2A ${version}`);
  }

  async #begin(method: A2AMethod, { params, context, timeout }: EncodedCall): Promise<Incoming> {
    const message = encode(method.input, params);
    const metadata = await metadataOf(this.#client, method.operation, context);
    const { operation, path } = method;
    return this.#client.send({ operation, path, metadata, message, context, headTimeout: timeout });
  }

  /** Decodes a message. Absent fields get their empty value. */
  #read(method: A2AMethod, message: Uint8Array): unknown {
    try {
      return decode(method.output, message, { fill: true });
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new A2AError("InvalidResponse", `${this.#client.url} sent an invalid ${method.output.name}: ${why}`, {
        cause,
      });
    }
  }

  /** Throws the error of an ended call, if any. */
  #check(method: A2AMethod, { headers, trailers, failure }: Incoming): void {
    this.#client.host.credentials?.answered({ get: (name) => textOf(trailers?.[name] ?? headers?.[name]) });
    // A status counts even if the connection broke right after it.
    const hasStatus = trailers !== undefined || headers?.["grpc-status"] !== undefined;
    if (failure !== undefined && !(hasStatus && failure.code === "ConnectionLost")) throw failure;
    const error =
      headers === undefined
        ? new A2AError("ConnectionLost", `${this.#client.url} ended the call without an answer`)
        : errorOf(this.#client, headers, trailers, method.input);
    if (error !== undefined) throw error;
  }

  async *#messages(method: A2AMethod, answer: Incoming): AsyncGenerator<readonly Uint8Array[], void, void> {
    try {
      for (let some = await answer.next(); some !== undefined; some = await answer.next()) yield some;
      this.#check(method, answer);
    } finally {
      answer.cancel();
    }
  }
}

/** A binding that calls the GRPC interfaces of cards. `transport` opens a transport to an origin. */
export function bindingOver(
  codecs: readonly Codec[],
  transport: (origin: string, url: string, host: ClientHost) => Transport,
): ClientBinding {
  const known = byVersion(codecs);
  const shared = { services: new Services(), statuses: new Statuses() };
  return {
    name: "GRPC",
    versions: [...known.keys()],
    unusable: (url) => (originOf(url) === undefined ? "is not an address of gRPC, such as example.com:443" : undefined),
    origin: originOf,
    open({ url }, version, host, card) {
      const codec = known.get(version);
      const origin = originOf(url, card);
      if (codec === undefined || origin === undefined) throw new TypeError(`${url} cannot be called in A2A ${version}`);
      const calls = new GrpcCalls({ ...shared, codec, host, url, send: transport(origin, url, host) });
      return clientService(grpcWire(codec), host, calls);
    },
  };
}

const schemes: Readonly<Record<string, "http" | "https">> = {
  http: "http",
  grpc: "http",
  https: "https",
  grpcs: "https",
};

/**
 * The origin of a gRPC interface, such as `https://agents.example.com:8443`; `undefined` for an invalid address. An
 * address is `host:port`, as specified, or a URL of `grpc`, `grpcs`, `http` or `https`. Without a scheme, TLS is used
 * if all other URLs of the card use it; if they disagree, or without other URLs, for all hosts except loopback.
 */
export function originOf(url: string, card?: AgentCard): string | undefined {
  const match = /^(?:([a-z]+):\/\/)?([^/?#@\s]+)\/?$/i.exec(url);
  if (match === null) return undefined;
  const [, scheme, authority = ""] = match;
  const known = scheme === undefined ? undefined : schemes[scheme.toLowerCase()];
  if ((scheme !== undefined && known === undefined) || !URL.canParse(`http://${authority}`)) return undefined;
  const { hostname } = new URL(`http://${authority}`);
  const protocol = known ?? schemeOf(card) ?? (isLoopback(hostname) ? "http" : "https");
  return new URL(`${protocol}://${authority}`).origin;
}

/** The scheme of the URLs in a card, if they agree. */
function schemeOf(card: AgentCard | undefined): "http" | "https" | undefined {
  const urls = card?.supportedInterfaces.map(({ url }) => /^(https?):\/\//i.exec(url)?.[1]?.toLowerCase()) ?? [];
  const found = new Set(urls.filter((scheme) => scheme === "http" || scheme === "https"));
  return found.size === 1 ? [...found][0] : undefined;
}
