import { jsonTextOf } from "../base/json-text.ts";
import { A2AError } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { AppendedEvent, AppendingTurn } from "../protocol/index.ts";
import { copyFor } from "./copies.ts";
import { fails, isHarmless, isPromise, unhandled, type Warns } from "./failures.ts";
import { misfitsOfEvent } from "./misfits.ts";
import type { ExtensionReader } from "./reads.ts";
import { changedByAddition, eventProblems, listed } from "./results.ts";
import { rowsOf, type RowStore } from "./rows.ts";

/** What `onAppend` of one extension makes of an event. */
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
    // What the agent has said is checked when it becomes a record.
    const problems = after === before ? [] : eventProblems(after);
    if (problems.length > 0) throw new TypeError(`It returned an event that cannot be: ${listed(problems)}`);
    if (isHarmless(extension)) checkAddition(before, after);
    rows?.commit();
    return after;
  } catch (thrown) {
    rows?.end();
    fails(extension, "onAppend", thrown, logger);
    return before;
  }
}

/** Data that is added must be JSON, and leaves the rest of the event as it is. */
function checkAddition(before: AppendedEvent, after: AppendedEvent): void {
  const changed = changedByAddition(before, after);
  if (changed !== undefined) throw new TypeError(`It changed ${changed} of the event: the kind data adds data alone`);
  jsonTextOf(after);
}

/**
 * Checks what the agent, and extensions, have put into an event for an extension.
 *
 * @throws A2AError `InvalidAgentResponse`, except for an extension that may fail nothing.
 */
export function checkEvent(reader: ExtensionReader, event: AppendedEvent, logger: Warns): void {
  const { extension } = reader;
  if (!isWhole(event)) return;
  try {
    const problems = misfitsOfEvent(reader, event);
    if (problems.length === 0) return;
    const text = `it breaks a schema of the extension ${extension.uri}: ${listed(problems)}`;
    if (!isHarmless(extension)) throw new A2AError("InvalidAgentResponse", text);
    logger.warn("An event breaks a schema of an extension", { extension: extension.uri, problems: listed(problems) });
  } catch (thrown) {
    if (thrown instanceof A2AError) throw thrown;
    fails(extension, "schema", thrown, logger);
  }
}

/** Whether an event has the parts that it must have. Another one fails when it becomes a record, with a better error. */
function isWhole(event: AppendedEvent): boolean {
  const { message, artifact } = event as { readonly message?: unknown; readonly artifact?: unknown };
  return [message, artifact].every((each) => {
    if (each === undefined) return true;
    return isObject(each) && Array.isArray(each["parts"]) && each["parts"].every(isObject);
  });
}

/**
 * The event that a hook returned, which must have this member. The event before it is never used in its place where the extension may
 * fail: the hook may take secrets out.
 */
export function eventOf(returned: unknown, member: string): object {
  if (isObject(returned) && (returned[member] ?? undefined) !== undefined) return returned;
  unhandled(returned);
  const what = isPromise(returned) ? "a promise" : returned === null ? "null" : typeof returned;
  throw new TypeError(`It returned ${what} in place of an event with ${member}`);
}
