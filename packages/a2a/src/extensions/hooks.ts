import {
  A2AError,
  check,
  invalidParams,
  messageSchema,
  type JsonObject,
  type Message,
  type NewRecord,
  type StreamResponse,
} from "../model/index.ts";
import type {
  AcceptedCall,
  AcceptedInput,
  AgentEvent,
  AnyExtension,
  AppendedEvent,
  AppendingTurn,
  ExtensionRow,
  TaskRows,
} from "../protocol/index.ts";
import { ExtensionReader } from "./reads.ts";
import { ExtensionsOfTurn } from "./turn.ts";
import { activeKeys, stableJson, stableMessage, volatileKeysOf, type VolatileKeys } from "./volatile.ts";

/** A change of a row, under the URI of the extension that wants it. */
export type RowChange = { readonly feature: string } & (
  | { readonly op: "set"; readonly key: string; readonly value: string; readonly due?: number }
  | { readonly op: "delete"; readonly key: string }
);

/** Where the rows of extensions go, and come from. */
export interface RowStore {
  /** Takes a change. Throws a `TypeError` for what the store does not accept. */
  keep(change: RowChange): void;
  /** The rows of an extension, by its URI. */
  read(feature: string): Promise<readonly ExtensionRow[]>;
}

/** Changes what goes out to the readers of one activation. */
export type Deliver = (event: StreamResponse) => StreamResponse;

/**
 * The hooks of the extensions of a server, in the order in which it lists them. Where no active extension has a hook, what comes in
 * is what goes out, and nothing is made.
 */
export class ExtensionHooks {
  /** URIs of those whose rows each new record wakes. */
  readonly wakeRows: readonly string[];
  /** The extensions. */
  readonly all: readonly AnyExtension[];
  readonly #extensions: readonly AnyExtension[];
  readonly #volatile: ReadonlyMap<string, VolatileKeys>;
  readonly #readers: ReadonlyMap<string, ExtensionReader>;

  /** @throws A2AError `InvalidParams` for an extension without a URI, and for two with the same. */
  constructor(extensions: readonly AnyExtension[] = []) {
    checkUris(extensions.map(({ uri }) => uri));
    this.all = extensions;
    this.#extensions = extensions;
    this.#volatile = volatileKeysOf(extensions);
    this.#readers = new Map(extensions.map((extension) => [extension.uri, new ExtensionReader(extension)]));
    this.wakeRows = extensions.filter(({ wakeRows }) => wakeRows === true).map(({ uri }) => uri);
  }

  /** What the extensions of a turn offer its agent. */
  turn(message: Message, metadata: JsonObject | undefined): ExtensionsOfTurn {
    return new ExtensionsOfTurn(this.#readers, message, metadata);
  }

  /** Applies `onAccept`. No promise where no hook gives one. */
  accept(
    input: AcceptedInput,
    call: Omit<AcceptedCall, "rows">,
    rows: RowStore,
  ): AcceptedInput | Promise<AcceptedInput> {
    let accepted: AcceptedInput | Promise<AcceptedInput> = input;
    for (const extension of this.#active(call.extensions)) {
      if (extension.onAccept === undefined) continue;
      accepted =
        accepted instanceof Promise
          ? accepted.then((before: AcceptedInput) => acceptedBy(extension, before, call, rows))
          : acceptedBy(extension, accepted, call, rows);
    }
    return accepted;
  }

  /** Applies `onAppend`. `rows`: absent for a direct reply. */
  append(event: AgentEvent, turn: Omit<AppendingTurn, "rows">, rows?: Pick<RowStore, "keep">): AgentEvent {
    if (event.kind === "checkpoint") return event;
    let appended: AppendedEvent = event;
    for (const { uri, onAppend } of this.#active(turn.extensions)) {
      if (onAppend === undefined) continue;
      const kept = rows && rowsOf(uri, rows);
      const given = kept === undefined ? turn : { ...turn, rows: kept.changes };
      const result = guarded(uri, "onAppend", () => onAppend(appended, given), kept?.end);
      appended = eventOf(uri, "onAppend", result, "kind");
    }
    return appended;
  }

  /** `onDeliver` of the active extensions, as one; `undefined` where none has it. */
  deliver(active: readonly string[]): Deliver | undefined {
    const hooks = this.#active(active).filter(({ onDeliver }) => onDeliver !== undefined);
    if (hooks.length === 0) return undefined;
    return (event) =>
      hooks.reduce((before, { uri, onDeliver }) => {
        const after = guarded(uri, "onDeliver", () => onDeliver?.(before));
        return eventOf(uri, "onDeliver", after, memberOf(before));
      }, event);
  }

  /** A message without the values that are of the moment: what tells it from another one with the same id. */
  contentOf(message: Message, active: readonly string[]): Message {
    return stableMessage(message, activeKeys(this.#volatile, active));
  }

  /** Makes of a record the same without them: what a resumed run repeats. `undefined` where no active extension has any. */
  repeatable(active: readonly string[]): ((record: NewRecord) => NewRecord) | undefined {
    const keys = activeKeys(this.#volatile, active);
    return keys && ((record) => ({ ...record, json: stableJson(record, keys) }));
  }

  #active(uris: readonly string[]): readonly AnyExtension[] {
    if (this.#extensions.length === 0 || uris.length === 0) return none;
    return this.#extensions.filter(({ uri }) => uris.includes(uri));
  }
}

const none: readonly AnyExtension[] = [];

function acceptedBy(
  extension: AnyExtension,
  before: AcceptedInput,
  call: Omit<AcceptedCall, "rows">,
  store: RowStore,
): AcceptedInput | Promise<AcceptedInput> {
  const { uri, onAccept } = extension;
  const { changes, end } = rowsOf(uri, store);
  const given = { ...call, rows: { ...changes, read: () => store.read(uri) } };
  const after = guarded(
    uri,
    "onAccept",
    () => onAccept?.(before, given),
    (result) => {
      if (!(result instanceof Promise)) end();
    },
  );
  if (!(after instanceof Promise)) return checked(uri, before, after);
  return after.finally(end).then(
    (input: unknown) => checked(uri, before, input),
    (thrown: unknown) => {
      throw failed(uri, "onAccept", thrown);
    },
  );
}

/** The rows of an extension, until its hook has returned: a later change would be stored with nothing. */
function rowsOf(
  feature: string,
  { keep }: Pick<RowStore, "keep">,
): { readonly changes: Omit<TaskRows, "read">; readonly end: () => void } {
  let over = false;
  const change = (wanted: RowChange): void => {
    if (over) throw new TypeError("The hook has returned: rows are set before that");
    keep(wanted);
  };
  return {
    changes: {
      set: (key, value, { due } = {}) => change({ feature, op: "set", key, value, ...(due !== undefined && { due }) }),
      delete: (key) => change({ feature, op: "delete", key }),
    },
    end() {
      over = true;
    },
  };
}

/** What is stored must be a message, and the same one. */
function checked(uri: string, { message: before }: AcceptedInput, after: unknown): AcceptedInput {
  const { message, metadata } = (after ?? {}) as Partial<AcceptedInput>;
  const result = check(messageSchema, message, "copy");
  if (!result.ok) {
    const list = result.violations.map(({ field, description }) => `${field || "message"} ${description}`).join("; ");
    throw failed(uri, "onAccept", new TypeError(`It returned what is no message: ${list}`));
  }
  for (const name of ["messageId", "role", "taskId", "contextId"] as const) {
    if (result.value[name] === before[name]) continue;
    throw failed(uri, "onAccept", new TypeError(`It changed ${name} of the message`));
  }
  return metadata === undefined ? { message: result.value } : { message: result.value, metadata };
}

/** `end` is called when the hook is over, with what it returned. */
function guarded<T>(uri: string, hook: string, run: () => T, end?: (result?: T) => void): T {
  let result: T | undefined;
  try {
    return (result = run());
  } catch (thrown) {
    throw failed(uri, hook, thrown);
  } finally {
    end?.(result);
  }
}

/** The one member of a stream response. */
function memberOf(event: StreamResponse): string {
  return Object.keys(event).find((name) => event[name as keyof StreamResponse] !== undefined) ?? "task";
}

/**
 * The event that a hook returned, which must have this member. The event before it is never used in its place: the hook may
 * take secrets out.
 */
function eventOf<T extends object>(uri: string, hook: string, returned: T | undefined, member: string): T {
  const event = returned as Readonly<Record<string, unknown>> | null | undefined;
  if (typeof event === "object" && event !== null && (event[member] ?? undefined) !== undefined) return event as T;
  // Without a handler its rejection would end the process.
  if (event instanceof Promise) event.catch(() => undefined);
  const what = event instanceof Promise ? "a promise" : event === null ? "null" : typeof event;
  throw failed(uri, hook, new TypeError(`It returned ${what} in place of an event with ${member}`));
}

/** An error of the protocol is for the caller; of anything else the operator is told whose it is. */
function failed(uri: string, hook: string, thrown: unknown): A2AError {
  if (thrown instanceof A2AError) return thrown;
  const cause = new Error(`${hook} of the extension ${uri} failed: ${String(thrown)}`, { cause: thrown });
  return new A2AError("InternalError", undefined, { cause });
}

function checkUris(uris: readonly unknown[]): void {
  const wrong = uris.find((uri, at) => typeof uri !== "string" || uri === "" || uris.indexOf(uri) !== at);
  if (wrong === undefined && !uris.includes(undefined)) return;
  const description = `must each have a URI of its own, and one has ${JSON.stringify(wrong)}`;
  throw invalidParams([{ field: "extensions", description }], `This cannot be served: extensions ${description}`);
}
