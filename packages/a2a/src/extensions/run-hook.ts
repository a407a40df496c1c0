import { utf8Length, type Logger } from "../base/index.ts";
import { jsonTextOf } from "../base/json-text.ts";
import { A2AError, check, messageSchema } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type {
  AcceptedCall,
  AcceptedInput,
  AnyExtension,
  AppendedEvent,
  AppendingTurn,
  ExtensionRow,
  TaskRows,
} from "../protocol/index.ts";
import {
  copyFor,
  failed,
  fails,
  inTime,
  isHarmless,
  isPromise,
  unhandled,
  type HookTime,
  type Warns,
} from "./hook-calls.ts";
import type { ExtensionReader } from "./reads.ts";
import { changedByAddition, changedIdentity, eventProblems, inputProblems, listed, misfitsOfEvent } from "./results.ts";

/* Runs one hook of one extension, and checks and applies its result. */

/** Maximum bytes that an extension of kind `data` may add to a message, because the task must have room for it. */
const maxAdded = 1 << 20;

/** The message after `onAccept` of one extension. Returns a promise only if the hook does. */
export function acceptedBy(
  extension: AnyExtension,
  before: AcceptedInput,
  call: Omit<AcceptedCall, "rows">,
  store: RowStore,
  logger: Logger,
  time: HookTime,
): AcceptedInput | Promise<AcceptedInput> {
  const { uri } = extension;
  let known: readonly ExtensionRow[] | undefined;
  // A hook's decision is valid only while the rows that it read are unchanged, because another message may be stored first.
  const keep = (change: RowChange): void =>
    store.keep(known === undefined ? change : { ...change, if: stateIn(known, change.key) });
  const { changes, end, commit } = rowsOf(uri, { keep }, isHarmless(extension));
  const read = async (): Promise<readonly ExtensionRow[]> => (known = await store.read(uri));
  const given = { ...call, rows: { ...changes, read } };
  const leave = (thrown: unknown): AcceptedInput => {
    end();
    fails(extension, "onAccept", thrown, logger);
    return before;
  };
  const take = (returned: unknown): AcceptedInput => {
    end();
    const after = checked(extension, before, returned);
    commit();
    return after;
  };
  try {
    const returned = extension.onAccept?.(copyFor(before), given);
    return isPromise(returned) ? inTime(returned, time).then(take).catch(leave) : take(returned);
  } catch (thrown) {
    return leave(thrown);
  }
}

function stateIn(rows: readonly ExtensionRow[], key: string): NonNullable<RowChange["if"]> | null {
  const row = rows.find((each) => each.key === key);
  return row === undefined ? null : { value: row.value, ...(row.due !== undefined && { due: row.due }) };
}

/** The result must be a message with the same ids and role. */
function checked(extension: AnyExtension, before: AcceptedInput, returned: unknown): AcceptedInput {
  const problems = inputProblems(returned);
  if (problems.length > 0) {
    throw failed(extension, "onAccept", new TypeError(`It returned an invalid message: ${listed(problems)}`));
  }
  const { message, metadata } = returned as AcceptedInput;
  const copy = check(messageSchema, message, "copy");
  // Values that are not JSON must fail here, because they cannot be stored.
  const bytes = bytesOf(returned);
  if (isHarmless(extension) && bytes > maxAdded && bytes - bytesOf(before) > maxAdded) {
    throw new TypeError(`It returned ${bytes} bytes: the kind data may add ${maxAdded}`);
  }
  const after: AcceptedInput = { message: copy.ok ? copy.value : message, ...(metadata && { metadata }) };
  const changed = changedIdentity(before, after);
  if (changed === undefined) return after;
  throw failed(extension, "onAccept", new TypeError(`It changed ${changed} of the message`));
}

function bytesOf(value: unknown): number {
  return utf8Length(jsonTextOf(value));
}

export function appendedBy(
  { extension }: ExtensionReader,
  before: AppendedEvent,
  turn: Omit<AppendingTurn, "rows">,
  store: Pick<RowStore, "keep"> | undefined,
  logger: Warns,
): AppendedEvent {
  const rows = store && rowsOf(extension.uri, store, isHarmless(extension));
  try {
    const given = rows === undefined ? turn : { ...turn, rows: rows.changes };
    const event = isHarmless(extension) ? copyFor(before) : before;
    const after = eventOf(extension.onAppend?.(event, given), "kind") as AppendedEvent;
    rows?.end();
    // The agent's own content is checked when it becomes a record.
    const problems = after === before ? [] : eventProblems(after);
    if (problems.length > 0) throw new TypeError(`It returned an invalid event: ${listed(problems)}`);
    if (isHarmless(extension)) checkAddition(before, after);
    rows?.commit();
    return after;
  } catch (thrown) {
    rows?.end();
    fails(extension, "onAppend", thrown, logger);
    return before;
  }
}

/** Added data must be JSON, and the rest of the event must not change. */
function checkAddition(before: AppendedEvent, after: AppendedEvent): void {
  const changed = changedByAddition(before, after);
  if (changed !== undefined) throw new TypeError(`It changed ${changed} of the event: kind data may only add data`);
  jsonTextOf(after);
}

/**
 * Checks an extension's values in an event, which the agent or extensions have set.
 *
 * @throws A2AError `InvalidAgentResponse`, except for an extension of kind `data`.
 */
export function checkEvent(reader: ExtensionReader, event: AppendedEvent, logger: Warns): void {
  const { extension } = reader;
  if (!isWhole(event)) return;
  try {
    const problems = misfitsOfEvent(reader, event);
    if (problems.length === 0) return;
    const text = `it breaks a schema of the extension ${extension.uri}: ${listed(problems)}`;
    if (!isHarmless(extension)) throw new A2AError("InvalidAgentResponse", text);
    logger.warn("Event does not match the schema of an extension", {
      extension: extension.uri,
      problems: listed(problems),
    });
  } catch (thrown) {
    if (thrown instanceof A2AError) throw thrown;
    fails(extension, "schema", thrown, logger);
  }
}

/** Whether an event has the parts that it must have. Any other event fails later, when it becomes a record, with a better error. */
function isWhole(event: AppendedEvent): boolean {
  const { message, artifact }: Readonly<Record<string, unknown>> = { ...event };
  return [message, artifact].every((each) => {
    if (each === undefined) return true;
    return isObject(each) && Array.isArray(each["parts"]) && each["parts"].every(isObject);
  });
}

/**
 * The event that a hook returned, which must have this member. After a failure the original event is never used instead,
 * because the hook may remove secrets.
 */
export function eventOf(returned: unknown, member: string): object {
  if (isObject(returned) && (returned[member] ?? undefined) !== undefined) return returned;
  unhandled(returned);
  const what = isPromise(returned) ? "a promise" : returned === null ? "null" : typeof returned;
  throw new TypeError(`It returned ${what} in place of an event with ${member}`);
}

/** A change of a row of an extension, under the extension's URI. */
type RowChange = {
  readonly feature: string;
  /** The expected row: the change fails if the stored row differs. Absent: the stored row does not matter. */
  readonly if?: Pick<ExtensionRow, "value" | "due"> | null;
} & (
  | { readonly op: "set"; readonly key: string; readonly value: string; readonly due?: number }
  | { readonly op: "delete"; readonly key: string }
);

/** Reads and changes the rows of extensions. */
export interface RowStore {
  /** Takes a change. Throws a `TypeError` for a change that the store does not accept. */
  keep(change: RowChange): void;
  /** The rows of an extension, by its URI. */
  read(feature: string): Promise<readonly ExtensionRow[]>;
}

interface HookRows {
  readonly changes: Omit<TaskRows, "read">;
  /** Called when the hook has ended. A later change throws, because no record would store it. */
  readonly end: () => void;
  /** Applies the deferred changes. Throws as `set` does. */
  readonly commit: () => void;
}

/** `held`: changes are deferred until `commit`, so that a failed hook changes nothing. */
function rowsOf(feature: string, { keep }: Pick<RowStore, "keep">, held: boolean): HookRows {
  let over = false;
  const waiting: RowChange[] = [];
  const change = (wanted: RowChange): void => {
    if (over) throw new TypeError("The hook has returned: rows are set before that");
    if (held) waiting.push(wanted);
    else keep(wanted);
  };
  return {
    changes: {
      set: (key, value, { due } = {}) => change({ feature, op: "set", key, value, ...(due !== undefined && { due }) }),
      delete: (key) => change({ feature, op: "delete", key }),
    },
    end() {
      over = true;
    },
    commit() {
      for (const wanted of waiting) keep(wanted);
    },
  };
}
