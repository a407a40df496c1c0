import { plain } from "@parley/a2a/internal/base/display";
import { utf8Length } from "@parley/a2a/internal/base/index";
import { jsonTextOf } from "@parley/a2a/internal/base/json-text";
import { jsonAdvice, notJson } from "@parley/a2a/internal/base/json";
import { A2AError } from "@parley/a2a/internal/model/index";
import {
  observe,
  stepBounds,
  TurnAborted,
  type StepCall,
  type StepOptions,
  type StepRetry,
  type TurnBase,
} from "@parley/a2a/internal/protocol/index";

/* Steps: external effects that happen only once (docs/decisions/waiting.md). */

export function stepMistake(call: string, text: string): A2AError {
  return new A2AError("InvalidAgentResponse", `turn.${call}(): ${text}`);
}

/** JavaScript callers can pass anything. */
export function checkName(call: string, name: unknown, what = "name"): asserts name is string {
  const bytes = typeof name === "string" ? utf8Length(name) : 0;
  if (bytes === 0 || bytes > stepBounds.name) {
    throw stepMistake(call, `the ${what} must be a text of 1 to ${stepBounds.name} bytes`);
  }
}

export function quoted(name: string): string {
  return JSON.stringify(plain(name, 100));
}

/** Calls a function once in all attempts of a turn, or of its task. */
export async function step(
  turn: TurnBase,
  name: string,
  run: (call: StepCall) => unknown,
  { scope = "turn", retry }: StepOptions = {},
): Promise<unknown> {
  checkName("step", name);
  if (typeof run !== "function") throw stepMistake("step", `${quoted(name)} has no function`);
  if (scope !== "turn" && scope !== "task") throw stepMistake("step", `scope must be "turn" or "task"`);
  checkRetry(retry);
  const memory = await turn.memory();
  const id = `${scope} ${name}`;
  if (memory.running.has(id) || (scope === "turn" && memory.had.has(id))) {
    throw stepMistake("step", `the turn has a step ${quoted(name)} already: give each its own name, as in "book 1"`);
  }
  const known = memory.find(scope, name);
  if (known !== undefined) {
    memory.had.add(id);
    return valueOf(known);
  }
  turn.signal.throwIfAborted();
  if (memory.leaving) throw new TurnAborted("waits", "The function is called again: no step begins before that");
  memory.running.add(id);
  try {
    const key = await memory.keyOf(scope, name);
    const uncertain = await stored(turn, memory.begin(scope, name));
    const call = { key, uncertain, signal: turn.signal };
    const { observed } = turn;
    const work = (): Promise<unknown> => tried(turn, call, run, retry);
    const value = await (observed?.step === undefined ? work() : observe(observed.step(name), work));
    const json = jsonOf(name, value);
    checkSize(name, json, memory.room(name));
    // Stored even if the turn has begun to wait meanwhile, or another agent has asked a question, because the effect has happened.
    turn.signal.throwIfAborted();
    await stored(turn, memory.remember(scope, name, json));
    memory.had.add(id);
    return valueOf(json);
  } finally {
    memory.running.delete(id);
  }
}

/** `NaN` would retry without end. */
function checkRetry(retry: StepRetry | undefined): void {
  if (retry === undefined) return;
  const { attempts, delay = 0, maxDelay = 0 } = retry;
  if (Number.isInteger(attempts) && attempts > 0 && delay >= 0 && maxDelay >= 0) return;
  throw stepMistake("step", "retry.attempts must be a whole number from 1, and its times milliseconds");
}

/** Maximum delay of a timer. A longer one would fire immediately. */
const longestPause = 2 ** 31 - 1;

/** A result as JSON text. `undefined` is an empty text. */
function jsonOf(name: string, value: unknown): string {
  if (value === undefined) return "";
  // JSON would silently change a `Map`: a later attempt would get another value than the first.
  const fault = notJson(value);
  if (fault !== undefined) throw notAResult(name, `result${fault}`);
  try {
    return jsonTextOf(value);
  } catch (cause) {
    throw notAResult(name, "result nests too deep", cause);
  }
}

function notAResult(name: string, fault: string, cause?: unknown): A2AError {
  const text = `the result of ${quoted(name)} is not JSON: ${fault}; ${jsonAdvice("return")}`;
  return new A2AError("InvalidAgentResponse", `turn.step(): ${text}`, { cause });
}

/** A copy for each attempt, so that changes to one do not reach the others. */
function valueOf(json: string): unknown {
  return json === "" ? undefined : JSON.parse(json);
}

function checkSize(name: string, json: string, room: number): void {
  const bytes = utf8Length(json);
  const { result, results } = stepBounds;
  const advice = "store it elsewhere, and return a reference";
  if (bytes > result) {
    throw stepMistake("step", `the result of ${quoted(name)} takes ${bytes} bytes of at most ${result}: ${advice}`);
  }
  if (bytes > room) {
    throw stepMistake(
      "step",
      `the result of ${quoted(name)} takes ${bytes} bytes, and there is room for ${room}: all results of a turn take at most ${results}. ${advice}`,
    );
  }
}

/** Calls the function until it succeeds. */
async function tried(
  turn: TurnBase,
  call: Omit<StepCall, "attempt">,
  run: (call: StepCall) => unknown,
  retry: StepRetry | undefined,
): Promise<unknown> {
  const { attempts = 1, delay = 1000, maxDelay = 60_000 } = retry ?? {};
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run({ ...call, attempt, uncertain: call.uncertain || attempt > 1 });
    } catch (error) {
      if (attempt >= attempts || turn.signal.aborted) throw error;
      await pause(turn, Math.min(longestPause, maxDelay, delay * 2 ** (attempt - 1)));
    }
  }
}

function pause({ clock, signal }: TurnBase, ms: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clear();
      reject(signal.reason ?? new A2AError("Aborted"));
    };
    const clear = clock.after(ms, () => {
      signal.removeEventListener("abort", end);
      resolve();
    });
    signal.addEventListener("abort", end, { once: true });
  });
}

/** If the turn is over, rejects with its reason, and not with the failure to store. */
async function stored<T>(turn: TurnBase, storing: Promise<T>): Promise<T> {
  try {
    const result = await storing;
    // The task may have failed, because it had no room for the row.
    turn.signal.throwIfAborted();
    return result;
  } catch (error) {
    turn.signal.throwIfAborted();
    throw error;
  }
}
