import {
  context as contexts,
  SpanKind,
  SpanStatusCode,
  trace as traces,
  type Attributes,
  type Context,
  type Link,
  type Span,
  type SpanContext,
  type Tracer,
} from "@opentelemetry/api";
import type { A2AError } from "@parley/a2a/internal/model/index";
import type {
  CallFacts,
  DeliveryObservation,
  Observation,
  ObservedAgent,
  ObservedAnswer,
  ObservedCall,
  ObservedDelegation,
  ObservedDelivery,
  Observer,
  ObservedRequest,
  ObservedStep,
  ObservedTurn,
} from "@parley/a2a/internal/protocol/index";
import { attribute, bounded } from "../names.ts";
import { Content, type Redact } from "./content.ts";
import {
  incoming,
  isGrpc,
  linkTo,
  Origins,
  outgoing,
  parsed,
  rootless,
  traceparentOf,
  transportSpan,
} from "./context.ts";

/** What is traced, and how. */
export interface TraceSettings {
  readonly tracer: Tracer;
  /** Whether the span of an instrumented transport is enriched. */
  readonly enriches: boolean;
  readonly agentSpans: boolean;
  readonly userIds: boolean;
  readonly content: Redact | undefined;
}

/** Errors that are the server's own fault: only these are the status of its span. */
const faults: ReadonlySet<string> = new Set(["InternalError", "InvalidAgentResponse", "Unavailable", "Timeout"]);

/** An observer that makes spans. */
export class Tracing implements Observer {
  readonly #settings: TraceSettings;
  /** Spans of transports that have a call already: a second one gets a span of its own. */
  readonly #enriched = new WeakSet<Span>();
  readonly #origins = new Origins();
  /** The contexts of the delegations that are under way, by their `traceparent`. */
  readonly #open = new Map<string, Context>();

  constructor(settings: TraceSettings) {
    this.#settings = settings;
  }

  readonly call = (call: ObservedCall): Observation => {
    const { operation, version, card, address, headers, trace } = call;
    const attributes: Attributes = {
      [attribute.method]: operation,
      [attribute.version]: version,
      ...factAttributes(call),
      ...agentAttributes(card),
      ...(address !== undefined && { [attribute.clientAddress]: address }),
    };
    const links = operation === "SubscribeToTask" ? linkTo(this.#origins.of(call.taskId), "resume_origin") : [];
    const transport = this.#settings.enriches ? transportSpan() : undefined;
    if (transport !== undefined && transport.isRecording() && !this.#enriched.has(transport)) {
      this.#enriched.add(transport);
      transport.setAttributes(attributes);
      if (!isGrpc(transport)) transport.updateName(operation);
      for (const link of links) transport.addLink(link);
      return this.#calling(transport, contexts.active(), (error) => finish(transport, error, faults));
    }
    const parent = incoming(headers, trace);
    const span = this.#start(operation, SpanKind.SERVER, attributes, parent, links);
    return this.#calling(span, traces.setSpan(parent, span), (error) => {
      finish(span, error, faults);
      span.end();
    });
  };

  readonly request = (request: ObservedRequest): Observation => {
    const { operation, version, card, url, trace } = request;
    const attributes: Attributes = {
      [attribute.method]: operation,
      [attribute.version]: version,
      ...factAttributes(request),
      ...agentAttributes(card),
      ...addressAttributes(url),
    };
    const resumes = operation === "SubscribeToTask" ? this.#origins.of(request.taskId) : undefined;
    const parent = this.#parentOf(trace);
    const span = this.#start(operation, SpanKind.CLIENT, attributes, parent, linkTo(resumes, "resume_origin"));
    const inner = traces.setSpan(parent, span);
    const { traceparent: _, ...headers } = outgoing(inner);
    const calling = this.#calling(span, inner, (error) => {
      finish(span, error);
      span.end();
    });
    return Object.keys(headers).length > 0 ? { ...calling, headers } : calling;
  };

  readonly turn = (turn: ObservedTurn): Observation => {
    const { agentSpans, content, userIds } = this.#settings;
    const { card, taskId, contextId, principal, attempt } = turn;
    const { parent, links } = this.#segment(turn);
    if (!agentSpans) return { run: (work) => contexts.with(parent, work) };
    const attributes: Attributes = {
      ...agentAttributes(card),
      ...this.#conversation("invoke_agent", contextId),
      [attribute.kind]: "AGENT",
      [attribute.taskId]: taskId,
      [attribute.turn]: turn.turn,
      [attribute.attempt]: attempt,
      ...(userIds && { [attribute.user]: bounded(principal.subject) }),
    };
    const span = this.#start(`invoke_agent ${card.name}`, SpanKind.INTERNAL, attributes, parent, links);
    const inner = traces.setSpan(parent, span);
    const shown = content && span.isRecording() ? new Content(content, "assistant") : undefined;
    if (content !== undefined && shown !== undefined) {
      const asked = new Content(content, "user");
      asked.add(turn.message.parts);
      setJson(span, attribute.input, asked);
    }
    return {
      ...this.#within(span, inner),
      ...(shown && { yielded: (events) => shown.addEvents(events) }),
      end: (error) => {
        if (shown !== undefined) setJson(span, attribute.output, shown);
        finish(span, error);
        span.end();
      },
    };
  };

  readonly step = ({ name, contextId }: ObservedStep): Observation | undefined => {
    if (!this.#settings.agentSpans) return undefined;
    const attributes: Attributes = {
      ...this.#conversation("execute_tool", contextId),
      [attribute.toolName]: bounded(name),
      [attribute.toolType]: "function",
      [attribute.kind]: "TOOL",
    };
    const parent = contexts.active();
    const span = this.#start(`execute_tool ${bounded(name)}`, SpanKind.INTERNAL, attributes, parent);
    return this.#whole(span, traces.setSpan(parent, span));
  };

  readonly delegation = ({ name, url, contextId }: ObservedDelegation): Observation | undefined => {
    if (!this.#settings.agentSpans) return undefined;
    const attributes: Attributes = {
      ...this.#conversation("invoke_agent", contextId),
      [attribute.agentName]: bounded(name),
      [attribute.kind]: "AGENT",
      ...addressAttributes(url),
    };
    const parent = contexts.active();
    const span = this.#start(`invoke_agent ${bounded(name)}`, SpanKind.CLIENT, attributes, parent);
    const inner = traces.setSpan(parent, span);
    const { end, trace, ...whole } = this.#whole(span, inner);
    if (trace === undefined) return { ...whole, ...(end && { end }) };
    this.#open.set(trace, inner);
    return {
      ...whole,
      trace,
      end: (error) => {
        this.#open.delete(trace);
        end?.(error);
      },
    };
  };

  readonly delivery = (delivery: ObservedDelivery): DeliveryObservation => {
    const { taskId, origin, attempt, trace } = delivery;
    const attributes: Attributes = {
      [attribute.taskId]: taskId,
      [attribute.webhookAttempt]: attempt,
      ...addressAttributes(origin),
    };
    const event = parsed(trace);
    // A retry may come hours later: it is a trace of its own.
    const parent = event === undefined || attempt > 1 ? rootless() : traces.setSpanContext(rootless(), event);
    const span = this.#start("webhook delivery", SpanKind.CLIENT, attributes, parent, linkTo(event, "origin"));
    const inner = traces.setSpan(parent, span);
    const { traceparent: _, ...headers } = outgoing(inner);
    return {
      ...this.#within(span, inner),
      ...(Object.keys(headers).length > 0 && { headers }),
      end: ({ status, error }) => {
        if (status !== undefined) span.setAttribute(attribute.httpStatus, status);
        finish(span, error);
        span.end();
      },
    };
  };

  #start(name: string, kind: SpanKind, attributes: Attributes, parent: Context, links: readonly Link[] = []): Span {
    const linked = links.length === 0 ? {} : { links: [...links] };
    return this.#settings.tracer.startSpan(name, { kind, attributes, ...linked }, parent);
  }

  /** What is active within a span: its context, and its `traceparent`. */
  #within(span: Span, inner: Context): Pick<Observation, "run" | "trace"> {
    const trace = traceparentOf(span);
    return { run: (work) => contexts.with(inner, work), ...(trace !== undefined && { trace }) };
  }

  #whole(span: Span, inner: Context): Observation {
    return {
      ...this.#within(span, inner),
      end: (error) => {
        finish(span, error);
        span.end();
      },
    };
  }

  /** A call or a request: the result refines its span, and the last state wins. */
  #calling(span: Span, inner: Context, end: (error?: A2AError) => void): Observation {
    let last: ObservedAnswer | undefined;
    return {
      ...this.#within(span, inner),
      answered: (answer) => {
        if (answer.contextId !== undefined) last = { ...last, ...answer };
        if (answer.taskId !== undefined && last?.taskId !== undefined) this.#origins.note(answer.taskId, span);
      },
      end: (error) => {
        if (last !== undefined) span.setAttributes(answerAttributes(last));
        end(error);
      },
    };
  }

  #conversation(operation: string, contextId: string): Attributes {
    const id = bounded(contextId);
    return { [attribute.genOperation]: operation, [attribute.conversation]: id, [attribute.session]: id };
  }

  /** The context of what was named, or the active one. */
  #parentOf(trace: string | undefined): Context {
    const active = contexts.active();
    const open = trace === undefined ? undefined : this.#open.get(trace);
    if (open !== undefined) return open;
    const named = parsed(trace);
    if (named === undefined || named.spanId === traces.getSpanContext(active)?.spanId) return active;
    return traces.setSpanContext(active, named);
  }

  /**
   * Where a turn belongs: below its call while that is active. A turn that begins later, after another turn, a restart or on another node, is
   * a trace of its own that is linked to the call. So no trace is open for days.
   */
  #segment({ trace, taskId, turn, attempt }: ObservedTurn): {
    readonly parent: Context;
    readonly links: readonly Link[];
  } {
    const called = parsed(trace);
    const active = contexts.active();
    const isWithin = attempt === 1 && isSame(called, traces.getSpanContext(active));
    const first = turn > 1 || attempt > 1 ? this.#origins.of(taskId) : undefined;
    const relationship = attempt > 1 ? "resume_origin" : "origin";
    const links = [
      ...(isWithin ? [] : linkTo(called, relationship)),
      ...(isSame(first, called) ? [] : linkTo(first, "task_origin")),
    ];
    if (isWithin) return { parent: active, links };
    // Without a span for the turn, what is called within would belong to nothing.
    const isOwn = this.#settings.agentSpans || called === undefined;
    return { parent: isOwn ? rootless() : traces.setSpanContext(rootless(), called), links };
  }
}

function isSame(one: SpanContext | undefined, other: SpanContext | undefined): boolean {
  return one?.spanId === other?.spanId && one?.traceId === other?.traceId;
}

/** The error of a span. Its message may have content, and is in the log. `faults`: the codes that count as failures. */
function finish(span: Span, error: A2AError | undefined, of?: ReadonlySet<string>): void {
  if (error === undefined) return;
  span.setAttribute(attribute.error, error.code);
  if (of === undefined || of.has(error.code)) span.setStatus({ code: SpanStatusCode.ERROR });
}

function setJson(span: Span, name: string, { json }: Content): void {
  if (json !== undefined) span.setAttribute(name, json);
}

function factAttributes({ taskId, contextId, messageId, tenant, referenceTaskIds }: CallFacts): Attributes {
  return {
    ...(tenant !== undefined && { [attribute.tenant]: bounded(tenant) }),
    ...(messageId !== undefined && { [attribute.messageId]: bounded(messageId) }),
    ...(taskId !== undefined && { [attribute.taskId]: bounded(taskId) }),
    ...(contextId !== undefined && { [attribute.conversation]: bounded(contextId) }),
    ...(referenceTaskIds !== undefined &&
      referenceTaskIds.length > 0 && { [attribute.referenceTaskIds]: referenceTaskIds.slice(0, 20).map(bounded) }),
  };
}

function answerAttributes({ taskId, contextId, state }: ObservedAnswer): Attributes {
  return {
    ...(taskId !== undefined && { [attribute.taskId]: bounded(taskId) }),
    ...(contextId !== undefined && { [attribute.conversation]: bounded(contextId) }),
    ...(state !== undefined && { [attribute.taskState]: state }),
  };
}

function agentAttributes(card: ObservedAgent | undefined): Attributes {
  if (card === undefined) return {};
  const { name, description, version } = card;
  return {
    [attribute.agentName]: bounded(name),
    ...(description !== "" && { [attribute.agentDescription]: bounded(description) }),
    ...(version !== "" && { [attribute.agentVersion]: bounded(version) }),
  };
}

const ports: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

function addressAttributes(url: string | undefined): Attributes {
  if (url === undefined) return {};
  // A custom binding may have any address, such as `host:port` of gRPC.
  const whole = url.includes("://") ? url : `grpc://${url}`;
  if (!URL.canParse(whole)) return {};
  const { hostname, port, protocol } = new URL(whole);
  const known = port === "" ? ports[protocol] : Number(port);
  return { [attribute.serverAddress]: hostname, ...(known !== undefined && { [attribute.serverPort]: known }) };
}
