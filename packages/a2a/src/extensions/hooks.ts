import type { Logger } from "../base/index.ts";
import type { AgentCard, Message, NewRecord, StreamResponse } from "../model/index.ts";
import type {
  AcceptedCall,
  AcceptedInput,
  ActivatingCall,
  AgentEvent,
  AnyExtension,
  AppendingTurn,
  TurnBase,
  ExtensionRow,
  TaskRows,
} from "../protocol/index.ts";
import { checkOnCard, checkServed } from "./definition.ts";
import { isHarmless, type HookTime } from "./hook-calls.ts";
import type { RunningHooks } from "./running.ts";
import type { ExtensionsOfTurn } from "./turn.ts";
import { activeKeys, stableJson, stableMessage, volatileKeysOf, type VolatileKeys } from "./fields.ts";

/** Changes what goes out to the readers of one activation. */
export type Deliver = (event: StreamResponse) => StreamResponse;

/**
 * The extensions of a server, and their hooks. What runs the hooks is loaded with the first call that has activated an extension: whoever
 * has one waits for `ready()` first. Where no active extension has a hook, what comes in is what goes out, and nothing is made.
 */
export class ExtensionHooks {
  /** URIs of those whose rows each new record wakes. */
  readonly wakeRows: readonly string[];
  /** All of them. */
  readonly all: readonly AnyExtension[];
  readonly #volatile: ReadonlyMap<string, VolatileKeys>;
  readonly #logger: Logger;
  readonly #time: HookTime;
  #running: RunningHooks | undefined;
  #loading: Promise<void> | undefined;

  /** @throws A2AError `InvalidParams` for an extension that cannot be, and for two with one URI. */
  constructor(extensions: readonly AnyExtension[], logger: Logger, time: HookTime) {
    checkServed(extensions);
    this.all = extensions;
    this.#logger = logger;
    this.#time = time;
    this.#volatile = volatileKeysOf(extensions);
    this.wakeRows = extensions.filter(({ wakeRows }) => wakeRows === true).map(({ uri }) => uri);
  }

  /** Loads what runs hooks. `undefined`: it is there, or not needed. */
  ready(): Promise<void> | undefined {
    if (this.#running !== undefined || this.all.length === 0) return undefined;
    return (this.#loading ??= this.#load());
  }

  async #load(): Promise<void> {
    const { RunningHooks: Running } = await import("./running.ts");
    this.#running = new Running(this.all, this.#logger, this.#time);
  }

  /**
   * Whether calls of an agent activate its extensions by more than asking for them.
   *
   * @throws A2AError `InvalidParams` where the card lacks what an extension on it requires.
   */
  selects(card: AgentCard): boolean {
    return checkOnCard(this.all, card).some(({ requires = [], onActivate }) => requires.length > 0 || onActivate);
  }

  /** Those of the extensions asked for that become active in a call. `needed`: URI of the one whose method is called. */
  activate(asked: readonly string[], call: ActivatingCall, needed: string | undefined): readonly string[] {
    return this.#there().activate(asked, call, needed);
  }

  /** The extensions that are active in a turn. `undefined`: none. */
  turn(turn: TurnBase): ExtensionsOfTurn | undefined {
    return turn.extensions.length === 0 || this.all.length === 0 ? undefined : this.#there().turn(turn);
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
    return this.all.length === 0 ? input : this.#there().accept(input, call, rows);
  }

  /** Applies `onAppend`, and checks what comes of it. `rows`: absent for a direct reply. `bare`: without those of the kind `data`. `logger`: adds the task to each line. */
  append(
    event: AgentEvent,
    turn: Omit<AppendingTurn, "rows" | "started">,
    active: ExtensionsOfTurn | undefined,
    rows?: Pick<RowStore, "keep">,
    bare = false,
    logger: Logger = this.#logger,
  ): AgentEvent {
    return this.all.length === 0 ? event : this.#there().append(event, turn, active, rows, bare, logger);
  }

  /** URIs of the active extensions that add data to events, and that events can do without. */
  adding(active: readonly string[]): readonly string[] {
    if (active.length === 0) return active;
    return this.all
      .filter((each) => isHarmless(each) && each.onAppend !== undefined && active.includes(each.uri))
      .map(({ uri }) => uri);
  }

  /** `onDeliver` of the active extensions, as one; `undefined` where none has it. */
  deliver(active: readonly string[]): Deliver | undefined {
    return active.length === 0 || this.all.length === 0 ? undefined : this.#there().deliver(active);
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

  #there(): RunningHooks {
    if (this.#running === undefined) throw new Error("The hooks of extensions are not loaded: wait for ready()");
    return this.#running;
  }
}

/** A change of a row, under the URI of the extension that wants it. */
export type RowChange = {
  readonly feature: string;
  /** The row as it must be when the change is stored. Absent: however it is. */
  readonly if?: Pick<ExtensionRow, "value" | "due"> | null;
} & (
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

interface HookRows {
  readonly changes: Omit<TaskRows, "read">;
  /** The hook is over: a later change would be stored with nothing. */
  readonly end: () => void;
  /** Keeps the changes that were held back. Throws as `set` does. */
  readonly commit: () => void;
}

/** `held`: the changes are kept only by `commit`, so that a hook that fails and is left out leaves none. */
export function rowsOf(feature: string, { keep }: Pick<RowStore, "keep">, held: boolean): HookRows {
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
