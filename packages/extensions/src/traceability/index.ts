/**
 * The Traceability extension: agents report the steps that they took for a response.
 * @packageDocumentation
 */

import { inspected } from "@parley/a2a/internal/base/display";
import { isTerminal, type JsonObject, type StreamResponse } from "@parley/a2a/internal/model/index";
import type {
  ActivatingCall,
  AppendedEvent,
  DelegatingCall,
  DelegationWatch,
  ExtensionTurn,
  ExtensionTypes,
  MetadataField,
} from "@parley/a2a/internal/protocol/index";
import { defineExtension, type DefinedExtension } from "@parley/a2a/internal/extensions/index";
import { findTrace, type ResponseTrace, traceSchema, type TraceShape, writeTrace } from "./trace.ts";
import { jsonOf } from "../shared/values.ts";
import { nameOfError, TraceRecorder, type Trace } from "./recorder.ts";

export { traceStep, type OpenStep, type StepInit, type StepResult, type Trace } from "./recorder.ts";
export { readTrace, type CallType, type ResponseTrace, type TraceStep, writeTrace, type TraceShape } from "./trace.ts";

/** URI of the Traceability extension. */
export const traceabilityUri = "https://github.com/a2aproject/a2a-samples/extensions/traceability/v1";

/** Key of a trace in metadata: the URI without its scheme, and the name of the field. */
const key = "github.com/a2aproject/a2a-samples/extensions/traceability/v1/traceability";

/**
 * Where a trace is written. `message`: into metadata of the message that ends the turn (specification). `statusUpdate`:
 * into metadata of the event that ends the turn, and so also of the task (sample).
 */
export type TracePlace = "message" | "statusUpdate";

/** Options of `traceabilityExtension()`. */
export interface TraceabilityOptions {
  /** The shape to write. Both shapes are read. Default `sample`. */
  readonly shape?: TraceShape;
  /** Where to write traces. An event without a message always uses `statusUpdate`. Default: both. */
  readonly places?: readonly [TracePlace, ...TracePlace[]];
  /**
   * Largest trace, in bytes of JSON. Default 64 KiB. Above it, steps lose their parameters, and further steps are
   * omitted.
   */
  readonly maxBytes?: number;
  /** Describes an error in the trace. Default: its name, because messages may contain secrets. */
  readonly describeError?: (error: unknown) => string;
  /** Decides who gets traces, which reveal how an agent works. Default: any caller that requests them. */
  readonly allow?: (call: ActivatingCall) => boolean;
}

type Traced = Readonly<Record<"trace", MetadataField<ResponseTrace>>>;

/** Result of `event.ext(traceability)`. */
export interface TraceReads {
  /** The trace in an event, a message, an artifact or a task, or `undefined`. */
  readonly trace: ResponseTrace | undefined;
}

interface TraceabilityTypes extends ExtensionTypes {
  readonly metadata: Readonly<Record<"message" | "artifact" | "task" | "statusUpdate" | "artifactUpdate", Traced>>;
  readonly data: Readonly<Record<never, never>>;
  readonly subStates: never;
  readonly methods: Readonly<Record<never, never>>;
  readonly turn: Trace;
  readonly event: TraceReads;
}

/** The Traceability extension. `turn.ext()` returns a `Trace`, and `event.ext()` the received trace. */
export type TraceabilityExtension = DefinedExtension<typeof traceabilityUri, TraceabilityTypes>;

/**
 * Creates a Traceability extension. `traceability` has the default options.
 *
 * @example
 * ```ts
 * const inside = traceabilityExtension({ allow: ({ principal }) => principal.scopes?.includes("traces") === true });
 * ```
 */
export function traceabilityExtension(options: TraceabilityOptions = {}): TraceabilityExtension {
  const { shape = "sample", places = ["message", "statusUpdate"], maxBytes = 64 << 10, allow } = options;
  const describeError = options.describeError ?? nameOfError;
  const traced: Traced = { trace: { key, schema: traceSchema, volatile: true } };
  return defineExtension({
    uri: traceabilityUri,
    description: "Adds traceability information to artifacts.",
    kind: "data",
    metadata: { message: traced, artifact: traced, task: traced, statusUpdate: traced, artifactUpdate: traced },
    ...(allow !== undefined && { onActivate: allow }),
    onTurnStart(turn: ExtensionTurn): Trace {
      const { taskId, number, attempt, clock } = turn;
      const traceId = `trace-${taskId}-${number}`;
      const stored = attempt > 1 ? () => turn.rows.read() : undefined;
      const recorder = new TraceRecorder({ traceId, attempt, clock, shape, maxBytes, describeError, stored });
      if (recorder.restored !== undefined) turn.waitFor(recorder.restored);
      return recorder;
    },
    onAppend(event, { started, rows }) {
      if (!(started instanceof TraceRecorder)) return event;
      // An attempt after a crash continues with these steps, as does a turn suspended by another agent's question.
      const row = rows && started.takeRow();
      if (row !== undefined) rows?.set(...row);
      return endsTurn(event) ? attached(event, { [key]: writeTrace(started.whole, shape) }, places) : event;
    },
    onFinish(_, { started }) {
      return started instanceof TraceRecorder ? { [key]: writeTrace(started.whole, shape) } : undefined;
    },
    onDelegate: (call, turn) => (turn.started instanceof TraceRecorder ? watchOf(turn.started, turn, call) : undefined),
    onEvent(event: StreamResponse): TraceReads {
      const reads = {
        get trace() {
          return findTrace(event, key);
        },
        [inspected]() {
          return { trace: this.trace };
        },
      };
      return reads;
    },
  });
}

/**
 * The Traceability extension: callers that activate it get the steps that the agent took.
 *
 * @example
 * ```ts
 * const server = await serve(agent, { extensions: [traceability] });
 * const client = await connect(server.url, { extensions: [traceability] });
 * const { task } = await client.sendMessage("What is a dollar in euros?");
 * console.log(task?.ext(traceability)?.trace?.steps.map(({ name }) => name));
 * ```
 */
export const traceability: TraceabilityExtension = traceabilityExtension();

/** A delegation is a step, which includes the other agent's trace if it sends one. */
function watchOf(
  recorder: TraceRecorder,
  { rows }: Pick<ExtensionTurn, "rows">,
  { card, parts }: DelegatingCall,
): DelegationWatch {
  const traces = card.capabilities.extensions?.some(({ uri }) => uri === traceabilityUri) === true;
  const agentUrl = card.supportedInterfaces?.[0]?.url;
  const step = recorder.begin({
    callType: "AGENT",
    name: card.name,
    requests: jsonOf({ parts }),
    stepType: "agent_call",
    ...(agentUrl !== undefined && { agentUrl }),
  });
  return {
    ...(traces && { extensions: [traceabilityUri] }),
    onEvent(event) {
      const responseTrace = traces ? findTrace(event, key) : undefined;
      const { state } = event.task?.status ?? event.statusUpdate?.status ?? {};
      step.set({
        ...(responseTrace !== undefined && { responseTrace }),
        ...(state !== undefined && { attributes: { state } }),
      });
      if (event.message === undefined && (state === undefined || !isTerminal(state))) return undefined;
      // Ends the step before the delegation ends, because a later attempt does not see that end again.
      if (event.message !== undefined || state === "TASK_STATE_COMPLETED") step.end();
      const [row, value] = recorder.row;
      // Storing it fails only if the turn has ended.
      return rows.store([{ op: "set", key: row, value }]).catch(() => {});
    },
    onEnd: ({ error }) => step.end({ error }),
  };
}

function endsTurn(event: AppendedEvent): boolean {
  if (event.kind === "reply") return true;
  return event.kind === "status" && (isTerminal(event.state) || event.state === "TASK_STATE_INPUT_REQUIRED");
}

function attached(event: AppendedEvent, metadata: JsonObject, places: readonly TracePlace[]): AppendedEvent {
  if (event.kind === "reply") return { ...event, message: withMetadata(event.message, metadata) };
  if (event.kind !== "status") return event;
  const { message } = event;
  const inMessage = message !== undefined && places.includes("message");
  const inUpdate = message === undefined || places.includes("statusUpdate");
  return {
    ...event,
    ...(inMessage && { message: withMetadata(message, metadata) }),
    ...(inUpdate && { metadata: { ...event.metadata, ...metadata } }),
  };
}

function withMetadata<T extends { readonly metadata?: JsonObject }>(object: T, metadata: JsonObject): T {
  return { ...object, metadata: { ...object.metadata, ...metadata } };
}
