import { A2AError, anonymous, systemClock, type StreamResponse } from "@parley/a2a";
import { isWireErrorCode, wireErrors } from "@parley/a2a/model";
import { jsonRpcBinding, restBinding, type ClientBinding } from "@parley/a2a/client";
import type { AgentService, CallContext, OperationName, StreamItem, StreamName, UnaryName } from "@parley/a2a/protocol";
import type { ClientHost, Codec, GrpcWire, JsonRpcCodec, RestCodec, Shapes } from "@parley/a2a/transport";
import { codecV03, codecV1 } from "@parley/a2a/wires";
import { grpcBinding } from "@parley/grpc/client";
import { methods, streams, type Caller, type Outcome, type Place } from "./caller.ts";
import { wireError, type WireError } from "../judge/errors.ts";
import type { Json, Transport } from "../acts/format.ts";
import { Deadline } from "./deadline.ts";
import { fetchCard, jsonRpcCaller, restCaller } from "./http-callers.ts";
import { Unreachable } from "./http.ts";
import { shapeProblem } from "../judge/schema.ts";
import { BrokenWire, LiveStream } from "./stream.ts";

/**
 * Bindings that are called by our own client. It is given a codec that judges: for gRPC one that hands each message on
 * with no reading of ours in between, for 0.3 one that looks at the shape of what came before it is read.
 */

/** The status of a call over gRPC travels in the error that a codec makes of it. */
const decodeStatus: GrpcWire["decodeError"] = (status, body) => {
  const { error } = body as { error: { status: string; message: string; details: readonly unknown[] } };
  const metadata = { grpc: error.status, http: String(status) };
  return new A2AError("InternalError", error.message, { metadata, details: error.details });
};

function unread(version: string): Codec {
  const shapes: GrpcWire = {
    ...codecV1.shapes,
    encodeRequest: (_, request) => request,
    decodeResponse: (_, value) => value as never,
    decodeEvent: (value) => value as StreamResponse,
    endsStream: () => false,
    decodeError: decodeStatus,
  };
  return { ...codecV1, version, shapes };
}

/** What an answer of 0.3 is to look like, by operation; others are judged by what is read of them. */
const answers: Readonly<Partial<Record<OperationName, string>>> = {
  SendMessage: "SendMessageResponse",
  GetTask: "Task",
  CancelTask: "Task",
};

function shapely<T extends Shapes>(shapes: T, prefix: string): T {
  const demand = (name: string, value: unknown): void => {
    const problem = shapeProblem(`${prefix}${name}`, value as Json);
    if (problem === undefined) return;
    const { path, expected, value: got } = problem;
    throw new BrokenWire(`what came is no ${name} of 0.3: ${path} should be ${expected}, is ${JSON.stringify(got)}`);
  };
  const judged: Partial<Shapes> = {
    decodeResponse(operation, value) {
      const name = answers[operation];
      if (name !== undefined) demand(name, value);
      return shapes.decodeResponse(operation, value);
    },
    decodeEvent(value) {
      demand("StreamResponse", value);
      return shapes.decodeEvent(value);
    },
    endsStream: () => false,
  };
  return { ...shapes, ...judged };
}

function judged03(): JsonRpcCodec & RestCodec {
  const { JSONRPC: jsonRpc, "HTTP+JSON": rest, GRPC: grpc } = codecV03.bindings;
  return {
    ...codecV03,
    bindings: {
      JSONRPC: shapely(jsonRpc, "0.3/"),
      "HTTP+JSON": shapely(rest, "0.3/proto/"),
      GRPC: shapely(grpc, "0.3/proto/"),
    },
  };
}

const hostOf = ({ bounds: { maxBytes } }: Place): ClientHost => ({
  fetch: (url, init) => fetch(url, init),
  headers: {},
  clock: systemClock,
  limits: { connectTimeout: false, idleTimeout: false, maxResponseBytes: maxBytes, maxEventBytes: maxBytes },
});

/** gRPC (§10), by our own client. What only HTTP can say, raw bodies and headers of answers, it has not. */
export function grpcCaller(place: Place): Caller {
  return { ...serviceCaller("grpc", place, (version) => [grpcBinding([unread(version)]), version]), errors: "grpc" };
}

/** 0.3. What tests say and are told is in the model of 1.0; cards and raw steps are as they stand. */
export function v03Caller(transport: Transport, place: Place): Caller {
  const codec = judged03();
  const bindings = { jsonrpc: jsonRpcBinding, rest: restBinding, grpc: grpcBinding } as const;
  const caller = serviceCaller(transport, place, () => [bindings[transport]([codec]), codec.version]);
  const http = transport === "grpc" ? undefined : { jsonrpc: jsonRpcCaller, rest: restCaller }[transport](place);
  return { ...caller, errors: "jsonrpc", ...(http?.raw === undefined ? {} : { raw: http.raw }) };
}

/**
 * A custom binding (A2A 1.0 §5.8, §12), by the client that its author handed in. Tests see what that client reads, and errors
 * by their codes over JSON-RPC. Service parameters go to the client as what they are, since only it knows where they travel.
 */
export function customCaller(binding: ClientBinding, version: string, place: Place): Caller {
  const caller = serviceCaller(place.binding, place, () => [binding, version]);
  return { ...caller, errors: "jsonrpc", sendsAnyVersion: false };
}

function serviceCaller(
  transport: string,
  place: Place,
  bind: (version: string) => readonly [binding: ClientBinding, version: string],
): Omit<Caller, "errors"> {
  const { url, tenant, bounds } = place;
  const host = hostOf(place);
  const services = new Map<string, AgentService>();
  const serviceOf = (wanted: string): AgentService => {
    const [binding, version] = bind(wanted);
    const target = { url, protocolBinding: place.binding, protocolVersion: version };
    const made = services.get(wanted) ?? binding.open(target, version, host, place.card);
    services.set(wanted, made);
    return made;
  };
  return {
    transport,
    headers: false,
    sendsAnyVersion: true,
    async call(operation, given, headers, timeout) {
      const name = methods[operation];
      if (name === undefined) return fetchCard(place, headers, timeout);
      const { "a2a-version": version = "", "a2a-extensions": extensions = "", ...outgoing } = headers;
      const params = tenant === undefined ? given : { tenant, ...given };
      const deadline = new Deadline(timeout, bounds.signal);
      const { signal } = deadline;
      let streaming = false;
      const context: CallContext = {
        principal: anonymous,
        version,
        extensions: extensions === "" ? [] : extensions.split(","),
        signal,
        outgoing: { headers: outgoing },
      };
      try {
        const service = serviceOf(version);
        if (!streams(operation)) {
          const unary = name as UnaryName;
          const { payload: answer } = await service.call(unary, params, context);
          const value = answer.value as unknown as Json;
          return { status: 200, headers: {}, value, body: value };
        }
        const { batches } = await service.stream(name as StreamName, params as never, context);
        streaming = true;
        deadline.stopClock();
        const events = eventsOf(batches, transport, bounds.maxBytes);
        const live = new LiveStream({ status: 200, headers: {} }, events, () => deadline.close());
        return { status: 200, headers: {}, stream: { live, payload } };
      } catch (error) {
        if (signal.aborted) throw new Unreachable(`no answer within ${timeout} ms`, { cause: error });
        return refused(error, transport);
      } finally {
        if (!streaming) deadline.close();
      }
    },
  };
}

/** An error that ends a stream stands in it, as it does over HTTP. */
const errorMember = "stream-error";

function payload(raw: Json): { readonly value: Json } | { readonly error: WireError } {
  const error = typeof raw === "object" && raw !== null && errorMember in raw ? raw[errorMember] : undefined;
  return error === undefined ? { value: raw } : { error: error as unknown as WireError };
}

async function* eventsOf(
  batches: AsyncIterable<readonly StreamItem[]>,
  transport: string,
  maxBytes: number,
): AsyncGenerator<Json, void, void> {
  let any = false;
  // What arrived as bytes is not known here: each event counts as its JSON text.
  let bytes = 0;
  try {
    for await (const batch of batches) {
      for (const { payload: event } of batch) {
        any = true;
        bytes += event.json.length;
        if (bytes > maxBytes) throw new BrokenWire(`the stream is longer than ${maxBytes} bytes`);
        yield event.value as unknown as Json;
      }
    }
  } catch (error) {
    if (error instanceof BrokenWire) throw error;
    // Our client misses the end of the task; whether there is one is what a test asks.
    if (any && error instanceof A2AError && error.code === "ConnectionLost" && error.cause === undefined) return;
    yield { [errorMember]: refused(error, transport).error as unknown as Json };
  }
}

/** The error that a call was answered with; what is no answer is thrown. */
function refused(error: unknown, transport: string): Outcome & { readonly error: WireError } {
  if (!(error instanceof A2AError)) throw error;
  if (error.cause instanceof BrokenWire) throw error.cause;
  const { grpc, http } = error.metadata;
  const details = detailsOf(error);
  if (grpc !== undefined) {
    return { status: Number(http), headers: {}, error: wireError(grpc, error.message, details) };
  }
  if (isWireErrorCode(error.code)) {
    const wire = wireErrors[error.code];
    // Over JSON-RPC and gRPC an error of the protocol is none of HTTP.
    const status = transport === "rest" ? wire.http : 200;
    return { status, headers: {}, error: wireError(wire.jsonrpc, error.message, details) };
  }
  if (error.code === "InvalidResponse") throw new BrokenWire(error.message, { cause: error });
  throw new Unreachable(error.message, { cause: error });
}

/** The details as they stood on the wire: the client has made `fields` of those on fields (A2A 1.0 §3.3.2). */
function detailsOf({ details, fields }: A2AError): readonly Json[] | undefined {
  const violations = fields.map(({ field, description }) => ({ field, description }));
  const all = [
    ...(details as readonly Json[]),
    ...(violations.length === 0
      ? []
      : [{ "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations: violations }]),
  ];
  return all.length === 0 ? undefined : all;
}
