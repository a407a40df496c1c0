import { utf8Length } from "@parley/a2a/internal/base/index";
import type { JsonValue } from "@parley/a2a/model";
import type { Turn } from "@parley/server";
import type { Budget } from "./budget.ts";
import { fromJson, toJsonText } from "./json.ts";

/* Results of tools as steps. */

/** What a tool knows of its step: an idempotency key, and whether an earlier call may have had its effect. */
export type ToolStep = Pick<Parameters<Parameters<Turn["step"]>[1]>[0], "key" | "uncertain" | "attempt">;

/** A stored result: the output, or the error. */
interface Stored {
  readonly output?: JsonValue;
  readonly error?: { readonly name: string; readonly message: string };
}

/** Stores the results of one turn. */
export class Results {
  readonly #turn: Turn;
  readonly #budget: Budget;
  readonly #had = new Map<string, number>();

  constructor(turn: Turn, budget: Budget) {
    this.#turn = turn;
    this.#budget = budget;
  }

  /**
   * Calls a tool once, and returns what is stored. `run` is not called if the result is stored.
   *
   * @param abort - Aborts the call, beside the end of the turn.
   */
  async of(
    toolCallId: string,
    abort: AbortSignal | undefined,
    run: (step: ToolStep, signal: AbortSignal) => Promise<unknown>,
  ): Promise<unknown> {
    let isCounted = false;
    const stored = await this.#turn.step(this.#nameOf(toolCallId), async ({ key, uncertain, attempt, signal }) => {
      const both = abort === undefined ? signal : AbortSignal.any([signal, abort]);
      const work = run({ key, uncertain, attempt }, both).then((output) => toJsonText({ output }));
      const text = await untilAborted(both, work).catch((error: unknown) => {
        // A call that was aborted has no result: a resumed turn calls the tool again.
        if (both.aborted) throw error;
        return toJsonText({ error: errorOf(error) });
      });
      const bytes = utf8Length(text);
      const fits = bytes <= this.#budget.room;
      const result = fits ? text : toJsonText({ error: errorOf(tooLarge(bytes, this.#budget.room)) });
      // At once, for calls that run at the same time.
      this.#budget.add(result);
      isCounted = true;
      return JSON.parse(result) as JsonValue;
    });
    if (!isCounted) this.#budget.add(JSON.stringify(stored));
    return outputOf(stored);
  }

  /** Models use an id twice. The calls of one answer start in its order, so the numbers are the same in each attempt. */
  #nameOf(toolCallId: string): string {
    const id = utf8Length(toolCallId) > 200 ? toolCallId.slice(0, 60) : toolCallId;
    const number = (this.#had.get(id) ?? 0) + 1;
    this.#had.set(id, number);
    return `tool ${id}${number === 1 ? "" : ` #${number}`}`;
  }
}

function outputOf(stored: unknown): unknown {
  const { error, output } = stored as Stored;
  if (error !== undefined) throw Object.assign(new Error(error.message), { name: error.name });
  return fromJson(output);
}

/** A tool that ignores its signal ends with it nevertheless. */
export function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error("aborted"));
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

export function errorOf(error: unknown): { readonly name: string; readonly message: string } {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return { name: name.slice(0, 200), message: message.slice(0, 4000) };
}

export function tooLarge(bytes: number, room: number): Error {
  return new Error(`The result has ${bytes} bytes; this task keeps at most ${room}. Ask the tool for less.`);
}
