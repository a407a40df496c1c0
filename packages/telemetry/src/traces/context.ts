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

/** What a `traceparent` names; `undefined` if there is none, or if it is not valid. */
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

/** Whether a `traceparent` names this span. Without both it does. */
export function isOf(trace: string | undefined, span: SpanContext | undefined): boolean {
  if (trace === undefined || span === undefined) return trace === undefined && span === undefined;
  return trace.startsWith(span.traceId, 3) && trace.startsWith(span.spanId, 36);
}

/** A link to a span of before. */
export function linkTo(context: SpanContext | undefined, relationship: string): readonly Link[] {
  return context === undefined ? [] : [{ context, attributes: { [attribute.relationship]: relationship } }];
}

const getter: TextMapGetter<HeaderReader> = {
  get: (read, name) => read(name.toLowerCase()),
  // No propagator of OpenTelemetry lists headers; the W3C ones ask for theirs by name.
  keys: () => ["traceparent", "tracestate", "baggage"],
};

/**
 * The context of a request. The context that is active already counts where it has a span of the same trace: that of the transport, or of the
 * client in this process.
 */
export function incoming(active: Context, headers: HeaderReader | undefined, trace: string | undefined): Context {
  const extracted = headers === undefined ? active : propagation.extract(active, headers, getter);
  const own = traces.getSpanContext(active);
  const theirs = traces.getSpanContext(extracted);
  if (own !== undefined && own.traceId === theirs?.traceId && own.isRemote !== true) return active;
  if (theirs !== undefined && theirs !== own) return extracted;
  // Somebody calls in this process, or no propagator is registered.
  const named = parsed(trace);
  if (named === undefined || named.traceId === own?.traceId) return extracted;
  return traces.setSpanContext(extracted, named);
}

/** The headers that carry a context, beside `traceparent`. `undefined`: there are none. */
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

/** The SERVER span of an instrumented transport. `undefined`: there is none. */
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

/** Spans of an SDK have a kind. */
function kindOf(span: Span): unknown {
  return "kind" in span ? span.kind : undefined;
}

/** Whether the transport is gRPC: its span keeps its name. */
export function isGrpc(span: Span): boolean {
  if (!("attributes" in span) || typeof span.attributes !== "object" || span.attributes === null) return false;
  const { attributes } = span;
  const system =
    "rpc.system.name" in attributes
      ? attributes["rpc.system.name"]
      : "rpc.system" in attributes && attributes["rpc.system"];
  return system === "grpc";
}

/** How much is remembered of tasks, in bytes. */
const bytes = 1 << 20;

/** The spans in which tasks began that this process was called for or runs, for links. Those of older tasks are forgotten. */
export class Origins {
  readonly #known = new BoundedMap<SpanContext>({ bytes, bytesOf: (key) => 2 * key.length + 400 });

  /** The span in which a task began, as far as it is known here. */
  of(taskId: string | undefined): SpanContext | undefined {
    return taskId === undefined ? undefined : this.#known.get(taskId);
  }

  /** Remembers the span of a task, unless there is one. What was not sampled cannot be looked at. */
  note(taskId: string, span: SpanContext): void {
    if ((span.traceFlags & TraceFlags.SAMPLED) === 0 || this.#known.get(taskId) !== undefined) return;
    this.#known.set(taskId, span);
  }
}

/** A context without a span, which keeps the rest of the active one. */
export function rootless(): Context {
  return traces.deleteSpan(contexts.active());
}
