import type { Logger } from "../base/index.ts";
import { jsonTextOf } from "../base/json-text.ts";
import { invalidParams, type AgentCard, type StreamResponse } from "../model/index.ts";
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
import { acceptedBy } from "./accept.ts";
import { Activation } from "./activation.ts";
import { copyFor } from "./copies.ts";
import { appendedBy, checkEvent, eventOf } from "./append.ts";
import { fails, isHarmless } from "./failures.ts";
import { misfitsOfInput } from "./misfits.ts";
import { ExtensionReader } from "./reads.ts";
import { deliveredProblems, listed } from "./results.ts";
import type { Deliver } from "./hooks.ts";
import type { HookTime } from "./hook-time.ts";
import type { RowStore } from "./rows.ts";
import { ToldByTask } from "./told.ts";
import { ExtensionsOfTurn } from "./turn.ts";

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
      logger.info("A message breaks a schema of an extension, and what does not fit is left out", fields);
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
          if (problems.length > 0) throw new TypeError(`It returned what cannot be: ${listed(problems)}`);
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

/** The task that an event is of. */
function taskOf({ task, message, statusUpdate, artifactUpdate }: Partial<StreamResponse>): string | undefined {
  return task?.id ?? (statusUpdate ?? artifactUpdate ?? message)?.taskId;
}

/** The one member of a stream response. */
function memberOf(event: StreamResponse): string {
  return Object.keys(event).find((name) => event[name as keyof StreamResponse] !== undefined) ?? "task";
}
