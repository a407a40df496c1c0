import { deferred, untilAborted } from "@parley/a2a/internal/base/async";
import { utf8Length, Waiters } from "@parley/a2a/internal/base/index";
import type { JsonValue, Part } from "@parley/a2a/model";
import { MessageRefused, type Turn } from "@parley/server";
import type { Budget } from "./budget.ts";
import { fromJson, toJsonText } from "./json.ts";

/* Tool results as steps. */

/** The step of a tool: an idempotency key, and whether an earlier attempt may have taken effect. */
export type ToolStep = Pick<Parameters<Parameters<Turn["step"]>[1]>[0], "key" | "uncertain" | "attempt">;

/** A stored output or error. */
interface Stored {
  readonly output?: JsonValue;
  readonly error?: { readonly name: string; readonly message: string };
}

/** Holds results back until they are known to be final, because a loop that asks a question has no result yet. */
export class Gate {
  #opened = deferred<void>();
  #stored: Promise<unknown>[] = [];

  /** Number of results in progress. */
  running = 0;

  /** Resolves when the results may be stored. */
  hold(stored: Promise<unknown>): Promise<void> {
    stored.catch(() => {});
    this.#stored.push(stored);
    return this.#opened.promise;
  }

  /** Stores the held results. */
  async open(): Promise<void> {
    this.#opened.resolve();
    await Promise.all(this.#stored);
    this.#stored = [];
    this.#opened = deferred();
  }

  /** Discards the held results. */
  close(): void {
    this.#opened.reject(new Error("The result is not complete"));
    this.#opened.promise.catch(() => {});
  }
}

/** Names of the errors that replace a result that is too large or not JSON. */
const [tooLargeName, notJsonName] = ["ResultTooLarge", "ResultNotStored"];

/** Whether the error replaces a result that could not be stored. */
export function isUnstored(error: unknown): error is Error {
  return error instanceof Error && (error.name === tooLargeName || error.name === notJsonName);
}

/** The question that a tool has thrown. `undefined` for any other error, which the model reads. */
export function questionOf(error: unknown): readonly Part[] | undefined {
  return error instanceof MessageRefused ? error.ask : undefined;
}

/** A task can hold 16 KiB of names of steps in progress, each with a time. Above this limit, further calls of an answer wait. */
const [maxRunning, aroundName] = [12 << 10, 24];

/** Runs steps in parallel, as many as the task can hold names for. */
export class Running {
  #bytes = 0;
  readonly #ended = new Waiters();

  async of<T>(name: string, run: () => Promise<T>): Promise<T> {
    const bytes = utf8Length(name) + aroundName;
    while (this.#bytes > 0 && this.#bytes + bytes > maxRunning) await this.#ended.wait();
    this.#bytes += bytes;
    try {
      return await run();
    } finally {
      this.#bytes -= bytes;
      this.#ended.wake();
    }
  }
}

/** Stores the tool results of one turn. */
export class Results {
  readonly #turn: Turn;
  readonly #budget: Budget;
  readonly #had = new Map<string, number>();
  readonly #running = new Running();

  constructor(turn: Turn, budget: Budget) {
    this.#turn = turn;
    this.#budget = budget;
  }

  /**
   * Calls a tool once, and returns the stored result. Does not call `run` if the result is stored.
   *
   * @param abort - Aborts the call, in addition to the end of the turn.
   * @param gate - Delays storing. The result is returned immediately, but stored only when the gate opens.
   */
  async of(
    toolCallId: string,
    abort: AbortSignal | undefined,
    run: (step: ToolStep, signal: AbortSignal) => Promise<unknown>,
    gate?: Gate,
  ): Promise<unknown> {
    const name = this.#nameOf(toolCallId);
    return this.#running.of(name, () => this.#once(name, abort, run, gate));
  }

  async #once(
    name: string,
    abort: AbortSignal | undefined,
    run: (step: ToolStep, signal: AbortSignal) => Promise<unknown>,
    gate: Gate | undefined,
  ): Promise<unknown> {
    let isCounted = false;
    const early = deferred<JsonValue>();
    const stored: Promise<JsonValue> = this.#turn.step(name, async ({ key, uncertain, attempt, signal }) => {
      const both = abort === undefined ? signal : AbortSignal.any([signal, abort]);
      const work = run({ key, uncertain, attempt }, both).then(jsonOf);
      // Does not wait for a tool that ignores its signal.
      const text = await untilAborted(work, both).catch((error: unknown) => {
        // A call that was aborted or asks the user has no result, and a later call continues it.
        if (both.aborted || questionOf(error) !== undefined) throw error;
        return toJsonText({ error: errorOf(error) });
      });
      const result = this.#fitted(text);
      isCounted = true;
      if (gate !== undefined) {
        early.resolve(JSON.parse(result) as JsonValue);
        await gate.hold(stored);
      }
      return JSON.parse(result) as JsonValue;
    });
    const result = await Promise.race([early.promise, stored]);
    if (!isCounted) this.#budget.add(JSON.stringify(result));
    return outputOf(result);
  }

  /** Replaces a result that is too large with an error. Counts synchronously, so that parallel calls stay within the limit. */
  #fitted(text: string): string {
    const { room } = this.#budget;
    const bytes = utf8Length(text);
    const result = bytes <= room ? text : toJsonText({ error: errorOf(tooLarge(bytes, room)) });
    this.#budget.add(result);
    return result;
  }

  /** Numbers repeated ids, because models may reuse ids. The calls of one answer start in order, so the numbers are the same in each attempt. */
  #nameOf(toolCallId: string): string {
    const id = utf8Length(toolCallId) > 200 ? toolCallId.slice(0, 60) : toolCallId;
    const number = (this.#had.get(id) ?? 0) + 1;
    this.#had.set(id, number);
    return `tool ${id}${number === 1 ? "" : ` #${number}`}`;
  }
}

function jsonOf(output: unknown): string {
  try {
    return toJsonText({ output });
  } catch (error) {
    throw Object.assign(new Error(`The result cannot be stored: ${errorOf(error).message}`), { name: notJsonName });
  }
}

function outputOf(stored: unknown): unknown {
  const { error, output } = stored as Stored;
  if (error !== undefined) throw Object.assign(new Error(error.message), { name: error.name });
  return fromJson(output);
}

export function errorOf(error: unknown): { readonly name: string; readonly message: string } {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return { name: name.slice(0, 200), message: message.slice(0, 4000) };
}

export function tooLarge(bytes: number | string, room: number): Error {
  const text = `The result has ${bytes} bytes; at most ${room} fit into this task. Ask the tool for less.`;
  return Object.assign(new Error(text), { name: tooLargeName });
}
