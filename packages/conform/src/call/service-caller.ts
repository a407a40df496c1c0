import { A2AError, type StreamResponse, isWireErrorCode } from "@parley/a2a/internal/model/index";
import {
  anonymous,
  type AgentService,
  type CallContext,
  type OperationName,
  type StreamItem,
  type StreamName,
  type UnaryName,
} from "@parley/a2a/internal/protocol/index";
import { defined } from "@parley/a2a/internal/base/defined";
import { systemClock } from "@parley/a2a/internal/base/index";
import { wireErrors } from "@parley/a2a/model";
import { jsonRpcBinding, restBinding, type ClientBinding } from "@parley/a2a/internal/client/index";
import type { ClientHost } from "@parley/a2a/internal/transport/client/binding";
import { codecV03, codecV1 } from "@parley/a2a/internal/wires";
import type { Codec, Shapes, GrpcWire, JsonRpcCodec, RestCodec } from "@parley/a2a/internal/wire/codec";
import { grpcBinding } from "@parley/grpc/client";
import { methods, streams, type Caller, type Outcome, type Place } from "./caller.ts";
import { wireError, type WireError } from "../judge/errors.ts";
import type { Json, Transport } from "../acts/format.ts";
import { fetchCard, jsonRpcCaller, restCaller } from "./http-callers.ts";
import { Deadline, NoAnswer } from "./http.ts";
import { shapeProblem } from "../judge/shapes.ts";
import { InvalidAnswer, LiveStream } from "./stream.ts";

/**
 * Callers that use Parley's client. So that the client's leniency hides nothing, it gets a codec of the runner: for gRPC one that
 * passes each message on unchanged, for 0.3 one that checks the shape of an answer before it is translated.
 */

/** Keeps the gRPC status of a failed call in the metadata of the error. */
const decodeStatus: GrpcWire["decodeError"] = (status, body) => {
  const { error } = body as { error: { status: string; message: string; details: readonly unknown[] } };
  const metadata = { grpc: error.status, http: String(status) };
  return new A2AError("InternalError", error.message, { metadata, details: error.details });
};

function passThroughCodec(version: string): Codec {
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

/** Shapes of the answers of 0.3, by operation. Other answers are judged after their translation. */
const answers: Readonly<Partial<Record<OperationName, string>>> = {
  SendMessage: "SendMessageResponse",
  GetTask: "Task",
  CancelTask: "Task",
};

function withShapeChecks<T extends Shapes>(shapes: T, prefix: string): T {
  const demand = (name: string, value: unknown): void => {
    const problem = shapeProblem(`${prefix}${name}`, value as Json);
    if (problem === undefined) return;
    const { path, expected, value: got } = problem;
    throw new InvalidAnswer(
      `the answer is not a ${name} of 0.3: ${path} should be ${expected}, is ${JSON.stringify(got)}`,
    );
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

function checkedCodecV03(): JsonRpcCodec & RestCodec {
  const { JSONRPC: jsonRpc, "HTTP+JSON": rest, GRPC: grpc } = codecV03.bindings;
  return {
    ...codecV03,
    bindings: {
      JSONRPC: withShapeChecks(jsonRpc, "0.3/"),
      "HTTP+JSON": withShapeChecks(rest, "0.3/proto/"),
      GRPC: withShapeChecks(grpc, "0.3/proto/"),
    },
  };
}

const hostOf = ({ bounds: { maxBytes } }: Place): ClientHost => ({
  fetch: (url, init) => fetch(url, init),
  headers: {},
  clock: systemClock,
  limits: { connectTimeout: false, idleTimeout: false, maxResponseBytes: maxBytes, maxEventBytes: maxBytes },
});

/** Calls over gRPC (§10). Tests see neither headers of answers nor raw bodies. */
export function grpcCaller(place: Place): Caller {
  return {
    ...serviceCaller("grpc", place, (version) => [grpcBinding([passThroughCodec(version)]), version]),
    errors: "grpc",
  };
}

/** Calls in version 0.3. Requests and answers of tests are in the model of 1.0; cards and raw steps are not translated. */
export function v03Caller(transport: Transport, place: Place): Caller {
  const codec = checkedCodecV03();
  const bindings = { jsonrpc: jsonRpcBinding, rest: restBinding, grpc: grpcBinding } as const;
  const caller = serviceCaller(transport, place, () => [bindings[transport]([codec]), codec.version]);
  const http = transport === "grpc" ? undefined : { jsonrpc: jsonRpcCaller, rest: restCaller }[transport](place);
  return { ...caller, errors: "jsonrpc", ...defined({ raw: http?.raw }) };
}

/**
 * Calls over a custom binding (A2A 1.0 §5.8, §12), by the client that its author handed in. Tests see what that client decodes,
 * and errors have the codes of JSON-RPC.
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
        if (signal.aborted) throw new NoAnswer(`no answer within ${timeout} ms`, { cause: error });
        return errorOutcome(error, transport);
      } finally {
        if (!streaming) deadline.close();
      }
    },
  };
}

/** The member of an event that stands for the error that ended a stream. */
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
  // The client does not tell how many bytes came: each event counts with the length of its JSON.
  let bytes = 0;
  try {
    for await (const batch of batches) {
      for (const { payload: event } of batch) {
        any = true;
        bytes += event.json.length;
        if (bytes > maxBytes) throw new InvalidAnswer(`the stream is longer than ${maxBytes} bytes`);
        yield event.value as unknown as Json;
      }
    }
  } catch (error) {
    if (error instanceof InvalidAnswer) throw error;
    // The client complains that the task did not end. Whether it has to is for the test to judge.
    if (any && error instanceof A2AError && error.code === "ConnectionLost" && error.cause === undefined) return;
    yield { [errorMember]: errorOutcome(error, transport).error as unknown as Json };
  }
}

/** The outcome of a call that was answered with an error. Throws where the error is not an answer of the server. */
function errorOutcome(error: unknown, transport: string): Outcome & { readonly error: WireError } {
  if (!(error instanceof A2AError)) throw error;
  if (error.cause instanceof InvalidAnswer) throw error.cause;
  const { grpc, http } = error.metadata;
  const details = detailsOf(error);
  if (grpc !== undefined) {
    return { status: Number(http), headers: {}, error: wireError(grpc, error.message, details) };
  }
  if (isWireErrorCode(error.code)) {
    const wire = wireErrors[error.code];
    // Over JSON-RPC and gRPC the HTTP status says nothing about an error of the protocol.
    const limited = error.code === "TooManyRequests";
    const status = transport === "rest" || limited ? wire.http : 200;
    const headers = defined({ "retry-after": error.retryAfter?.toString() });
    return { status, headers, error: wireError(wire.jsonrpc, error.message, details) };
  }
  if (error.code === "InvalidResponse") throw new InvalidAnswer(error.message, { cause: error });
  throw new NoAnswer(error.message, { cause: error });
}

/** The details as the server sent them. The client moves those about fields to `fields` (A2A 1.0 §3.3.2). */
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
