import { silentLogger, type Logger } from "../base/index.ts";
import { invalidParams, type Message, type NewRecord, type StreamResponse } from "../model/index.ts";
import type {
  AcceptedCall,
  AcceptedInput,
  AgentEvent,
  AnyExtension,
  AppendedEvent,
  AppendingTurn,
  TurnBase,
} from "../protocol/index.ts";
import { acceptedBy } from "./accept.ts";
import { appendedBy, checkEvent, eventOf } from "./append.ts";
import { checkServed } from "./definition.ts";
import { fails, isHarmless } from "./failures.ts";
import { misfitsOfInput } from "./misfits.ts";
import { ExtensionReader } from "./reads.ts";
import { deliveredProblems, listed } from "./results.ts";
import type { RowStore } from "./rows.ts";
import { ExtensionsOfTurn } from "./turn.ts";
import { activeKeys, stableJson, stableMessage, volatileKeysOf, type VolatileKeys } from "./volatile.ts";

/** Changes what goes out to the readers of one activation. */
export type Deliver = (event: StreamResponse) => StreamResponse;

/**
 * The hooks of the extensions of a server, in the order in which it lists them. Where no active extension has a hook, what comes in
 * is what goes out, and nothing is made.
 */
export class ExtensionHooks {
  /** URIs of those whose rows each new record wakes. */
  readonly wakeRows: readonly string[];
  /** All of them. */
  readonly all: readonly AnyExtension[];
  readonly #volatile: ReadonlyMap<string, VolatileKeys>;
  readonly #readers: readonly ExtensionReader[];
  readonly #logger: Logger;

  /** @throws A2AError `InvalidParams` for an extension that cannot be, and for two with one URI. */
  constructor(extensions: readonly AnyExtension[] = [], logger: Logger = silentLogger) {
    checkServed(extensions);
    this.all = extensions;
    this.#logger = logger;
    this.#volatile = volatileKeysOf(extensions);
    this.#readers = extensions.map((extension) => new ExtensionReader(extension));
    this.wakeRows = extensions.filter(({ wakeRows }) => wakeRows === true).map(({ uri }) => uri);
  }

  /** The extensions that are active in a turn. `undefined`: none. */
  turn(turn: TurnBase): ExtensionsOfTurn | undefined {
    const readers = this.#active(turn.extensions);
    return readers.length === 0 ? undefined : new ExtensionsOfTurn(readers, turn, this.#logger);
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
    for (const reader of active) this.#checkInput(reader, input);
    let accepted: AcceptedInput | Promise<AcceptedInput> = input;
    for (const { extension } of active) {
      if (extension.onAccept === undefined) continue;
      const apply = (before: AcceptedInput): AcceptedInput | Promise<AcceptedInput> =>
        acceptedBy(extension, before, call, rows, this.#logger);
      accepted = accepted instanceof Promise ? accepted.then(apply) : apply(accepted);
    }
    return accepted;
  }

  #checkInput(reader: ExtensionReader, input: AcceptedInput): void {
    const { extension } = reader;
    try {
      const problems = misfitsOfInput(reader, input);
      if (problems.length === 0) return;
      if (!isHarmless(extension)) throw invalidParams(problems);
      const fields = { extension: extension.uri, problems: listed(problems) };
      this.#logger.info("A message breaks a schema of an extension, and what does not fit is left out", fields);
    } catch (thrown) {
      fails(extension, "schema", thrown, this.#logger);
    }
  }

  /** Applies `onAppend`, and checks what comes of it. `rows`: absent for a direct reply. */
  append(
    event: AgentEvent,
    turn: Omit<AppendingTurn, "rows" | "started">,
    active: ExtensionsOfTurn | undefined,
    rows?: Pick<RowStore, "keep">,
  ): AgentEvent {
    if (event.kind === "checkpoint") return event;
    let appended: AppendedEvent = event;
    const readers = this.#active(turn.extensions).filter(({ extension }) => active?.hasLeft(extension.uri) !== true);
    for (const reader of readers) {
      const { uri, onAppend } = reader.extension;
      if (onAppend === undefined) continue;
      const started = active?.get(uri);
      appended = appendedBy(reader, appended, { ...turn, started }, rows, this.#logger);
    }
    for (const reader of readers) if (reader.hasFields) checkEvent(reader, appended, this.#logger);
    return appended;
  }

  /** `onDeliver` of the active extensions, as one; `undefined` where none has it. */
  deliver(active: readonly string[]): Deliver | undefined {
    const hooks = this.#active(active).filter(({ extension }) => extension.onDeliver !== undefined);
    if (hooks.length === 0) return undefined;
    return (event) =>
      hooks.reduce((before, { extension }) => {
        try {
          const after = eventOf(extension.onDeliver?.(before), memberOf(before)) as StreamResponse;
          const problems = deliveredProblems(after);
          if (problems.length === 0) return after;
          throw new TypeError(`It returned what cannot be: ${listed(problems)}`);
        } catch (thrown) {
          fails(extension, "onDeliver", thrown, this.#logger);
          return before;
        }
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

  #active(uris: readonly string[]): readonly ExtensionReader[] {
    if (this.#readers.length === 0 || uris.length === 0) return none;
    return this.#readers.filter(({ extension }) => uris.includes(extension.uri));
  }
}

const none: readonly ExtensionReader[] = [];

/** The one member of a stream response. */
function memberOf(event: StreamResponse): string {
  return Object.keys(event).find((name) => event[name as keyof StreamResponse] !== undefined) ?? "task";
}
