import {
  context as contexts,
  INVALID_SPANID,
  INVALID_TRACEID,
  isSpanContextValid,
  propagation,
  trace as traces,
  TraceFlags,
  type Context,
  type Link,
  type Span,
  type SpanContext,
  type TextMapGetter,
} from "@opentelemetry/api";
import { BoundedMap } from "@parley/a2a/internal/base/bounded-map";
import type { HeaderReader } from "@parley/a2a/internal/protocol/index";
import { attribute } from "../names.ts";

/* Contexts and W3C traceparents. */

/** W3C Trace Context §3.2.2. */
const form = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/;

/** The span that a `traceparent` names; `undefined` if it is absent or invalid. */
export function parsed(trace: string | undefined): SpanContext | undefined {
  if (trace === undefined) return undefined;
  const [, traceId = "", spanId = "", flags = ""] = form.exec(trace) ?? [];
  const found: SpanContext = { traceId, spanId, traceFlags: parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true };
  return isSpanContextValid(found) ? found : undefined;
}

/** The `traceparent` of a span; `undefined` without an SDK. */
export function traceparentOf(span: Span): string | undefined {
  const { traceId, spanId, traceFlags } = span.spanContext();
  if (traceId === INVALID_TRACEID || spanId === INVALID_SPANID) return undefined;
  const flags = traceFlags === 1 ? "01" : traceFlags === 0 ? "00" : traceFlags.toString(16).padStart(2, "0");
  return `00-${traceId}-${spanId}-${flags}`;
}

/** Whether a `traceparent` names this span. True if both are absent. */
export function isOf(trace: string | undefined, span: SpanContext | undefined): boolean {
  if (trace === undefined || span === undefined) return trace === undefined && span === undefined;
  return trace.startsWith(span.traceId, 3) && trace.startsWith(span.spanId, 36);
}

/** A link to an earlier span. */
export function linkTo(context: SpanContext | undefined, relationship: string): readonly Link[] {
  return context === undefined ? [] : [{ context, attributes: { [attribute.relationship]: relationship } }];
}

const getter: TextMapGetter<HeaderReader> = {
  get: (read, name) => read(name.toLowerCase()),
  // OpenTelemetry's propagators do not list headers; the W3C propagators read theirs by name.
  keys: () => ["traceparent", "tracestate", "baggage"],
};

/**
 * The context of a request. The active context takes precedence if it has a local span of the same trace, from the transport or from a client
 * in this process.
 */
export function incoming(active: Context, headers: HeaderReader | undefined, trace: string | undefined): Context {
  const extracted = headers === undefined ? active : propagation.extract(active, headers, getter);
  const own = traces.getSpanContext(active);
  const theirs = traces.getSpanContext(extracted);
  if (own !== undefined && own.traceId === theirs?.traceId && own.isRemote !== true) return active;
  if (theirs !== undefined && theirs !== own) return extracted;
  // An in-process call has no headers; or no propagator is registered.
  const named = parsed(trace);
  if (named === undefined || named.traceId === own?.traceId) return extracted;
  return traces.setSpanContext(extracted, named);
}

/** The headers that carry a context, except `traceparent`. `undefined`: no such headers. */
export function outgoing(context: Context): Readonly<Record<string, string>> | undefined {
  const { traceparent: _, ...headers } = injected(context);
  return Object.keys(headers).length > 0 ? headers : undefined;
}

function injected(context: Context): Record<string, string> {
  const headers: Record<string, string> = {};
  propagation.inject(context, headers);
  return headers;
}

/** The key under which instrumentations of HTTP keep the span of the request (`@opentelemetry/core`). */
const rpcMetadata = Symbol.for("OpenTelemetry SDK Context Key RPC_METADATA");

/** The SERVER span of an instrumented transport. `undefined`: the transport is not instrumented. */
export function transportSpan(active: Context): Span | undefined {
  const metadata: unknown = active.getValue(rpcMetadata);
  if (typeof metadata === "object" && metadata !== null && "span" in metadata && isSpan(metadata.span))
    return metadata.span;
  const span = traces.getSpan(active);
  return span !== undefined && kindOf(span) === serverKind ? span : undefined;
}

/** `SpanKind.SERVER`. */
const serverKind = 1;

function isSpan(value: unknown): value is Span {
  return typeof value === "object" && value !== null && "setAttributes" in value && "updateName" in value;
}

/** The kind of a span. Only spans of an SDK have one. */
function kindOf(span: Span): unknown {
  return "kind" in span ? span.kind : undefined;
}

/** Whether the transport is gRPC. A gRPC span keeps its name. */
export function isGrpc(span: Span): boolean {
  if (!("attributes" in span) || typeof span.attributes !== "object" || span.attributes === null) return false;
  const { attributes } = span;
  const system =
    "rpc.system.name" in attributes
      ? attributes["rpc.system.name"]
      : "rpc.system" in attributes && attributes["rpc.system"];
  return system === "grpc";
}

/** Maximum memory for origins of tasks, in bytes. */
const bytes = 1 << 20;

/** The spans in which this process's tasks began, for links. Drops the oldest tasks beyond a limit. */
export class Origins {
  readonly #known = new BoundedMap<SpanContext>({ bytes, bytesOf: (key) => 2 * key.length + 400 });

  /** The span in which a task began, if this process knows it. */
  of(taskId: string | undefined): SpanContext | undefined {
    return taskId === undefined ? undefined : this.#known.get(taskId);
  }

  /** Stores the span of a task, unless it has one. Ignores unsampled spans: a link to one would lead nowhere. */
  note(taskId: string, span: SpanContext): void {
    if ((span.traceFlags & TraceFlags.SAMPLED) === 0 || this.#known.get(taskId) !== undefined) return;
    this.#known.set(taskId, span);
  }
}

/** The active context without its span. */
export function rootless(): Context {
  return traces.deleteSpan(contexts.active());
}
