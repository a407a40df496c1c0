import { utf8Length, type Clock } from "@parley/a2a/internal/base/index";
import { A2AError, type JsonObject, type JsonValue } from "@parley/a2a/internal/model/index";
import type { ExtensionRow } from "@parley/a2a/internal/protocol/index";
import {
  type CallType,
  readTrace,
  type ResponseTrace,
  type TraceShape,
  type TraceStep as Step,
  writeStep,
} from "./trace.ts";

/** Initial data of a step. */
export interface StepInit {
  /** Default `TOOL`. */
  readonly callType?: CallType;
  /** Name of the tool or the agent. */
  readonly name?: string;
  /** Parameters of a tool. */
  readonly parameters?: JsonObject;
  /** Request to an agent. */
  readonly requests?: JsonValue;
  /** Address of an agent. */
  readonly agentUrl?: string;
  /** Kind of step, such as `tool_call`. */
  readonly stepType?: string;
  /** The parent step. Default: none. */
  readonly parent?: OpenStep;
}

/** Later data of a step. */
export interface StepResult {
  /** Cost, in the agent's unit. */
  readonly cost?: number;
  /** Number of tokens. */
  readonly totalTokens?: number;
  /** Other data, merged with earlier attributes. */
  readonly attributes?: JsonObject;
  /** The trace of the called agent. */
  readonly responseTrace?: ResponseTrace;
}

/** A running step. */
export interface OpenStep {
  /** Identifier of the step. */
  readonly stepId: string;
  /** Adds data. */
  set(result: StepResult): void;
  /** Ends it, with its `error` if it failed. Later ends are ignored. */
  end(result?: StepResult & { readonly error?: unknown }): void;
}

/** The trace of a turn: the result of `turn.ext(traceability)`. */
export interface Trace {
  /** Identifier of the trace, the same in all attempts of the turn. */
  readonly traceId: string;
  /** Begins a step. It ends with `end()` or with the turn. */
  begin(init: StepInit): OpenStep;
  /** Runs a function as a step. Records and rethrows its error. `traceStep()` also works without a trace. */
  step<T>(init: StepInit, run: (step: OpenStep) => T | Promise<T>): Promise<T>;
}

/**
 * Runs a function as a step of a trace. Without a trace, only runs the function.
 *
 * @example
 * ```ts
 * async function* answer(turn: Turn<{ extensions: [typeof traceability] }>): AsyncGenerator<AgentEvent> {
 *   const rate = await traceStep(turn.ext(traceability), { name: "get_rate", parameters: { base: "USD" } }, () => "0.859");
 *   yield turn.completed(rate);
 * }
 * ```
 */
export async function traceStep<T>(
  trace: Trace | undefined,
  init: StepInit,
  run: (step: OpenStep) => T | Promise<T>,
): Promise<T> {
  return trace === undefined ? run(ignored) : trace.step(init, run);
}

const ignored: OpenStep = { stepId: "", set() {}, end() {} };

export interface RecorderInit {
  readonly traceId: string;
  readonly attempt: number;
  readonly clock: Clock;
  readonly shape: TraceShape;
  readonly maxBytes: number;
  readonly describeError: (error: unknown) => string;
  /** Reads the steps of earlier attempts. Absent: no stored steps. */
  readonly stored: (() => Promise<readonly ExtensionRow[]>) | undefined;
}

const rowKey = "steps";
/** Largest row (`featureBounds`) less the text around the steps, in bytes. */
const rowBytes = (32 << 10) - 256;

/** Records the steps of a turn within a limit of bytes. */
export class TraceRecorder implements Trace {
  readonly traceId: string;
  readonly #init: RecorderInit;
  readonly #steps: Recorded[] = [];
  #bytes: number;
  #count = 0;
  #omitted = 0;
  #isChanged = false;
  /** Resolves when the steps of earlier attempts are restored. */
  readonly restored: Promise<void> | undefined;

  constructor(init: RecorderInit) {
    this.traceId = init.traceId;
    this.#init = init;
    this.#bytes = sizeOf({ trace_id: init.traceId, steps: [] }) + omittedBytes;
    this.restored = init.stored?.().then((rows) => this.#restore(rows));
    // A trace without its beginning is better than no trace.
    this.restored?.catch(() => {});
  }

  begin(init: StepInit): OpenStep {
    const { clock, attempt } = this.#init;
    const { callType = "TOOL", parent, ...known } = init;
    this.#count += 1;
    const step: Step = {
      ...known,
      callType,
      stepId: `step-${this.traceId.replace(/^trace-/, "")}-${attempt}-${this.#count}`,
      traceId: this.traceId,
      startTime: new Date(clock.now()).toISOString(),
      ...(parent !== undefined && parent.stepId !== "" && { parentStepId: parent.stepId }),
      // Repeated work of a lost attempt appears twice.
      ...(attempt > 1 && { attributes: { attempt: String(attempt) } }),
    };
    const recorded: Recorded = { step, bytes: 0 };
    this.#fit(recorded);
    if (recorded.bytes === 0) return { ...ignored, stepId: step.stepId };
    this.#steps.push(recorded);
    const began = clock.elapsed();
    return {
      stepId: step.stepId,
      set: (result) => this.#change(recorded, result),
      end: ({ error, ...result } = {}) => {
        if (recorded.step.endTime !== undefined) return;
        this.#change(recorded, {
          ...result,
          latency: Math.max(0, Math.round(clock.elapsed() - began)),
          endTime: new Date(clock.now()).toISOString(),
          ...(error !== undefined && { error: this.#init.describeError(error) }),
        });
      },
    };
  }

  async step<T>(init: StepInit, run: (step: OpenStep) => T | Promise<T>): Promise<T> {
    await this.restored?.catch(() => {});
    const step = this.begin(init);
    try {
      const result = await run(step);
      step.end();
      return result;
    } catch (error) {
      step.end({ error });
      throw error;
    }
  }

  /** The row, if it changed. A later attempt always returns the row, because repeated events store no rows. */
  takeRow(): readonly [key: string, value: string] | undefined {
    if (!this.#isChanged) return undefined;
    this.#isChanged = this.#init.attempt > 1;
    return this.row;
  }

  /** The trace so far. Its last step counts the omitted ones. */
  get whole(): ResponseTrace {
    const steps = this.#steps.map(({ step }) => step);
    const last = steps.at(-1);
    if (this.#omitted > 0 && last !== undefined) {
      steps[steps.length - 1] = withAttributes(last, { omitted_steps: String(this.#omitted) });
    }
    return { traceId: this.traceId, steps };
  }

  /** The row that stores as many steps as fit. */
  get row(): readonly [key: string, value: string] {
    const kept: string[] = [];
    let room = rowBytes;
    for (const { step } of this.#steps) {
      const text = fitting(step, room);
      if (text === undefined) break;
      kept.push(text);
      room -= utf8Length(text) + 1;
    }
    return [rowKey, `{"traceId":${JSON.stringify(this.traceId)},"steps":[${kept.join(",")}]}`];
  }

  /** Puts the steps of earlier attempts first. Their unfinished steps never end. */
  #restore(rows: readonly ExtensionRow[]): void {
    const row = rows.find(({ key }) => key === rowKey);
    const trace = row && readTrace(JSON.parse(row.value));
    // The row of an earlier turn has another trace.
    if (trace?.traceId !== this.traceId) return;
    const restored = trace.steps.map((step): Recorded => {
      // An agent that asked a question was not interrupted. Its answer is another step.
      const isLost = step.endTime === undefined && step.attributes?.["state"] !== "TASK_STATE_INPUT_REQUIRED";
      return { step: isLost ? { ...step, error: "The run was interrupted" } : step, bytes: 0 };
    });
    for (const recorded of restored) this.#fit(recorded);
    this.#steps.unshift(...restored.filter(({ bytes }) => bytes > 0));
  }

  #change(recorded: Recorded, { attributes, ...more }: Partial<Step>): void {
    if (recorded.step.endTime !== undefined) return;
    recorded.step = withAttributes({ ...recorded.step, ...more }, attributes);
    if (more.endTime !== undefined) this.#takeOver(recorded);
    this.#fit(recorded);
  }

  /** Keeps another agent's trace once: in the step that continued a delegation of an earlier attempt. */
  #takeOver(ended: Recorded): void {
    const traceId = this.#init.attempt === 1 ? undefined : ended.step.responseTrace?.traceId;
    if (traceId === undefined) return;
    for (const recorded of this.#steps) {
      const { responseTrace, ...step } = recorded.step;
      if (recorded === ended || responseTrace?.traceId !== traceId) continue;
      recorded.step = step;
      this.#fit(recorded);
    }
  }

  /** Counts the bytes of a step, and shrinks it until it fits. A step that was begun always fits. */
  #fit(recorded: Recorded): void {
    this.#isChanged = true;
    const room = this.#init.maxBytes - this.#bytes + recorded.bytes;
    for (const step of smaller(recorded.step)) {
      // Reserves room for its end.
      const bytes = sizeOf(writeStep(step, this.#init.shape)) + (step.endTime === undefined ? endBytes : 1);
      if (bytes > room) continue;
      this.#bytes += bytes - recorded.bytes;
      recorded.bytes = bytes;
      recorded.step = step;
      return;
    }
    this.#omitted += 1;
  }
}

/** Maximum bytes of the end of a step, and of the number of omitted steps. */
const endBytes = 300;
const omittedBytes = 40;

interface Recorded {
  step: Step;
  bytes: number;
}

/** A step as JSON, shrunk until it fits. */
function fitting(step: Step, room: number): string | undefined {
  for (const each of smaller(step)) {
    const text = JSON.stringify(each);
    if (utf8Length(text) < room) return text;
  }
  return undefined;
}

/** A step, then smaller versions of it. */
function* smaller(step: Step): Generator<Step> {
  yield step;
  const cut = { truncated: "true" };
  const { responseTrace, ...own } = step;
  if (responseTrace !== undefined) yield withAttributes(own, cut);
  const { parameters: _, requests: __, ...rest } = own;
  yield withAttributes(rest, cut);
  const { name, error, attributes: ___, agentUrl: ____, stepType, ...least } = rest;
  yield {
    ...least,
    attributes: cut,
    ...(name !== undefined && { name: short(name) }),
    ...(stepType !== undefined && { stepType: short(stepType) }),
    ...(error !== undefined && { error: short(typeof error === "string" ? error : "Error") }),
  };
}

/** A prefix in characters that take at most two bytes in JSON. */
function short(text: string): string {
  return text.slice(0, 64).replace(/[^ -~]/g, "?");
}

function withAttributes(step: Step, attributes: JsonObject | undefined): Step {
  return attributes === undefined ? step : { ...step, attributes: { ...step.attributes, ...attributes } };
}

function sizeOf(value: JsonValue): number {
  return utf8Length(JSON.stringify(value));
}

/** The name of an error, or the public text of an `A2AError`. Other messages may be secret. */
export function nameOfError(error: unknown): string {
  if (error instanceof A2AError) return `${error.code}: ${error.message}`;
  return error instanceof Error ? error.name : "Error";
}
