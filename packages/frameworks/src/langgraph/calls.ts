import { untilAborted } from "@parley/a2a/internal/base/async";
import { utf8Length } from "@parley/a2a/internal/base/index";
import { stepBounds } from "@parley/a2a/internal/protocol/index";
import type { Turn } from "@parley/server";
import { isLarger } from "../shared/json.ts";
import { errorOf, Running, tooLarge, type ToolStep } from "../shared/results.ts";
import { viewOf } from "../shared/view.ts";
import type { Feed } from "./feed.ts";
import type { Codec, Thread, Typed } from "./thread.ts";

/* Model and tool calls within the nodes of a turn. The thread keeps their results until their node has ended. */

export type Run = (step: ToolStep, signal: AbortSignal) => Promise<unknown>;

/** Maximum size of a result to serialize. LangGraph's serializer takes many times the memory of the result. */
const maxWritten = 4 << 20;

export class Calls {
  readonly #turn: Turn;
  readonly #thread: Thread;
  readonly #codec: Codec;
  readonly #feed: Feed;
  readonly #counts = new Map<string, Map<string, number>>();
  readonly #running = new Running();

  constructor(turn: Turn, thread: Thread, codec: Codec, feed: Feed) {
    this.#turn = turn;
    this.#thread = thread;
    this.#codec = codec;
    this.#feed = feed;
  }

  /** Called when a node starts or restarts. Its calls get the same names again. */
  restart(task: string): void {
    this.#counts.delete(task);
  }

  /** Names a call after its LangGraph task, whose id is the same in each attempt. Numbers identical calls in order. */
  name(task: string, call: string): string {
    const short = utf8Length(call) > 150 ? call.slice(0, 40) : call;
    const counts = this.#counts.get(task) ?? new Map<string, number>();
    this.#counts.set(task, counts);
    const number = (counts.get(short) ?? 0) + 1;
    counts.set(short, number);
    return `${short}${number === 1 ? "" : ` #${number}`} of ${task}`;
  }

  /** Called when a call fails, so that its retry gets the same name. */
  unname(task: string, call: string): void {
    const counts = this.#counts.get(task);
    counts?.set(call, (counts.get(call) ?? 1) - 1);
  }

  /** The stored result of a call. `undefined` if no result is stored. */
  async find(name: string): Promise<unknown> {
    const known = this.#thread.calls.get(name);
    return known && this.#codec.read(known);
  }

  /** Resolves once the result is stored, together with everything shown before it. */
  async keep(name: string, result: unknown): Promise<void> {
    const typed = await this.#codec.typed(result);
    await this.#feed.save(() => this.#thread.calls.set(name, typed));
  }

  /** Calls a tool once, and returns the stored result or throws the stored error. An error for which `passes` is true is rethrown but not stored. */
  async once(
    name: string,
    abort: AbortSignal | undefined,
    run: Run,
    passes: (value: unknown) => boolean,
  ): Promise<unknown> {
    const known = this.#thread.calls.get(name);
    if (known !== undefined) return this.#outcome(known);
    let passed: { readonly value: unknown } | undefined;
    const step: Parameters<Turn["step"]>[1] = async ({ key, uncertain, attempt, signal }) => {
      const both = abort === undefined ? signal : AbortSignal.any([signal, abort]);
      const result = await untilAborted(run({ key, uncertain, attempt }, both), both).then(
        (output) => ({ output }),
        (error: unknown) => {
          // An aborted call has no result, so a resumed turn calls the tool again.
          if (both.aborted || passes(error)) throw error;
          return { error: errorOf(error) };
        },
      );
      if ("output" in result && passes(result.output)) passed = { value: result.output };
      else await this.keep(name, await this.#fitting(result));
    };
    await this.#running.of(name, () => this.#turn.step(name, step));
    if (passed !== undefined) return passed.value;
    const kept = this.#thread.calls.get(name);
    return kept && this.#outcome(kept);
  }

  async #fitting(result: object): Promise<object> {
    if (isLarger(result, maxWritten)) return { error: errorOf(tooLarge(`more than ${maxWritten}`, stepBounds.result)) };
    const bytes = utf8Length(JSON.stringify(await this.#codec.typed(result)));
    return bytes <= stepBounds.result ? result : { error: errorOf(tooLarge(bytes, stepBounds.result)) };
  }

  async #outcome(typed: Typed): Promise<unknown> {
    const { output, error } = viewOf<{ output: unknown; error: Error }>(await this.#codec.read(typed));
    if (error !== undefined) throw Object.assign(new Error(error.message), error);
    return output;
  }
}
