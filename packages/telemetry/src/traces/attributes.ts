import { SpanKind, SpanStatusCode, type Attributes, type Span, type SpanOptions } from "@opentelemetry/api";
import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { A2AError } from "@parley/a2a/internal/model/index";
import type {
  CallFacts,
  ObservedAgent,
  ObservedAnswer,
  ObservedDelegation,
  OperationName,
} from "@parley/a2a/internal/protocol/index";
import { ByOperation } from "../by-operation.ts";
import { attribute, bounded } from "../names.ts";
import type { Content } from "./content.ts";

/*
 * Attributes of spans. A span starts with the attributes that are the same for all calls of an agent: they are cached, and a sampler sees them.
 * The other attributes are set only on recorded spans.
 */

/** The kind and the cached initial attributes of a span. */
type Beginning = Readonly<Pick<SpanOptions, "attributes" | "kind">>;

/** Initial attributes of the spans of one kind of call. */
export class CallBeginnings {
  readonly #kind: SpanKind;
  readonly #ofCards = new WeakMap<ObservedAgent, BoundedMap<ByOperation<Beginning>>>();
  readonly #ofNone = keptByUrl();

  constructor(kind: SpanKind) {
    this.#kind = kind;
  }

  /** `url`: the called URL, for a client. */
  of(operation: OperationName, version: string, card: ObservedAgent | undefined, url = ""): Beginning {
    const byUrl = card === undefined ? this.#ofNone : this.#keptOf(card);
    let beginnings = byUrl.get(url);
    if (beginnings === undefined) byUrl.set(url, (beginnings = this.#beginningsOf(card, url)));
    return beginnings.of(operation, version);
  }

  #keptOf(card: ObservedAgent): BoundedMap<ByOperation<Beginning>> {
    const known = this.#ofCards.get(card);
    if (known !== undefined) return known;
    const kept = keptByUrl();
    this.#ofCards.set(card, kept);
    return kept;
  }

  #beginningsOf(card: ObservedAgent | undefined, url: string): ByOperation<Beginning> {
    const agent = {
      ...(card !== undefined && { [attribute.agentName]: bounded(card.name) }),
      ...addressAttributes(url),
    };
    return new ByOperation((operation, version) => ({
      kind: this.#kind,
      attributes: { [attribute.method]: operation, [attribute.version]: version, ...agent },
    }));
  }
}

function keptByUrl(): BoundedMap<ByOperation<Beginning>> {
  return new BoundedMap({ bytes: 1 << 16, entries: 20, bytesOf: (url) => memoryOf(url) });
}

/** Initial attributes of the spans of turns. */
export class TurnBeginnings {
  readonly #ofCards = new WeakMap<ObservedAgent, Beginning & { readonly name: string }>();

  of(card: ObservedAgent): Beginning & { readonly name: string } {
    const known = this.#ofCards.get(card);
    if (known !== undefined) return known;
    const attributes: Attributes = {
      [attribute.genOperation]: "invoke_agent",
      [attribute.agentName]: bounded(card.name),
    };
    const made = { name: `invoke_agent ${bounded(card.name)}`, kind: SpanKind.INTERNAL, attributes };
    this.#ofCards.set(card, made);
    return made;
  }
}

/** Initial attributes of the span of a step. */
export function stepBeginning(name: string): Beginning {
  const attributes = { [attribute.genOperation]: "execute_tool", [attribute.toolName]: name };
  return { kind: SpanKind.INTERNAL, attributes };
}

/** Initial attributes of the span of a delegation. */
export function delegationBeginning({ name, url }: ObservedDelegation): Beginning {
  const agent = { [attribute.genOperation]: "invoke_agent", [attribute.agentName]: bounded(name) };
  return { kind: SpanKind.CLIENT, attributes: { ...agent, ...addressAttributes(url) } };
}

/** Initial attributes of the span of a delivery. */
export function deliveryBeginning(origin: string): Beginning {
  return { kind: SpanKind.CLIENT, attributes: addressAttributes(origin) };
}

/** Sets the attributes of the request and of the agent's card. */
export function setCall(span: Span, facts: CallFacts, card: ObservedAgent | undefined): void {
  const { taskId, contextId, messageId, tenant, referenceTaskIds } = facts;
  if (tenant !== undefined) span.setAttribute(attribute.tenant, bounded(tenant));
  if (messageId !== undefined) span.setAttribute(attribute.messageId, bounded(messageId));
  if (taskId !== undefined) span.setAttribute(attribute.taskId, bounded(taskId));
  if (contextId !== undefined) span.setAttribute(attribute.conversation, bounded(contextId));
  if (referenceTaskIds !== undefined && referenceTaskIds.length > 0)
    span.setAttribute(attribute.referenceTaskIds, referenceTaskIds.slice(0, 20).map(bounded));
  if (card !== undefined) setAgent(span, card);
}

/** Sets the attributes of the card. The span already has the agent's name. */
export function setAgent(span: Span, { description, version }: ObservedAgent): void {
  if (description !== "") span.setAttribute(attribute.agentDescription, bounded(description));
  if (version !== "") span.setAttribute(attribute.agentVersion, bounded(version));
}

/** Sets the attributes of the answer. */
export function setAnswer(span: Span, { taskId, contextId, state }: ObservedAnswer): void {
  if (taskId !== undefined) span.setAttribute(attribute.taskId, bounded(taskId));
  if (contextId !== undefined) span.setAttribute(attribute.conversation, bounded(contextId));
  if (state !== undefined) span.setAttribute(attribute.taskState, state);
}

/** Sets the conversation, and the span kind for tools that display agents. */
export function setConversation(span: Span, kind: "AGENT" | "TOOL", contextId: string): void {
  const id = bounded(contextId);
  span.setAttribute(attribute.conversation, id);
  span.setAttribute(attribute.session, id);
  span.setAttribute(attribute.kind, kind);
}

/** Sets the error of a span without its message, which may have content and is in the log. `faults`: the codes that count as failures. */
export function setError(span: Span, error: A2AError | undefined, faults?: ReadonlySet<string>): void {
  if (error === undefined) return;
  span.setAttribute(attribute.error, error.code);
  if (faults === undefined || faults.has(error.code)) span.setStatus({ code: SpanStatusCode.ERROR });
}

/** Sets the redacted content of a turn's input or output. */
export function setContent(span: Span, name: string, { json }: Content): void {
  if (json !== undefined) span.setAttribute(name, json);
}

const ports: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

function addressAttributes(url: string | undefined): Attributes {
  if (url === undefined || url === "") return {};
  // A binding may use an address without a scheme, such as `host:port` of gRPC.
  const whole = url.includes("://") ? url : `grpc://${url}`;
  if (!URL.canParse(whole)) return {};
  const { hostname, port, protocol } = new URL(whole);
  const known = port === "" ? ports[protocol] : Number(port);
  return { [attribute.serverAddress]: hostname, ...(known !== undefined && { [attribute.serverPort]: known }) };
}
