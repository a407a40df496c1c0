import { A2AError, anonymous, systemClock, type StreamResponse } from "@parley/a2a";
import type { AgentService, CallContext, StreamItem, StreamName, UnaryName } from "@parley/a2a/protocol";
import type { ClientHost, Codec } from "@parley/a2a/transport";
import { codecV1 } from "@parley/a2a/wires";
import { grpcBinding } from "@parley/grpc";
import { methods, streams, type Caller, type Outcome, type Place } from "./caller.ts";
import { wireError, type WireError } from "./errors.ts";
import type { Json } from "./format.ts";
import { fetchCard } from "./http-callers.ts";
import { Unreachable } from "./http.ts";
import { BrokenWire, LiveStream } from "./stream.ts";

/** What our client is given in place of a codec: it hands the ProtoJSON of each message on, with no reading of ours in between. */
function judge(version: string): Codec {
  const shapes: Codec["rest"] = {
    ...codecV1.rest,
    encodeRequest: (_, request) => request,
    decodeResponse: (_, value) => value as never,
    decodeEvent: (value) => value as StreamResponse,
    // The server says when its stream is over, not its events.
    endsStream: () => false,
    decodeError(status, body) {
      const { error } = body as { error: { status: string; message: string; details: readonly unknown[] } };
      const metadata = { grpc: error.status, http: String(status) };
      return new A2AError("InternalError", error.message, { metadata, details: error.details });
    },
  };
  return { ...codecV1, version, rest: shapes, grpc: shapes };
}

const host: ClientHost = {
  fetch: (url, init) => fetch(url, init),
  headers: {},
  clock: systemClock,
  limits: { connectTimeout: false, idleTimeout: false, maxResponseBytes: 64 << 20, maxEventChars: 64 << 20 },
};

/** gRPC (§10), by our own client. What only HTTP can say, raw bodies and headers of answers, it has not. */
export function grpcCaller(place: Place): Caller {
  const { url, tenant } = place;
  const services = new Map<string, AgentService>();
  const serviceOf = (version: string): AgentService => {
    const target = { url, protocolBinding: "GRPC", protocolVersion: version };
    const made = services.get(version) ?? grpcBinding([judge(version)]).open(target, version, host, place.card);
    services.set(version, made);
    return made;
  };
  return {
    transport: "grpc",
    async call(operation, given, headers, timeout) {
      const name = methods[operation];
      if (name === undefined) return fetchCard(place, headers, timeout);
      const { "a2a-version": version = "", ...outgoing } = headers;
      const service = serviceOf(version);
      const params = tenant === undefined ? given : { tenant, ...given };
      const controller = new AbortController();
      const late = setTimeout(() => controller.abort(), timeout);
      const context: CallContext = {
        principal: anonymous,
        version,
        extensions: [],
        signal: controller.signal,
        outgoing: { headers: outgoing },
      };
      try {
        if (!streams(operation)) {
          const unary = name as UnaryName;
          const { value } = await service.call(unary, params, context);
          return { status: 200, headers: {}, value: value as unknown as Json, body: value as unknown as Json };
        }
        const { batches } = await service.stream(name as StreamName, params as never, context);
        const live = new LiveStream({ status: 200, headers: {} }, eventsOf(batches), () => controller.abort());
        return { status: 200, headers: {}, stream: { live, payload } };
      } catch (error) {
        if (controller.signal.aborted) throw new Unreachable(`no answer within ${timeout} ms`, { cause: error });
        return refused(error);
      } finally {
        clearTimeout(late);
      }
    },
  };
}

/** An error that ends a stream stands in it, as it does over HTTP. */
const errorMember = "grpc-error";

function payload(raw: Json): { readonly value: Json } | { readonly error: WireError } {
  const error = typeof raw === "object" && raw !== null && errorMember in raw ? raw[errorMember] : undefined;
  return error === undefined ? { value: raw } : { error: error as unknown as WireError };
}

async function* eventsOf(batches: AsyncIterable<readonly StreamItem[]>): AsyncGenerator<Json, void, void> {
  let any = false;
  try {
    for await (const batch of batches) {
      for (const { event } of batch) {
        any = true;
        yield event as unknown as Json;
      }
    }
  } catch (error) {
    // Our client misses the end of the task; whether there is one is what a test asks.
    if (any && error instanceof A2AError && error.code === "ConnectionLost" && error.cause === undefined) return;
    yield { [errorMember]: refused(error).error as unknown as Json };
  }
}

/** The status of a call that failed (§10.6); what is no status at all is thrown. */
function refused(error: unknown): Outcome & { readonly error: WireError } {
  if (!(error instanceof A2AError)) throw error;
  const { grpc, http } = error.metadata;
  if (grpc !== undefined) {
    const details = error.details as readonly Json[];
    const found = wireError(grpc, error.message, details.length === 0 ? undefined : details);
    return { status: Number(http), headers: {}, error: found };
  }
  if (error.code === "Unauthenticated" || error.code === "PermissionDenied") {
    const status = error.code === "Unauthenticated" ? 401 : 403;
    return { status, headers: {}, error: wireError(status, error.message, undefined) };
  }
  if (error.code === "InvalidResponse") throw new BrokenWire(error.message, { cause: error });
  throw new Unreachable(error.message, { cause: error });
}
