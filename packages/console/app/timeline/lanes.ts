import { webhooks } from "../../src/api.ts";
import { deliveryOf } from "../parts/deliveries.tsx";
import type { Exchange } from "../wire.ts";

/* The content of a timeline: spans of time in lanes. */

/** Determines the span's colour. */
export type SpanKind = "call" | "failed" | "status" | "artifact" | "message" | "run" | "step" | "wait" | "webhook";

/** An event or a period. */
export interface Span {
  /** Milliseconds since the Unix epoch. */
  readonly start: number;
  /** Equal to `start` for an event. */
  readonly end: number;
  readonly label: string;
  readonly kind: SpanKind;
  /** The bytes to show when the span is selected. */
  readonly detail: () => string;
}

/** Spans of one kind, in the order of their starts. */
export interface Lane {
  readonly name: string;
  /** Nesting depth of the delegated task. Default 0. */
  readonly depth?: number;
  readonly spans: readonly Span[];
}

/** The lanes of the wire traffic. `task`: only spans that name this task. */
export function lanesOf(exchanges: readonly Exchange[], task: string | undefined, now: number): readonly Lane[] {
  const lanes = new Map<string, Span[]>();
  const add = (name: string, span: Span): void => {
    const spans = lanes.get(name) ?? [];
    lanes.set(name, spans);
    spans.push(span);
  };
  for (const exchange of exchanges) {
    const events = eventsOf(exchange);
    const isOfTask =
      task === undefined || exchange.request.body.text.includes(task) || events.some((one) => one.task === task);
    if (!isOfTask) continue;
    add(exchange.request.agent === webhooks ? webhookLane : "Calls", callOf(exchange, now));
    for (const { lane, task: own, ...span } of events) {
      if (lane !== keepAlive && (own ?? task) === (task ?? own)) add(lane, span);
    }
  }
  return [...lanes].sort(byName).map(([name, spans]) => ({ name, spans: spans.sort((a, b) => a.start - b.start) }));
}

const webhookLane = "Webhooks received";

/** Merges all event lanes into one, for use above the lanes of a task's log. */
export function wireLanes(lanes: readonly Lane[]): readonly Lane[] {
  const isCall = ({ name }: Lane): boolean => name === "Calls" || name === webhookLane;
  const events = lanes.filter((lane) => !isCall(lane)).flatMap(({ spans }) => spans);
  const calls = lanes.filter(isCall);
  return events.length === 0
    ? calls
    : [...calls, { name: "Events on the wire", spans: events.sort((a, b) => a.start - b.start) }];
}

const order = ["Calls", webhookLane, "Status", "Messages"];

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  const place = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length);
  return place(a) - place(b) || a.localeCompare(b);
}

function callOf({ request, response, ended, error }: Exchange, now: number): Span {
  if (request.agent === webhooks) {
    const { label } = describe(valueIn(request.body.text));
    const { attempt = 1 } = deliveryOf(request) ?? {};
    return {
      start: request.at,
      end: request.at,
      label: attempt > 1 ? `${label}, attempt ${attempt}` : label,
      kind: "webhook",
      detail: () => request.body.text,
    };
  }
  const method = /"method"\s*:\s*"([\w/]{1,60})"/.exec(request.body.text)?.[1];
  const path = URL.canParse(request.url) ? new URL(request.url).pathname : request.url;
  const isFailed = error !== undefined || (response !== undefined && response.status >= 400);
  return {
    start: request.at,
    end: ended?.at ?? now,
    label: `${method ?? `${request.method} ${path}`}${error === undefined ? "" : `: ${error}`}`,
    kind: isFailed ? "failed" : "call",
    detail: () => request.body.text,
  };
}

interface WireEvent extends Span {
  readonly lane: string;
  readonly task: string | undefined;
}

/** The parsed events of each response. Pieces are only appended, so the cache stays valid. */
const seen = new WeakMap<Exchange["pieces"], WireEvent[]>();

function eventsOf({ pieces }: Exchange): readonly WireEvent[] {
  const known = seen.get(pieces) ?? [];
  seen.set(pieces, known);
  // Each piece yields exactly one event, so parsing continues after the last one.
  for (let at = known.length; at < pieces.length; at++) {
    const piece = pieces[at];
    if (piece !== undefined) known.push(eventOf(piece.at, piece.body.text));
  }
  return known;
}

/** The lane of keep-alive comments. Hidden. */
const keepAlive = "";

function eventOf(at: number, text: string): WireEvent {
  const found = text.startsWith(":") ? commentOf() : describe(valueIn(text));
  return { start: at, end: at, detail: () => text, ...found };
}

type Described = Pick<WireEvent, "lane" | "task" | "label" | "kind">;

const commentOf = (): Described => ({ lane: keepAlive, task: undefined, label: "comment", kind: "message" });

/** Describes an event of A2A 1.0 or 0.3. */
function describe(value: unknown): Described {
  const root = membersOf(membersOf(value)["result"] ?? value);
  const status = membersOf(root["statusUpdate"] ?? (root["kind"] === "status-update" ? root : undefined));
  if ("status" in status) return statusOf(textOf(status["taskId"]), status["status"]);
  const update = membersOf(root["artifactUpdate"] ?? (root["kind"] === "artifact-update" ? root : undefined));
  if ("artifact" in update) {
    const { name, artifactId } = membersOf(update["artifact"]);
    const called = textOf(name) ?? textOf(artifactId) ?? "artifact";
    return { lane: `Artifact ${called}`, task: textOf(update["taskId"]), label: called, kind: "artifact" };
  }
  const task = membersOf(root["task"] ?? (root["kind"] === "task" || "status" in root ? root : undefined));
  if ("status" in task) return statusOf(textOf(task["id"]), task["status"]);
  const message = membersOf(root["message"] ?? (root["kind"] === "message" ? root : undefined));
  if ("parts" in message) return { lane: "Messages", task: textOf(message["taskId"]), label: "reply", kind: "message" };
  const error = membersOf(membersOf(value)["error"]);
  if ("message" in error)
    return { lane: "Errors", task: undefined, label: textOf(error["message"]) ?? "", kind: "failed" };
  return { lane: "Answers", task: undefined, label: "answer", kind: "message" };
}

function statusOf(task: string | undefined, status: unknown): Described {
  const state = textOf(membersOf(status)["state"]) ?? "unknown";
  const label = state
    .replace(/^TASK_STATE_/, "")
    .toLowerCase()
    .replaceAll("_", " ");
  return { lane: "Status", task, label, kind: /failed|rejected/i.test(state) ? "failed" : "status" };
}

/** Parses the JSON of a body or of a server-sent event. */
function valueIn(text: string): unknown {
  const data = text.startsWith("{")
    ? text
    : text
        .split("\n")
        .flatMap((line) => (line.startsWith("data:") ? [line.slice(5)] : []))
        .join("\n");
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
