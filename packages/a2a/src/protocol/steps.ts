import type { JsonLike, JsonValue, StandardSchema } from "../model/index.ts";
import type { AgentYield, OpenWait } from "./agent-event.ts";
import type { TurnSignal } from "./turn-errors.ts";

/* Steps that run once, and waits that release the process: their arguments, and the data that they store with the task. */

/** Effects that happen once per turn, and waits that need no process. */
export interface TurnSteps {
  /**
   * Calls a function with an effect elsewhere, such as a booking, and stores its result (JSON, or nothing). When this turn is called again,
   * after a crash or a wait, the stored result is returned instead. A name (1 to 256 bytes) is used once per turn: in a loop, number the
   * names. An error of the function is thrown here, and nothing is stored. Creates the task if needed.
   *
   * If the process crashes between the effect and the stored result, the function is called again with the same `key`, and with
   * `uncertain`: use the key as idempotency key of the service, or ask the service first. After a crash only `resumable` agents are called again.
   *
   * @throws A2AError `InvalidAgentResponse` for a name that is used twice, and a result that is not JSON or larger than 256 KiB (1 MiB per
   * turn); `TurnAborted` when the turn is no longer wanted.
   *
   * @example
   * ```ts
   * const { order } = await turn.step("order", async ({ key, signal }) => {
   *   const answer = await fetch("https://shop.example.com/orders", { method: "POST", headers: { "idempotency-key": key }, signal });
   *   return (await answer.json()) as { order: string };
   * });
   * ```
   */
  step<Value extends JsonLike<Value>>(
    name: string,
    run: (call: StepCall) => Promise<Value> | Value,
    options?: StepOptions,
  ): Promise<Value>;
  step(name: string, run: (call: StepCall) => Promise<void> | void, options?: StepOptions): Promise<void>;
  /**
   * Waits until a time, or for a number of milliseconds from the first call, without a process. The function ends here (its `finally` runs). After
   * the wait, it is called again from its start, with a higher `attempt`, and the same wait returns. So put effects before it into `step()`. Waits
   * are identified by their order, and in `turn.all()` by their times; computed times, and dates in several generators, need a `key` there. Throws
   * `InvalidAgentResponse` for an invalid time, and a `key` that is used twice.
   *
   * @example
   * ```ts
   * yield turn.working("I ask again tomorrow.");
   * yield* turn.sleep(24 * 60 * 60_000);
   * ```
   */
  sleep(until: Date | number, options?: KeyedWait): AsyncGenerator<AgentYield, void, void>;
  /**
   * Waits for an event of this task without a process, as `sleep()` does: `server.signal(taskId, name, data)` sends it, even before the wait.
   * Each event ends one wait. Returns its data (`null` if it has none), or `undefined` after `timeout`. Ask users with
   * `turn.inputRequired()`: their messages are the next turns. `name`: 1 to 256 bytes.
   *
   * @example
   * ```ts
   * const approval = yield* turn.waitFor("approved", { timeout: 7 * 24 * 60 * 60_000 });
   * if (approval === undefined) yield turn.rejected("Not approved in time.");
   * ```
   */
  waitFor<Output>(
    name: string,
    options: CheckedWaitOptions<Output> & { readonly timeout: number },
  ): AsyncGenerator<AgentYield, Output | undefined, void>;
  waitFor<Output>(name: string, options: CheckedWaitOptions<Output>): AsyncGenerator<AgentYield, Output, void>;
  waitFor(
    name: string,
    options: WaitOptions & { readonly timeout: number },
  ): AsyncGenerator<AgentYield, JsonValue | undefined, void>;
  waitFor(name: string, options?: KeyedWait): AsyncGenerator<AgentYield, JsonValue, void>;
}

/** The argument of a step's function. */
export interface StepCall {
  /** An idempotency key for the service that the step calls: 32 hexadecimal digits, the same in each attempt, and unique to this step. */
  readonly key: string;
  /**
   * Whether an earlier call may have had its effect: it threw, or the process died before its result was stored. If the
   * service takes no keys, ask it whether the effect has happened.
   */
  readonly uncertain: boolean;
  /** Number of this call of the step in this attempt of the turn, from 1. Above 1, the previous call threw (`StepOptions.retry`). */
  readonly attempt: number;
  /** Aborted when the result of the turn is no longer wanted. The result of the step is then not stored. */
  readonly signal: TurnSignal;
}

/** How often a step that throws is retried. */
export interface StepRetry {
  /** Maximum number of calls of the function. */
  readonly attempts: number;
  /** Time before the second call, in milliseconds. It doubles with each further call. Default 1 s. */
  readonly delay?: number;
  /** The longest time between two calls, in milliseconds. Default 1 minute. */
  readonly maxDelay?: number;
}

/** Options of `turn.step()`. */
export interface StepOptions {
  /** How long the stored result applies: in this `turn`, or in all later turns of the `task` too. Default `turn`. */
  readonly scope?: "turn" | "task";
  /** Calls the function again when it throws. The process waits in between. Default: it is called once, and its error is thrown. */
  readonly retry?: StepRetry;
}

/** Options of `turn.sleep()`, and of `turn.waitFor()`. */
export interface KeyedWait {
  /**
   * Identifies the wait when the function is called again: 1 to 256 bytes, unique in a turn. Needed in `turn.all()` for equal events or
   * computed times. Default: the order of waits.
   */
  readonly key?: string;
}

/** Options of `turn.waitFor()`. */
export interface WaitOptions extends KeyedWait {
  /** Maximum wait, in milliseconds, from the first time that the function reaches this call. The result is then `undefined`. Default: no limit. */
  readonly timeout?: number;
}

/** Options of `turn.waitFor()` with a schema for the event's data. */
export interface CheckedWaitOptions<Output> extends WaitOptions {
  /** Checks the data of the event, with any Standard Schema library. An event that does not match is dropped, and an error is logged. */
  readonly schema: StandardSchema<Output>;
}

/** Options of `server.signal()`, which sends an event to a task. */
export interface SignalOptions {
  /** The agent of the task, by its id. Default: all agents of this server are searched. */
  readonly agent?: string;
  /** Deduplicates the event, such as a retried webhook. At most 200 bytes. Default: each call is a new event. */
  readonly id?: string;
}

/** Limits of the data that steps and waits store with a task, in bytes of JSON. */
export interface StepBounds {
  /** Maximum bytes of a name. */
  readonly name: number;
  /** Maximum bytes of one result. */
  readonly result: number;
  /** Maximum bytes of all results that a turn can read, including their names. */
  readonly results: number;
  /** Maximum bytes of the data of an event. */
  readonly event: number;
  /** Maximum number of events of a task that no turn has taken. */
  readonly events: number;
}

/** Names of 256 bytes, results of 256 KiB each and 1 MiB together, events of 16 KiB, 32 of which may wait in a task. */
export const stepBounds: StepBounds = { name: 256, result: 256 << 10, results: 1 << 20, event: 16 << 10, events: 32 };

/* Data stored with the task. The engine stores it; `turn.step()`, `turn.sleep()` and `turn.waitFor()` use it. */

/** An event that no turn has taken yet. */
export interface WaitingEvent {
  /** The key of its row. */
  readonly key: string;
  /** Its data. */
  readonly data: JsonValue;
}

/** The stored results and waits of a turn. Created by `TurnBase.memory()`. */
export interface TurnMemory {
  /** Names of running steps. */
  readonly running: Set<string>;
  /** Names of steps that this attempt has reached. */
  readonly had: Set<string>;
  /** Whether the turn has released the process, or is about to: results of its function are no longer stored. */
  readonly leaving: boolean;
  /** The result of a step as JSON text, empty if it has none; `undefined`: the step is not done. */
  find(scope: "turn" | "task", name: string): string | undefined;
  /** Maximum bytes of the result of a step. */
  room(name: string): number;
  /** An idempotency key. */
  keyOf(scope: "turn" | "task", name: string): Promise<string>;
  /** Stores the start of a step, and creates the task if necessary. Once stored, resolves to true if an earlier call may have had its effect. */
  begin(scope: "turn" | "task", name: string): Promise<boolean>;
  /** Stores the result of a step. Resolves once it is stored, with all that was yielded before. */
  remember(scope: "turn" | "task", name: string, json: string): Promise<void>;
  /** The result of a wait as JSON text; `undefined`: it is not over. */
  ended(key: string): string | undefined;
  /** A wait that has begun, in this attempt or an earlier one; `undefined` if it has not begun. */
  waiting(key: string): OpenWait | undefined;
  /** Begins a wait, and creates the task if necessary. */
  wait(key: string, wait: OpenWait): void;
  /** Ends a wait, and remembers its result as JSON text. `event`: the row of the event that ends it. */
  over(key: string, json: string, event?: string): void;
  /** Removes a wait that the turn no longer awaits. */
  leave(key: string): void;
  /** The oldest event with a name that no other wait has taken. */
  event(name: string): Promise<WaitingEvent | undefined>;
  /** Deletes an event that fits no wait. */
  drop(event: string): void;
}
