import { context, propagation, trace, type Attributes } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
  type SpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll } from "vitest";
import { defineAgent, type AgentDefinition } from "@parley/server/internal/agent/index";

/** An SDK 2 whose spans are kept in memory. Contexts and propagators are global, as with a real SDK. */
export class Spans {
  readonly exporter: InMemorySpanExporter = new InMemorySpanExporter();
  readonly provider: BasicTracerProvider;

  constructor(others: readonly SpanProcessor[] = []) {
    this.provider = new BasicTracerProvider({
      spanProcessors: [new SimpleSpanProcessor(this.exporter), ...others],
    });
  }

  get finished(): readonly ReadableSpan[] {
    return this.exporter.getFinishedSpans();
  }

  named(name: string): ReadableSpan {
    const found = this.finished.find((span) => span.name === name);
    if (found === undefined)
      throw new Error(`No span ${name} among ${this.finished.map((span) => span.name).join(", ")}`);
    return found;
  }

  /** The spans as a tree, one line each: name, kind, names of attributes. */
  tree(): readonly string[] {
    const spans = [...this.finished];
    const parentOf = (span: ReadableSpan): string | undefined => span.parentSpanContext?.spanId;
    const ids = new Set(spans.map((span) => span.spanContext().spanId));
    const below = (parent: string | undefined, depth: number): readonly string[] =>
      spans
        .filter((span) => (parent === undefined ? !ids.has(parentOf(span) ?? "") : parentOf(span) === parent))
        .sort((one, other) => time(one) - time(other))
        .flatMap((span) => [
          `${"  ".repeat(depth)}${span.name} ${kinds[span.kind] ?? ""} ${keysOf(span.attributes)}`,
          ...below(span.spanContext().spanId, depth + 1),
        ]);
    return below(undefined, 0);
  }
}

const kinds = ["INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"];

function time({ startTime: [seconds, nanos] }: ReadableSpan): number {
  return seconds * 1e9 + nanos;
}

function keysOf(attributes: Attributes): string {
  return Object.keys(attributes).sort().join(" ");
}

/** Registers what an SDK registers for a process, while the tests of a file run. */
export function registered(): void {
  beforeAll(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator(
      new CompositePropagator({ propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()] }),
    );
  });
  afterAll(() => {
    context.disable();
    propagation.disable();
    trace.disable();
  });
}

export function agentOf(name: string, onMessage: AgentDefinition["onMessage"]): ReturnType<typeof defineAgent> {
  return defineAgent({ name, description: `The agent ${name}`, version: "1.2.3", skills: [], onMessage });
}
