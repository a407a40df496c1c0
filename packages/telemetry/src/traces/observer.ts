import {
  context as contexts,
  SpanKind,
  trace as traces,
  type Context,
  type Link,
  type Span,
  type SpanOptions,
  type Tracer,
} from "@opentelemetry/api";
import type {
  DeliveryObservation,
  Observation,
  ObservedCall,
  ObservedDelegation,
  ObservedDelivery,
  Observer,
  ObservedRequest,
  ObservedStep,
  ObservedTurn,
} from "@parley/a2a/internal/protocol/index";
import { attribute, bounded } from "../names.ts";
import {
  CallBeginnings,
  delegationBeginning,
  deliveryBeginning,
  setAgent,
  setCall,
  setConversation,
  stepBeginning,
  TurnBeginnings,
} from "./attributes.ts";
import { Content, type Redact } from "./content.ts";
import { incoming, isGrpc, isOf, linkTo, Origins, outgoing, parsed, rootless, transportSpan } from "./context.ts";
import { Called, Delegated, Delivered, Passed, Recorded, Shown } from "./opened.ts";

/** Settings of tracing. */
export interface TraceSettings {
  readonly tracer: Tracer;
  /** Whether to enrich the span of an instrumented transport. */
  readonly enriches: boolean;
  readonly agentSpans: boolean;
  readonly userIds: boolean;
  readonly content: Redact | undefined;
}

/** Errors that are the server's fault. Only these set the status of its span to an error. */
const faults: ReadonlySet<string> = new Set(["InternalError", "InvalidAgentResponse", "Unavailable", "Timeout"]);

const noLinks: readonly Link[] = [];

/**
 * An observer that creates spans. An unsampled span costs only a context and a `traceparent`: it gets neither attributes nor
 * an end.
 */
export class Tracing implements Observer {
  readonly #settings: TraceSettings;
  /** Transport spans that a call has enriched. A second call in the same span gets its own span. */
  readonly #enriched = new WeakSet<Span>();
  readonly #origins = new Origins();
  /** The contexts of active delegations, by their `traceparent`. */
  readonly #open = new Map<string, Context>();
  readonly #calls = new CallBeginnings(SpanKind.SERVER);
  readonly #requests = new CallBeginnings(SpanKind.CLIENT);
  readonly #turns = new TurnBeginnings();

  constructor(settings: TraceSettings) {
    this.#settings = settings;
  }

  readonly call = (call: ObservedCall): Observation => {
    const { operation, version, card } = call;
    const active = contexts.active();
    const beginning = this.#calls.of(operation, version, card);
    const links = operation === "SubscribeToTask" ? linkTo(this.#origins.of(call.taskId), "resume_origin") : noLinks;
    const transport = this.#settings.enriches ? transportSpan(active) : undefined;
    if (transport !== undefined && transport.isRecording() && !this.#enriched.has(transport)) {
      this.#enriched.add(transport);
      transport.setAttributes(beginning.attributes ?? {});
      if (!isGrpc(transport)) transport.updateName(operation);
      for (const link of links) transport.addLink(link);
      setServed(transport, call);
      return new Called(transport, active, this.#origins, { faults, isOfTransport: true });
    }
    const parent = incoming(active, call.headers, call.trace);
    const span = this.#start(operation, beginning, parent, links);
    const inner = traces.setSpan(parent, span);
    if (!span.isRecording()) return new Passed(span, inner);
    setServed(span, call);
    return new Called(span, inner, this.#origins, { faults });
  };

  readonly request = (request: ObservedRequest): Observation => {
    const { operation, version, card, url, trace } = request;
    const resumes = operation === "SubscribeToTask" ? this.#origins.of(request.taskId) : undefined;
    const parent = this.#parentOf(trace);
    const beginning = this.#requests.of(operation, version, card, url);
    const span = this.#start(operation, beginning, parent, linkTo(resumes, "resume_origin"));
    const inner = traces.setSpan(parent, span);
    const headers = outgoing(inner);
    if (!span.isRecording()) return new Passed(span, inner, headers);
    setCall(span, request, card);
    return new Called(span, inner, this.#origins, {}, headers);
  };

  readonly turn = (turn: ObservedTurn): Observation => {
    const { agentSpans, content, userIds } = this.#settings;
    const { card, principal } = turn;
    const { parent, links } = this.#segment(turn);
    if (!agentSpans) return { run: (work) => contexts.with(parent, work) };
    const beginning = this.#turns.of(card);
    const span = this.#start(beginning.name, beginning, parent, links);
    const inner = traces.setSpan(parent, span);
    if (!span.isRecording()) return new Passed(span, inner);
    setAgent(span, card);
    setConversation(span, "AGENT", turn.contextId);
    span.setAttribute(attribute.taskId, turn.taskId);
    span.setAttribute(attribute.turn, turn.turn);
    span.setAttribute(attribute.attempt, turn.attempt);
    if (userIds) span.setAttribute(attribute.user, bounded(principal.subject));
    if (content === undefined) return new Recorded(span, inner);
    const asked = new Content(content, "user");
    asked.add(turn.message.parts);
    return new Shown(span, inner, asked, new Content(content, "assistant"));
  };

  readonly step = ({ name, contextId }: ObservedStep): Observation | undefined => {
    if (!this.#settings.agentSpans) return undefined;
    const parent = contexts.active();
    const shown = bounded(name);
    const span = this.#start(`execute_tool ${shown}`, stepBeginning(shown), parent);
    const inner = traces.setSpan(parent, span);
    if (!span.isRecording()) return new Passed(span, inner);
    setConversation(span, "TOOL", contextId);
    span.setAttribute(attribute.toolType, "function");
    return new Recorded(span, inner);
  };

  readonly delegation = (delegation: ObservedDelegation): Observation | undefined => {
    if (!this.#settings.agentSpans) return undefined;
    const parent = contexts.active();
    const span = this.#start(`invoke_agent ${bounded(delegation.name)}`, delegationBeginning(delegation), parent);
    const inner = traces.setSpan(parent, span);
    if (span.isRecording()) setConversation(span, "AGENT", delegation.contextId);
    return new Delegated(span, inner, this.#open);
  };

  readonly delivery = (delivery: ObservedDelivery): DeliveryObservation => {
    const { taskId, origin, attempt, trace } = delivery;
    const event = parsed(trace);
    // A retry may come hours later, so it gets its own trace.
    const parent = event === undefined || attempt > 1 ? rootless() : traces.setSpanContext(rootless(), event);
    const span = this.#start("webhook delivery", deliveryBeginning(origin), parent, linkTo(event, "origin"));
    const inner = traces.setSpan(parent, span);
    span.setAttribute(attribute.taskId, taskId);
    span.setAttribute(attribute.webhookAttempt, attempt);
    return new Delivered(span, inner, outgoing(inner));
  };

  #start(name: string, beginning: SpanOptions, parent: Context, links: readonly Link[] = noLinks): Span {
    const { kind = SpanKind.INTERNAL, attributes = {} } = beginning;
    const options = links.length === 0 ? beginning : { kind, attributes, links: [...links] };
    return this.#settings.tracer.startSpan(name, options, parent);
  }

  /** The context that a `traceparent` names; otherwise the active one. */
  #parentOf(trace: string | undefined): Context {
    const active = contexts.active();
    if (trace === undefined) return active;
    const open = this.#open.get(trace);
    if (open !== undefined) return open;
    if (isOf(trace, traces.getSpanContext(active))) return active;
    const named = parsed(trace);
    return named === undefined ? active : traces.setSpanContext(active, named);
  }

  /**
   * The parent and links of a turn. The call is the parent while it is active. A turn that begins later (after another turn, a restart, or on
   * another node) gets its own trace with a link to the call, so that no trace stays open for days.
   */
  #segment({ trace, taskId, turn, attempt }: ObservedTurn): {
    readonly parent: Context;
    readonly links: readonly Link[];
  } {
    const active = contexts.active();
    const isWithin = attempt === 1 && isOf(trace, traces.getSpanContext(active));
    if (isWithin && turn === 1) return { parent: active, links: noLinks };
    const called = parsed(trace);
    const first = turn > 1 || attempt > 1 ? this.#origins.of(taskId) : undefined;
    // For a task that began on another node, a stream that is resumed here is linked to its call.
    if (called !== undefined) this.#origins.note(taskId, called);
    const relationship = attempt > 1 ? "resume_origin" : "origin";
    const links = [
      ...(isWithin ? [] : linkTo(called, relationship)),
      ...(first === undefined || isOf(trace, first) ? [] : linkTo(first, "task_origin")),
    ];
    if (isWithin) return { parent: active, links };
    // If the turn has no span, its calls need the caller's span as their parent.
    const isOwn = this.#settings.agentSpans || called === undefined;
    return { parent: isOwn ? rootless() : traces.setSpanContext(rootless(), called), links };
  }
}

/** Sets the attributes of a served call. Reading `address` queries the socket, so recorded spans only. */
function setServed(span: Span, call: ObservedCall): void {
  setCall(span, call, call.card);
  const { address } = call;
  if (address !== undefined) span.setAttribute(attribute.clientAddress, address);
}
