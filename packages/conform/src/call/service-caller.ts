import { A2AError, isWireErrorCode } from "@parley/a2a/internal/model/index";
import {
  anonymous,
  type AgentService,
  type CallContext,
  type OperationName,
  type StreamItem,
} from "@parley/a2a/internal/protocol/index";
import { defined } from "@parley/a2a/internal/base/defined";
import { systemClock } from "@parley/a2a/internal/base/index";
import { wireErrors } from "@parley/a2a/model";
import { jsonRpcBinding, restBinding, type ClientBinding } from "@parley/a2a/internal/client/index";
import type { ClientHost } from "@parley/a2a/internal/transport/client/binding";
import { codecV03, codecV1 } from "@parley/a2a/internal/wires";
import type { Codec, Shapes, GrpcWire, JsonRpcCodec, RestCodec } from "@parley/a2a/internal/wire/codec";
import { grpcBinding } from "@parley/grpc/client";
import { methods, type Caller, type OpenStream, type Outcome, type Place } from "./caller.ts";
import { wireError, type WireError } from "../judge/errors.ts";
import type { Json, JsonMap, Transport } from "../acts/format.ts";
import { asJson, isList, member, textOf } from "../acts/values.ts";
import { fetchCard, jsonRpcCaller, restCaller } from "./http-callers.ts";
import { Deadline, NoAnswer } from "./http.ts";
import { shapeProblem } from "../judge/shapes.ts";
import { InvalidAnswer, LiveStream } from "./stream.ts";

/*
 * Callers that use Parley's client. That client is lenient, which could hide errors, so it gets the runner's own codec. For gRPC the codec
 * passes each message on unchanged. For 0.3 it checks the shape of a response before it is translated.
 */

/** Keeps the gRPC status of a failed call in the metadata of the error. */
const decodeStatus: GrpcWire["decodeError"] = (status, body) => {
  const error = member(body, "error");
  const details = member(error, "details");
  const metadata = { grpc: textOf(member(error, "status") ?? ""), http: String(status) };
  return new A2AError("InternalError", textOf(member(error, "message") ?? ""), {
    metadata,
    details: isList(details) ? details : [],
  });
};

/** Returns the value with the type that the codec requires. Tests check the value. */
function unchanged(...values: readonly unknown[]): never {
  return values.at(-1) as never;
}

function passThroughCodec(version: string): Codec {
  const shapes: GrpcWire = {
    ...codecV1.shapes,
    encodeRequest: (_, request) => request,
    decodeResponse: unchanged,
    decodeEvent: unchanged,
    endsStream: () => false,
    decodeError: decodeStatus,
  };
  return { ...codecV1, version, shapes };
}

/** Shapes of 0.3 responses, by operation. Other responses are checked after they are translated. */
const answers: Readonly<Partial<Record<OperationName, string>>> = {
  SendMessage: "SendMessageResponse",
  GetTask: "Task",
  CancelTask: "Task",
};

function withShapeChecks<T extends Shapes>(shapes: T, prefix: string): T {
  const demand = (name: string, value: unknown): void => {
    const problem = shapeProblem(`${prefix}${name}`, value);
    if (problem === undefined) return;
    const { path, expected, value: got } = problem;
    throw new InvalidAnswer(
      `the response is not a ${name} of 0.3: expected ${path} to be ${expected}, got ${JSON.stringify(got)}`,
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

/** Calls over gRPC (§10). Tests see neither response headers nor raw bodies. */
export function grpcCaller(place: Place): Caller {
  return {
    ...serviceCaller("grpc", place, (version) => [grpcBinding([passThroughCodec(version)]), version]),
    errors: "grpc",
  };
}

/** Calls in version 0.3. Tests use the model of 1.0 for requests and responses; cards and raw steps are not translated. */
export function v03Caller(transport: Transport, place: Place): Caller {
  const codec = checkedCodecV03();
  const bindings = { jsonrpc: jsonRpcBinding, rest: restBinding, grpc: grpcBinding } as const;
  const caller = serviceCaller(transport, place, () => [bindings[transport]([codec]), codec.version]);
  const http = transport === "grpc" ? undefined : { jsonrpc: jsonRpcCaller, rest: restCaller }[transport](place);
  return { ...caller, errors: "jsonrpc", ...defined({ raw: http?.raw }) };
}

/**
 * Calls over a custom binding (A2A 1.0 §5.8, §12) with its author's client. Tests see the values that this client decodes. Errors have
 * JSON-RPC codes.
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
      const method = methods[operation];
      if (method === undefined) return fetchCard(place, headers, timeout);
      const { "a2a-version": version = "", "a2a-extensions": extensions = "", ...outgoing } = headers;
      const params = tenant === undefined ? given : { tenant, ...given };
      const deadline = new Deadline(timeout, bounds.signal);
      const { signal } = deadline;
      let isOpen = false;
      const context: CallContext = {
        principal: anonymous,
        version,
        extensions: extensions === "" ? [] : extensions.split(","),
        signal,
        outgoing: { headers: outgoing },
      };
      try {
        const service = serviceOf(version);
        if (method.streams !== true) {
          const { payload } = await service.call(method.name, params, context);
          const value = asJson(payload.value);
          return { status: 200, headers: {}, value, body: value };
        }
        const { batches } = await service.stream(method.name, unchanged(params), context);
        isOpen = true;
        deadline.stopClock();
        const stream = openStream(batches, transport, bounds.maxBytes, () => deadline.close());
        return { status: 200, headers: {}, stream };
      } catch (error) {
        if (signal.aborted) throw new NoAnswer(`no response within ${timeout} ms`, { cause: error });
        return errorOutcome(error, transport);
      } finally {
        if (!isOpen) deadline.close();
      }
    },
  };
}

function openStream(
  batches: AsyncIterable<readonly StreamItem[]>,
  transport: string,
  maxBytes: number,
  stop: () => void,
): OpenStream {
  /** The errors that ended streams, by the events that represent them. */
  const errors = new Map<Json, WireError>();
  async function* events(): AsyncGenerator<Json, void, void> {
    let any = false;
    // The client does not report received bytes, so count the JSON of each event.
    let bytes = 0;
    try {
      for await (const batch of batches) {
        for (const { payload } of batch) {
          any = true;
          bytes += payload.json.length;
          if (bytes > maxBytes) throw new InvalidAnswer(`the stream is larger than ${maxBytes} bytes`);
          yield asJson(payload.value);
        }
      }
    } catch (error) {
      if (error instanceof InvalidAnswer) throw error;
      // The client reports that the task did not end. Whether it must end is for the test to check.
      if (any && error instanceof A2AError && error.code === "ConnectionLost" && error.cause === undefined) return;
      const event: JsonMap = {};
      errors.set(event, errorOutcome(error, transport).error);
      yield event;
    }
  }
  return {
    live: new LiveStream({ status: 200, headers: {} }, events(), stop),
    payload(value) {
      const error = errors.get(value);
      return error === undefined ? { value } : { error };
    },
  };
}

/** The outcome of a call that failed. Throws if the server did not send the error. */
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
    // Over JSON-RPC and gRPC, protocol errors have no HTTP status of their own.
    const limited = error.code === "TooManyRequests";
    const status = transport === "rest" || limited ? wire.http : 200;
    const headers = defined({ "retry-after": error.retryAfter?.toString() });
    return { status, headers, error: wireError(wire.jsonrpc, error.message, details) };
  }
  if (error.code === "InvalidResponse") throw new InvalidAnswer(error.message, { cause: error });
  throw new NoAnswer(error.message, { cause: error });
}

/** The details as the server sent them. The client moves details about fields to `fields` (A2A 1.0 §3.3.2). */
function detailsOf({ details, fields }: A2AError): readonly Json[] | undefined {
  const fieldViolations = fields.map(({ field, description }) => ({ field, description }));
  const sent = isList(details) ? details : [];
  const badRequest = { "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations };
  const all: readonly Json[] = [...sent, ...(fields.length === 0 ? [] : [badRequest])];
  return all.length === 0 ? undefined : all;
}
