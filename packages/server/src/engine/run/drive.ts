import { defer, type Clock } from "@parley/a2a/internal/base/index";
import type { A2AError, Part } from "@parley/a2a/internal/model/index";
import {
  AuthorizationNotGiven,
  MessageRefused,
  TurnAborted,
  type AgentEvent,
  type AgentOutput,
  type AgentYield,
} from "@parley/a2a/internal/protocol/index";
import type { ExtensionsOfTurn } from "@parley/a2a/internal/extensions/turn";
import type { ContextView } from "../conversations/conversations.ts";
import { isOfStore } from "../shared/errors.ts";
import type { Phase } from "./phase.ts";

/* One turn of an agent, step by step. */

/**
 * The number of steps at the start of a turn that ignore the time slice, so that a short answer needs one commit and no read from
 * the store, even on a busy server ("a short answer" in test/engine/cost.test.ts).
 */
const freeSteps = 8;

export interface Driven {
  readonly phase: Phase;
  readonly storeError: A2AError | undefined;
  accept(yielded: AgentYield, context: ContextView): boolean | Promise<boolean>;
  rest(): Promise<void> | undefined;
}

/** Processes the agent's events of one turn, until the agent returns or the turn ends. Rejects with the agent's error. */
export async function drive(output: AgentOutput, run: Driven, context: ContextView): Promise<void> {
  if (!isGenerator(output)) {
    try {
      const event = await output;
      if (event !== undefined) await run.accept(event, context);
    } catch (error) {
      await refused(error, run, context);
    }
    return;
  }
  try {
    // Await only promises, because every chunk passes through here.
    for (let steps = 1; ; steps += 1) {
      const step = await output.next();
      const accepted = step.value === undefined ? !run.phase.stopped : run.accept(step.value, context);
      const continues = typeof accepted === "boolean" ? accepted : await accepted;
      if (step.done === true) return;
      if (!continues) break;
      const rest = steps > freeSteps ? run.rest() : undefined;
      if (rest === undefined) continue;
      await rest;
      if (run.phase.stopped) break;
    }
  } catch (error) {
    // Do this before the agent cleans up, because its cleanup must not store anything.
    if (isOfStore(error)) run.phase.lose("store", error);
    // An error of the agent has ended its generator. After an error of the engine, the agent may still have to clean up.
    void output.return().catch(() => {});
    // A message arrived instead of the authorization. It starts the next turn.
    if (error instanceof AuthorizationNotGiven && error.kind === "message") return;
    return refused(error, run, context);
  }
  // The task or the turn has ended before the agent returned. A failed append is thrown at the agent's `yield`.
  if (run.storeError === undefined) await left(output);
  else await output.throw(run.storeError);
}

/** Ends the agent's function. If the turn resumes later, a step in a `finally` block throws instead of starting. That is not an error. */
async function left(output: Extract<AgentOutput, AsyncGenerator<unknown, unknown, void>>): Promise<void> {
  try {
    await output.return();
  } catch (error) {
    if (!(error instanceof TurnAborted && error.kind === "waits")) throw error;
  }
}

/** Tells the client why the agent rejects its message (`MessageRefused`). Rejects with any other error. */
async function refused(error: unknown, run: Driven, context: ContextView): Promise<void> {
  if (!(error instanceof MessageRefused)) throw error;
  if (!run.phase.refuse(error)) await run.accept(questionOf(error), context);
}

export async function during(extensions: ExtensionsOfTurn, run: () => Promise<void>): Promise<void> {
  try {
    extensions.start();
    await extensions.ready;
    await run();
  } catch (error) {
    extensions.end({ error });
    throw error;
  }
  extensions.end({});
}

type AgentEvents = Extract<AgentOutput, AsyncGenerator<unknown, unknown, void>>;

function isGenerator(output: AgentOutput): output is AgentEvents {
  return typeof output === "object" && output !== null && Symbol.asyncIterator in output;
}

/** Maximum characters of a question about invalid fields. */
const longestQuestion = 4096;

/** Asks for a valid message, with the agent's question and the problems of the message. */
function questionOf({ ask, fields }: MessageRefused): AgentEvent {
  const missing = fields.every(({ field }) => field === "message.parts");
  // If the message had no data, the agent's own question suffices.
  if (ask !== undefined && missing) return asking(ask);
  const lines: string[] = [];
  let left = longestQuestion;
  for (const { field, description } of fields) {
    const text = `${field} ${description}`;
    left -= text.length;
    if (left < 0) break;
    lines.push(text);
  }
  if (lines.length < fields.length) lines.push(`${fields.length - lines.length} more`);
  return asking([
    ...(ask ?? []),
    // Many clients show text parts without a separator.
    {
      text: `${ask === undefined ? "" : "\n"}The message cannot be used:\n${lines.map((each) => `- ${each}`).join("\n")}`,
    },
  ]);
}

function asking(parts: readonly Part[]): AgentEvent {
  return { kind: "status", state: "TASK_STATE_INPUT_REQUIRED", message: { parts } };
}

/** How long all agents together may run in one turn of the event loop, in milliseconds. */
const timeSlice = 1;

/**
 * Keeps agents from blocking the event loop. An agent that yields without waiting continues in microtasks, which keep the process
 * from reading requests and writing answers. Once the time slice is used up, agents wait for the next turn of the event loop.
 *
 * The writer's window limits one agent, but not many. Without the slice, 32 agents at full speed take 160 ms of CPU in one
 * turn instead of 2 (docs/decisions/hot-path.md, and "many agents at full speed" in test/engine/cost.test.ts).
 */
export class Pace {
  readonly #clock: Clock;
  /** When the first agent continued in this turn of the event loop; monotonic time. */
  #since: number | undefined;
  #resting: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves in the next turn of the event loop; `undefined` while the current one has time left. */
  rest(): Promise<void> | undefined {
    if (this.#since === undefined) this.#begin();
    else if (this.#clock.elapsed() - this.#since >= timeSlice)
      return new Promise((resolve) => this.#resting.push(resolve));
    return undefined;
  }

  #begin(): void {
    this.#since = this.#clock.elapsed();
    defer(() => {
      this.#since = undefined;
      const resting = this.#resting;
      if (resting.length === 0) return;
      this.#resting = [];
      this.#begin();
      for (const resolve of resting) resolve();
    });
  }
}
