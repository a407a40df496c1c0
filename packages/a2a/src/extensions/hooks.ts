import type { Logger } from "../base/index.ts";
import { jsonTextOf } from "../base/json-text.ts";
import { invalidParams, type AgentCard, type Message, type NewRecord, type StreamResponse } from "../model/index.ts";
import type {
  AcceptedCall,
  AcceptedInput,
  ActivatingCall,
  AgentEvent,
  AnyExtension,
  AppendedEvent,
  AppendingTurn,
  TurnBase,
} from "../protocol/index.ts";
import { Activation } from "./activation.ts";
import { checkOnCard, checkServed } from "./definition.ts";
import { activeKeys, stableJson, stableMessage, volatileKeysOf, type VolatileKeys } from "./fields.ts";
import { copyFor, fails, isHarmless, ToldByTask, type HookTime } from "./hook-calls.ts";
import { ExtensionReader } from "./reads.ts";
import { deliveredProblems, listed, misfitsOfInput } from "./results.ts";
import { acceptedBy, appendedBy, checkEvent, eventOf, type RowStore } from "./run-hook.ts";
import { ExtensionsOfTurn } from "./turn.ts";

/** Changes the events for readers with the same active extensions. */
export type Deliver = (event: StreamResponse) => StreamResponse;

/** The extensions of a server, and their hooks, in the order in which it lists them. */
export class ExtensionHooks {
  /** URIs of extensions whose rows become due with each new record. */
  readonly wakeRows: readonly string[];
  /** All extensions. */
  readonly all: readonly AnyExtension[];
  readonly #readers: readonly ExtensionReader[];
  readonly #volatile: ReadonlyMap<string, VolatileKeys>;
  readonly #logger: Logger;
  readonly #time: HookTime;
  readonly #told = new ToldByTask();
  readonly #activations = new Map<AgentCard, Activation>();

  /** @throws A2AError `InvalidParams` for an invalid extension, and for two extensions with the same URI. */
  constructor(extensions: readonly AnyExtension[], logger: Logger, time: HookTime) {
    checkServed(extensions);
    this.all = extensions;
    this.#readers = extensions.map((extension) => new ExtensionReader(extension));
    this.#logger = logger;
    this.#time = time;
    this.#volatile = volatileKeysOf(extensions);
    this.wakeRows = extensions.filter(({ wakeRows }) => wakeRows === true).map(({ uri }) => uri);
  }

  /**
   * Whether an extension of the agent has `requires` or `onActivate`, so that a request alone does not activate it.
   *
   * @throws A2AError `InvalidParams` if the card lacks what an extension on it requires.
   */
  selects(card: AgentCard): boolean {
    return checkOnCard(this.all, card).some(({ requires = [], onActivate }) => requires.length > 0 || onActivate);
  }

  /** The requested extensions that become active in a call. `needed`: URI of the extension whose method is called. */
  activate(asked: readonly string[], call: ActivatingCall, needed: string | undefined): readonly string[] {
    let activation = this.#activations.get(call.card);
    if (activation === undefined) {
      activation = new Activation(this.all, call.card, this.#logger);
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
   * Checks an incoming message, and applies `onAccept`. Returns a promise only if a hook does.
   *
   * @throws A2AError `InvalidParams` if a value does not fit the schema of an active extension.
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

  /** Applies `onAppend` and checks the result. `rows`: absent for a direct reply. `bare`: skips extensions of kind `data`. `logger`: adds the task to each line. */
  append(
    event: AgentEvent,
    turn: Omit<AppendingTurn, "rows" | "started">,
    active: ExtensionsOfTurn | undefined,
    rows?: Pick<RowStore, "keep">,
    bare = false,
    logger: Logger = this.#logger,
  ): AgentEvent {
    if (this.#readers.length === 0) return event;
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

  /** URIs of the active extensions of kind `data` with an `onAppend`. Events are valid without the data that these add. */
  adding(active: readonly string[]): readonly string[] {
    if (active.length === 0) return active;
    return this.all
      .filter((each) => isHarmless(each) && each.onAppend !== undefined && active.includes(each.uri))
      .map(({ uri }) => uri);
  }

  /** `onDeliver` of the active extensions, combined; `undefined` if none has it. */
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
          // Values that are not JSON must fail here, where the extension is known.
          jsonTextOf(after);
          return after;
        } catch (thrown) {
          fails(extension, "onDeliver", thrown, this.#told.of(taskOf(before), this.#logger));
          return before;
        }
      }, event);
  }

  /** A message without volatile values, to compare it with another message of the same id. */
  contentOf(message: Message, active: readonly string[]): Message {
    return stableMessage(message, activeKeys(this.#volatile, active));
  }

  /** Makes a function that removes volatile values from a record: a resumed run repeats only the rest. `undefined`: no active extension has any. */
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

function taskOf({ task, message, statusUpdate, artifactUpdate }: Partial<StreamResponse>): string | undefined {
  return task?.id ?? (statusUpdate ?? artifactUpdate ?? message)?.taskId;
}

function memberOf(event: StreamResponse): string {
  return Object.entries(event).find(([, member]) => member !== undefined)?.[0] ?? "task";
}
