import { utf8Length, type Logger } from "../base/index.ts";
import { jsonTextOf } from "../base/json-text.ts";
import { check, messageSchema } from "../model/index.ts";
import type { AcceptedCall, AcceptedInput, AnyExtension, ExtensionRow } from "../protocol/index.ts";
import { failed, fails, isHarmless, isPromise } from "./failures.ts";
import { copyFor } from "./copies.ts";
import { inTime, type HookTime } from "./hook-time.ts";
import { changedIdentity, inputProblems, listed } from "./results.ts";
import { rowsOf, type RowChange, type RowStore } from "./rows.ts";

/** Most bytes that an extension of the kind `data` may add to a message: the task must have room for it. */
const maxAdded = 1 << 20;

/** What `onAccept` of one extension makes of a message. No promise where the hook gives none. */
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
  // What a hook decides by the rows that it has read holds only as long as they are like that: another message may come first.
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

/** What is stored must be a message, and the same one. */
function checked(extension: AnyExtension, before: AcceptedInput, returned: unknown): AcceptedInput {
  const problems = inputProblems(returned);
  if (problems.length > 0) {
    throw failed(extension, "onAccept", new TypeError(`It returned what is no message: ${listed(problems)}`));
  }
  const { message, metadata } = returned as AcceptedInput;
  const copy = check(messageSchema, message, "copy");
  // What is no JSON must fail here: it cannot be stored.
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
