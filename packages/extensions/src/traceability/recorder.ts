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

/** What is known of a step when it begins. */
export interface StepInit {
  /** Who is called. Default `TOOL`. */
  readonly callType?: CallType;
  /** Name of the tool or the agent. */
  readonly name?: string;
  /** What a tool is called with. */
  readonly parameters?: JsonObject;
  /** What an agent is asked. */
  readonly requests?: JsonValue;
  /** Address of an agent. */
  readonly agentUrl?: string;
  /** What kind of step it is, such as `tool_call`. */
  readonly stepType?: string;
  /** The step that it is a part of. Default: none. */
  readonly parent?: OpenStep;
}

/** What is known of a step later. */
export interface StepResult {
  /** What it cost, in the unit of the agent. */
  readonly cost?: number;
  /** How many tokens it took. */
  readonly totalTokens?: number;
  /** Anything else. They are added to those before. */
  readonly attributes?: JsonObject;
  /** What the agent that was called has done for it. */
  readonly responseTrace?: ResponseTrace;
}

/** A step that has not ended. */
export interface OpenStep {
  /** Identifier of the step. */
  readonly stepId: string;
  /** Adds to what is known. */
  set(result: StepResult): void;
  /** Ends it. `error`: what it failed with. A step ends once, and later ends are ignored. */
  end(result?: StepResult & { readonly error?: unknown }): void;
}

/** The trace of a turn: what `turn.ext(traceability)` gives. */
export interface Trace {
  /** Identifier of the trace. It is the same in all attempts of the turn. */
  readonly traceId: string;
  /** Begins a step. It ends with `end()`, or with the turn. */
  begin(init: StepInit): OpenStep;
  /**
   * Runs a function as a step. Where it throws, the step has the error, and the error is thrown again. `traceStep()` does so without a trace too.
   */
  step<T>(init: StepInit, run: (step: OpenStep) => T | Promise<T>): Promise<T>;
}

/**
 * Runs a function as a step of a trace. Without a trace, since nobody has asked for one, it runs the function alone.
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

/** A step that is not recorded. */
const ignored: OpenStep = { stepId: "", set() {}, end() {} };

/** How a trace is recorded. */
export interface RecorderInit {
  readonly traceId: string;
  readonly attempt: number;
  readonly clock: Clock;
  readonly shape: TraceShape;
  readonly maxBytes: number;
  readonly describeError: (error: unknown) => string;
  /** Reads what the attempts before this one have kept. Absent: there were none. */
  readonly stored: (() => Promise<readonly ExtensionRow[]>) | undefined;
}

const rowKey = "steps";
/** Most bytes of a row (`featureBounds`), less what goes around the steps. */
const rowBytes = (32 << 10) - 256;

/** Records the steps of a turn, in at most so many bytes of JSON. */
export class TraceRecorder implements Trace {
  readonly traceId: string;
  readonly #init: RecorderInit;
  readonly #steps: Recorded[] = [];
  #bytes: number;
  #count = 0;
  #omitted = 0;
  #isChanged = false;
  /** Resolves when the steps of earlier attempts are here. */
  readonly restored: Promise<void> | undefined;

  constructor(init: RecorderInit) {
    this.traceId = init.traceId;
    this.#init = init;
    this.#bytes = sizeOf({ trace_id: init.traceId, steps: [] }) + omittedBytes;
    this.restored = init.stored?.().then((rows) => this.#restore(rows));
    // A trace without its beginning is better than none.
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
      // The work of an attempt that was lost is done again, and is in the trace twice.
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

  /** The row, where it has changed. In a later attempt in any case: an event that is repeated sets no rows. */
  takeRow(): readonly [key: string, value: string] | undefined {
    if (!this.#isChanged) return undefined;
    this.#isChanged = this.#init.attempt > 1;
    return this.row;
  }

  /** The trace so far. Where steps were left out, its last step says how many. */
  get whole(): ResponseTrace {
    const steps = this.#steps.map(({ step }) => step);
    const last = steps.at(-1);
    if (this.#omitted > 0 && last !== undefined) {
      steps[steps.length - 1] = withAttributes(last, { omitted_steps: String(this.#omitted) });
    }
    return { traceId: this.traceId, steps };
  }

  /** The row that keeps the steps with the task, without what does not fit in it. */
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

  /** Takes over the steps of the attempts before this one, which come first. Those that had not ended never will. */
  #restore(rows: readonly ExtensionRow[]): void {
    const row = rows.find(({ key }) => key === rowKey);
    const trace = row && readTrace(JSON.parse(row.value));
    // What an earlier turn has kept is of another trace.
    if (trace?.traceId !== this.traceId) return;
    const restored = trace.steps.map((step): Recorded => {
      // An agent that has asked a question was not interrupted. Its answer is another step.
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

  /** A trace of another agent is there once: a step that went on with a delegation of an earlier attempt has it then. */
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

  /** Counts a step, and makes it smaller where it does not fit. One that has begun in its place always fits there. */
  #fit(recorded: Recorded): void {
    this.#isChanged = true;
    const room = this.#init.maxBytes - this.#bytes + recorded.bytes;
    for (const step of smaller(recorded.step)) {
      // What is known at its end has its room from the beginning.
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

/** The most bytes that the end of a step adds, and the number of steps that were left out. */
const endBytes = 300;
const omittedBytes = 40;

interface Recorded {
  step: Step;
  bytes: number;
}

/** A step as JSON text, made smaller until it fits. */
function fitting(step: Step, room: number): string | undefined {
  for (const each of smaller(step)) {
    const text = JSON.stringify(each);
    if (utf8Length(text) < room) return text;
  }
  return undefined;
}

/** A step, then what of it is smaller. */
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

/** The beginning of a text, in characters that JSON writes with at most two bytes. */
function short(text: string): string {
  return text.slice(0, 64).replace(/[^ -~]/g, "?");
}

function withAttributes(step: Step, attributes: JsonObject | undefined): Step {
  return attributes === undefined ? step : { ...step, attributes: { ...step.attributes, ...attributes } };
}

function sizeOf(value: JsonValue): number {
  return utf8Length(JSON.stringify(value));
}

/** The name of an error; of an `A2AError` what callers are told. Other messages may say what callers must not know. */
export function nameOfError(error: unknown): string {
  if (error instanceof A2AError) return `${error.code}: ${error.message}`;
  return error instanceof Error ? error.name : "Error";
}
