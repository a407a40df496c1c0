import { utf8Length, type Logger } from "../base/index.ts";
import { jsonTextOf } from "../base/json-text.ts";
import { invalidParams, check, messageSchema, A2AError, type AgentCard, type StreamResponse } from "../model/index.ts";
import type {
  AcceptedCall,
  AcceptedInput,
  ActivatingCall,
  AgentEvent,
  AnyExtension,
  AppendedEvent,
  AppendingTurn,
  TurnBase,
  ExtensionRow,
} from "../protocol/index.ts";
import { Activation } from "./activation.ts";
import {
  copyFor,
  fails,
  isHarmless,
  ToldByTask,
  failed,
  isPromise,
  inTime,
  unhandled,
  type HookTime,
  type Warns,
} from "./hook-calls.ts";
import {
  misfitsOfInput,
  deliveredProblems,
  listed,
  changedIdentity,
  inputProblems,
  misfitsOfEvent,
  changedByAddition,
  eventProblems,
} from "./results.ts";
import { ExtensionReader } from "./reads.ts";
import { rowsOf, type Deliver, type RowStore, type RowChange } from "./hooks.ts";
import { ExtensionsOfTurn } from "./turn.ts";
import { isObject } from "../model/schema.ts";

/** What runs the hooks of the extensions of a server, in the order in which it lists them. It is loaded with the first call that has any. */
export class RunningHooks {
  readonly #all: readonly AnyExtension[];
  readonly #readers: readonly ExtensionReader[];
  readonly #logger: Logger;
  readonly #time: HookTime;
  readonly #told: ToldByTask;
  readonly #activations = new Map<AgentCard, Activation>();

  constructor(extensions: readonly AnyExtension[], logger: Logger, time: HookTime) {
    this.#time = time;
    this.#told = new ToldByTask();
    this.#all = extensions;
    this.#logger = logger;
    this.#readers = extensions.map((extension) => new ExtensionReader(extension));
  }

  /** Those of the extensions asked for that become active in a call. `needed`: URI of the one whose method is called. */
  activate(asked: readonly string[], call: ActivatingCall, needed: string | undefined): readonly string[] {
    let activation = this.#activations.get(call.card);
    if (activation === undefined) {
      activation = new Activation(this.#all, call.card, this.#logger);
      this.#activations.set(call.card, activation);
    }
    return activation.of(asked, call, needed);
  }

  /** The extensions that are active in a turn. `undefined`: none. */
  turn(turn: TurnBase): ExtensionsOfTurn | undefined {
    const readers = this.#active(turn.extensions);
    return readers.length === 0 ? undefined : new ExtensionsOfTurn(readers, turn, this.#time);
  }

  /**
   * Checks a message that comes in, and applies `onAccept`. No promise where no hook gives one.
   *
   * @throws A2AError `InvalidParams` where a value does not fit the schema of an active extension.
   */
  accept(
    input: AcceptedInput,
    call: Omit<AcceptedCall, "rows">,
    rows: RowStore,
  ): AcceptedInput | Promise<AcceptedInput> {
    const active = this.#active(call.extensions);
    for (const reader of active) this.#checkInput(reader, input, call.logger);
    let accepted: AcceptedInput | Promise<AcceptedInput> = input;
    for (const { extension } of active) {
      if (extension.onAccept === undefined) continue;
      const apply = (before: AcceptedInput): AcceptedInput | Promise<AcceptedInput> =>
        acceptedBy(extension, before, call, rows, call.logger, this.#time);
      accepted = accepted instanceof Promise ? accepted.then(apply) : apply(accepted);
    }
    return accepted;
  }

  #checkInput(reader: ExtensionReader, input: AcceptedInput, logger: Logger): void {
    const { extension } = reader;
    try {
      const problems = misfitsOfInput(reader, input);
      if (problems.length === 0) return;
      if (!isHarmless(extension)) throw invalidParams(problems);
      const fields = { extension: extension.uri, problems: listed(problems) };
      logger.info("Ignored extension data of a message that does not match its schema", fields);
    } catch (thrown) {
      fails(extension, "schema", thrown, logger);
    }
  }

  /** Applies `onAppend`, and checks what comes of it. `rows`: absent for a direct reply. `bare`: without those of the kind `data`. `logger`: adds the task to each line. */
  append(
    event: AgentEvent,
    turn: Omit<AppendingTurn, "rows" | "started">,
    active: ExtensionsOfTurn | undefined,
    rows: Pick<RowStore, "keep"> | undefined,
    bare: boolean,
    logger: Logger,
  ): AgentEvent {
    if (event.kind === "checkpoint" || event.kind === "wait") return event;
    let appended: AppendedEvent = event;
    const log = this.#told.of(turn.taskId, logger);
    const readers = this.#active(turn.extensions).filter(({ extension }) => active?.hasLeft(extension.uri) !== true);
    for (const reader of readers) {
      const { uri, onAppend } = reader.extension;
      if (onAppend === undefined || (bare && isHarmless(reader.extension))) continue;
      const started = active?.get(uri);
      appended = appendedBy(reader, appended, { ...turn, started }, rows, log);
    }
    for (const reader of readers) if (reader.hasFields) checkEvent(reader, appended, log);
    return appended;
  }

  /** `onDeliver` of the active extensions, as one; `undefined` where none has it. */
  deliver(active: readonly string[]): Deliver | undefined {
    const hooks = this.#active(active).filter(({ extension }) => extension.onDeliver !== undefined);
    if (hooks.length === 0) return undefined;
    return (event) =>
      hooks.reduce((before, { extension }) => {
        try {
          // A copy: other readers may get the same event.
          const given = isHarmless(extension) ? copyFor(before) : before;
          const after = eventOf(extension.onDeliver?.(given), memberOf(before)) as StreamResponse;
          const problems = deliveredProblems(after);
          if (problems.length > 0) throw new TypeError(`It returned an invalid event: ${listed(problems)}`);
          // What is no JSON must fail here, where the extension is known.
          jsonTextOf(after);
          return after;
        } catch (thrown) {
          fails(extension, "onDeliver", thrown, this.#told.of(taskOf(before), this.#logger));
          return before;
        }
      }, event);
  }

  #active(uris: readonly string[]): readonly ExtensionReader[] {
    if (this.#readers.length === 0 || uris.length === 0) return none;
    return this.#readers.filter(({ extension }) => uris.includes(extension.uri));
  }
}

const none: readonly ExtensionReader[] = [];

function taskOf({ task, message, statusUpdate, artifactUpdate }: Partial<StreamResponse>): string | undefined {
  return task?.id ?? (statusUpdate ?? artifactUpdate ?? message)?.taskId;
}

function memberOf(event: StreamResponse): string {
  return Object.keys(event).find((name) => event[name as keyof StreamResponse] !== undefined) ?? "task";
}

/** Maximum bytes that an extension of kind `data` may add to a message: the task must have room for it. */
const maxAdded = 1 << 20;

/** What `onAccept` of one extension makes of a message. No promise where the hook gives none. */
function acceptedBy(
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
    throw failed(extension, "onAccept", new TypeError(`It returned an invalid message: ${listed(problems)}`));
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

function appendedBy(
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
function checkEvent(reader: ExtensionReader, event: AppendedEvent, logger: Warns): void {
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
function eventOf(returned: unknown, member: string): object {
  if (isObject(returned) && (returned[member] ?? undefined) !== undefined) return returned;
  unhandled(returned);
  const what = isPromise(returned) ? "a promise" : returned === null ? "null" : typeof returned;
  throw new TypeError(`It returned ${what} in place of an event with ${member}`);
}
