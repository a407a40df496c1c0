import { context as contexts, type Context, type Span } from "@opentelemetry/api";
import type { A2AError } from "@parley/a2a/internal/model/index";
import type {
  AgentEvent,
  DeliveryObservation,
  DeliveryResult,
  Observation,
  ObservedAnswer,
} from "@parley/a2a/internal/protocol/index";
import { attribute } from "../names.ts";
import { setAnswer, setContent, setError } from "./attributes.ts";
import type { Content } from "./content.ts";
import { traceparentOf, type Origins } from "./context.ts";

/* Observations with their contexts. Classes, because each message creates two. */

const noFaults: ReadonlySet<string> = new Set();

type Headers = Readonly<Record<string, string>>;

/** An unrecorded observation: only the context, the `traceparent` and the headers of a request. */
export class Passed implements Observation {
  declare readonly trace?: string;
  declare readonly headers?: Headers;
  readonly #inner: Context;

  constructor(span: Span, inner: Context, headers?: Headers) {
    this.#inner = inner;
    const trace = traceparentOf(span);
    if (trace !== undefined) this.trace = trace;
    if (headers !== undefined) this.headers = headers;
  }

  run<T>(work: () => T): T {
    return contexts.with(this.#inner, work);
  }
}

/** A recorded span. Ends with the observation. */
export class Recorded extends Passed {
  readonly #span: Span;

  constructor(span: Span, inner: Context, headers?: Headers) {
    super(span, inner, headers);
    this.#span = span;
  }

  end(error?: A2AError): void {
    setError(this.#span, error);
    this.#span.end();
  }
}

/** Determines the end of a call's span. */
export interface CallEnd {
  /** The codes that count as failures. Absent: all. */
  readonly faults?: ReadonlySet<string>;
  /** Whether the transport ends the span. */
  readonly isOfTransport?: true;
}

/** A call or a request. Its result sets attributes of the span; the last state takes precedence. */
export class Called extends Passed {
  readonly #span: Span;
  readonly #origins: Origins;
  readonly #end: CallEnd;
  #last: ObservedAnswer | undefined;

  constructor(span: Span, inner: Context, origins: Origins, end: CallEnd, headers?: Headers) {
    super(span, inner, headers);
    this.#span = span;
    this.#origins = origins;
    this.#end = end;
  }

  answered(answer: ObservedAnswer): void {
    if (answer.contextId !== undefined) this.#last = this.#last === undefined ? answer : { ...this.#last, ...answer };
    if (answer.taskId !== undefined) this.#origins.note(answer.taskId, this.#span.spanContext());
  }

  end(error?: A2AError): void {
    const { faults, isOfTransport } = this.#end;
    if (this.#last !== undefined) setAnswer(this.#span, this.#last);
    setError(this.#span, error, faults);
    if (isOfTransport === undefined) this.#span.end();
  }
}

/** A turn whose content is exported. */
export class Shown extends Passed {
  readonly #span: Span;
  readonly #input: Content;
  readonly #output: Content;

  constructor(span: Span, inner: Context, input: Content, output: Content) {
    super(span, inner);
    this.#span = span;
    this.#input = input;
    this.#output = output;
  }

  yielded(events: readonly AgentEvent[]): void {
    this.#output.addEvents(events);
  }

  end(error?: A2AError): void {
    setContent(this.#span, attribute.input, this.#input);
    setContent(this.#span, attribute.output, this.#output);
    setError(this.#span, error);
    this.#span.end();
    for (const content of [this.#input, this.#output]) content.tell();
  }
}

/** A delegation. While active, its context can be found by its `traceparent`. */
export class Delegated extends Passed {
  readonly #span: Span;
  readonly #open: Map<string, Context>;

  constructor(span: Span, inner: Context, open: Map<string, Context>) {
    super(span, inner);
    this.#span = span;
    this.#open = open;
    if (this.trace !== undefined) open.set(this.trace, inner);
  }

  end(error?: A2AError): void {
    if (this.trace !== undefined) this.#open.delete(this.trace);
    setError(this.#span, error);
    this.#span.end();
  }
}

/** An attempt to post to a webhook. */
export class Delivered extends Passed implements DeliveryObservation {
  readonly #span: Span;

  constructor(span: Span, inner: Context, headers?: Headers) {
    super(span, inner, headers);
    this.#span = span;
  }

  end({ status, error }: DeliveryResult): void {
    if (status !== undefined) this.#span.setAttribute(attribute.httpStatus, status);
    // A stopping server aborts attempts, and repeats them when it starts again: the receiver has not failed.
    setError(this.#span, error, error?.code === "Aborted" ? noFaults : undefined);
    this.#span.end();
  }
}
