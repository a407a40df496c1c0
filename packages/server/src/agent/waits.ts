import type { JsonValue, StandardSchema } from "@parley/a2a/internal/model/index";
import type {
  AgentYield,
  CheckedWaitOptions,
  OpenWait,
  TurnBase,
  TurnMemory,
} from "@parley/a2a/internal/protocol/index";
import { checkData } from "@parley/a2a/internal/schema/data";
import { checkName, quoted, stepMistake } from "./steps.ts";
import { storedJson } from "@parley/a2a/internal/base/json";

/*
 * Waits that need no process (docs/decisions/waiting.md). Each yields an event; the engine then ends the function, and calls it again when
 * the wait is over.
 */

/** The stored result of a wait. */
interface Ended {
  /** The data of the event. Absent: timeout. */
  readonly data?: JsonValue;
}

const endedJson = storedJson<Ended>();

/** Waits for a time. `key` identifies the wait in each attempt of the turn. */
export async function* sleep(
  turn: TurnBase,
  key: string,
  until: Date | number,
): AsyncGenerator<AgentYield, void, void> {
  const time = typeof until === "number" ? turn.clock.now() + until : timeOf(until);
  if (Number.isNaN(time)) throw stepMistake("sleep", "takes a Date, or milliseconds");
  checkKey("sleep", key);
  const memory = await turn.memory();
  useKey("sleep", memory, key);
  if (memory.waiting(key) === undefined && time <= turn.clock.now()) return;
  yield* wait(turn, memory, key, { until: whole(time) }, () => Promise.resolve(undefined));
}

/** Keys of the agent begin with `=`. */
function checkKey(call: string, key: string): void {
  if (key.startsWith("=")) checkName(call, key.slice(1), "key");
}

/** Rejects a second wait with the same key, which would end immediately with the result of the first. */
function useKey(call: string, memory: TurnMemory, key: string): void {
  if (!key.startsWith("=")) return;
  if (memory.had.has(`wait ${key}`)) {
    throw stepMistake(call, `the turn has a wait with the key ${quoted(key.slice(1))} already: give each its own`);
  }
  memory.had.add(`wait ${key}`);
}

/** JavaScript callers can pass anything. */
function timeOf(until: unknown): number {
  return until instanceof Date ? until.getTime() : NaN;
}

/** Limits a time to the latest one that stores accept. */
function whole(time: number): number {
  return Math.min(Math.ceil(time), Number.MAX_SAFE_INTEGER);
}

export async function* waitFor<Output>(
  turn: TurnBase,
  key: string,
  name: string,
  { timeout, schema }: Partial<CheckedWaitOptions<Output>> = {},
): AsyncGenerator<AgentYield, Output | undefined, void> {
  checkName("waitFor", name);
  if (timeout !== undefined && !(timeout >= 0)) throw stepMistake("waitFor", "timeout is in milliseconds");
  checkKey("waitFor", key);
  const memory = await turn.memory();
  useKey("waitFor", memory, key);
  /** The value of an event from this attempt. An earlier event is checked again. */
  let fitting: { readonly value: Output } | undefined;
  const take = async (): Promise<Taken | undefined> => {
    for (;;) {
      const event = await memory.event(name);
      if (event === undefined) return undefined;
      fitting = await fits(turn, name, event.data, schema);
      if (fitting !== undefined) return { data: event.data, event: event.key };
      memory.drop(event.key);
    }
  };
  const until = timeout === undefined || timeout === Infinity ? undefined : whole(turn.clock.now() + timeout);
  const first = { event: name, ...(until !== undefined && { until }) };
  const { data } = yield* wait(turn, memory, key, first, take);
  if (data === undefined) return undefined;
  const value = fitting ?? (await fits(turn, name, data, schema));
  if (value === undefined) throw stepMistake("waitFor", `the event of an earlier attempt does not match the schema`);
  return value.value;
}

/** An event that ends a wait. */
interface Taken {
  readonly data: JsonValue;
  /** Its row. */
  readonly event: string;
}

async function* wait(
  turn: TurnBase,
  memory: TurnMemory,
  key: string,
  first: OpenWait,
  take: () => Promise<Taken | undefined>,
): AsyncGenerator<AgentYield, Ended, void> {
  const before = memory.ended(key);
  if (before !== undefined) return endedJson.read(before);
  const open = memory.waiting(key) ?? { ...first, since: whole(turn.clock.now()) };
  memory.wait(key, open);
  let isOver = false;
  const end = (ended: Ended, event?: string): Ended => {
    isOver = true;
    memory.over(key, endedJson.write(ended), event);
    return ended;
  };
  try {
    for (;;) {
      turn.signal.throwIfAborted();
      const taken = await take();
      if (taken !== undefined) return end({ data: taken.data }, taken.event);
      if (open.until !== undefined && open.until <= turn.clock.now()) return end({});
      yield { kind: "wait", waits: [{ key, wait: open }] };
    }
  } finally {
    // If the turn leaves the process, the wait continues.
    if (!isOver && !memory.leaving && !turn.signal.aborted) memory.leave(key);
  }
}

/** The data as parsed by the schema; `undefined` if it does not match. */
async function fits<Output>(
  { logger }: TurnBase,
  name: string,
  data: JsonValue,
  schema: StandardSchema<Output> | undefined,
): Promise<{ readonly value: Output } | undefined> {
  if (schema === undefined) return { value: data as Output };
  const checked = await checkData([{ field: "data", value: data }], schema);
  if (checked.fits) return checked;
  const fields = checked.fields.map(({ field, description }) => `${field} ${description}`);
  logger.error("Event does not match its schema; dropped", { name, fields });
  return undefined;
}
