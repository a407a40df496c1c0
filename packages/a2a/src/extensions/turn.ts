import type { Logger } from "../base/index.ts";
import { jsonTextOf } from "../base/json-text.ts";
import type { JsonObject, TaskState } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type {
  AnyExtension,
  DelegatingCall,
  DelegationWatch,
  ExtensionTurn,
  TurnBase,
  TurnEnd,
} from "../protocol/index.ts";
import { atOnce, fails, isPromise, unhandled, inTime, type HookTime } from "./hook-calls.ts";
import type { ExtensionReader } from "./reads.ts";

/** The active extensions of one turn, with the values that they pass to the agent. */
export class ExtensionsOfTurn {
  readonly #readers: readonly ExtensionReader[];
  readonly #turn: TurnBase;
  readonly #logger: Logger;
  readonly #time: HookTime;
  /** Results of `turn.ext()`, by URI. */
  readonly #offered = new Map<string, unknown>();
  /** Extensions whose `onTurnStart` ran, so `onTurnEnd` must run. */
  readonly #begun: ExtensionReader[] = [];
  /** URIs of failed extensions of kind `data`: they count as inactive for the rest of the turn. */
  readonly #left = new Set<string>();
  /** Work of extensions that must end before the agent is called. */
  readonly #waits: Wait[] = [];

  constructor(readers: readonly ExtensionReader[], turn: TurnBase, time: HookTime) {
    this.#time = time;
    this.#readers = readers;
    this.#turn = turn;
    this.#logger = turn.logger;
  }

  /**
   * The turn begins.
   *
   * @throws the error of `onTurnStart`, unless the extension is of kind `data`.
   */
  start(): void {
    for (const reader of this.#readers) {
      const { extension } = reader;
      const { onTurnStart } = extension as { onTurnStart?: (turn: ExtensionTurn, reads: unknown) => unknown };
      if (onTurnStart === undefined) {
        this.#begun.push(reader);
        continue;
      }
      const { message, metadata } = this.#turn;
      try {
        const offered = onTurnStart.call(extension, this.#view(extension.uri), reader.turn(message, metadata));
        this.#watch(extension, "onTurnStart", offered);
        this.#offered.set(extension.uri, offered);
        this.#begun.push(reader);
      } catch (thrown) {
        this.#left.add(extension.uri);
        fails(extension, "onTurnStart", thrown, this.#logger);
      }
    }
  }

  /** The result of `turn.ext()`. `undefined` if the extension is not active, or if the card declares only its URI. */
  get(uri: string): unknown {
    if (this.#left.has(uri)) return undefined;
    if (this.#offered.has(uri)) return this.#offered.get(uri);
    const reader = this.#readers.find(({ extension }) => extension.uri === uri);
    const offered = reader?.turn(this.#turn.message, this.#turn.metadata);
    if (offered !== undefined) this.#offered.set(uri, offered);
    return offered;
  }

  /** Whether the extension has failed in this turn. */
  hasLeft(uri: string): boolean {
    return this.#left.has(uri);
  }

  /** Metadata that the extensions add to a status that the server sets at the end of the turn. */
  finish(state: TaskState): JsonObject | undefined {
    let metadata: JsonObject | undefined;
    for (const { extension } of this.#begun) {
      if (extension.onFinish === undefined || this.#left.has(extension.uri)) continue;
      const added = this.#harmless(extension, "onFinish", () => {
        const given = atOnce(extension.onFinish?.({ state }, this.#view(extension.uri)), "metadata");
        if (given === undefined) return undefined;
        // A copy, because values that are not JSON must fail here, where the failure is only logged.
        const copy: unknown = isObject(given) ? JSON.parse(jsonTextOf(given)) : undefined;
        if (!isObject(copy)) throw new TypeError("It returned invalid metadata");
        return copy as JsonObject;
      });
      if (added !== undefined) metadata = { ...metadata, ...added };
    }
    return metadata;
  }

  /** Notifies the extensions of a delegation. `undefined` if no extension has `onDelegate`. */
  delegating(call: DelegatingCall): DelegationWatch | undefined {
    const watches = this.#begun.flatMap(({ extension }) => {
      if (this.#left.has(extension.uri)) return [];
      const given = this.#harmless(extension, "onDelegate", () =>
        atOnce(extension.onDelegate?.(call, this.#view(extension.uri)), "the watcher of the delegation"),
      );
      return given === undefined ? [] : [{ extension, watch: given }];
    });
    if (watches.length === 0) return undefined;
    return {
      extensions: watches.flatMap(({ watch }) => watch.extensions ?? []),
      onEvent: (event) => {
        const heard = watches.flatMap(
          ({ extension, watch }) => this.#harmless(extension, "onDelegate", () => watch.onEvent?.(event)) ?? [],
        );
        return heard.length === 0 ? undefined : Promise.allSettled(heard).then(() => undefined);
      },
      onEnd: (end) => {
        for (const { extension, watch } of watches) this.#harmless(extension, "onDelegate", () => watch.onEnd?.(end));
      },
    };
  }

  /** Runs a hook whose failure is only logged. */
  #harmless<T>(extension: AnyExtension, hook: string, run: () => T): T | undefined {
    try {
      const returned = run();
      this.#watch(extension, hook, returned);
      return returned;
    } catch (thrown) {
      this.#warn(extension, hook, thrown);
      return undefined;
    }
  }

  /** Logs the rejection of a promise that a hook returned and no code awaits. Without a handler, the rejection would end the process. */
  #watch(extension: AnyExtension, hook: string, returned: unknown): void {
    if (isPromise(returned)) returned.then(undefined, (thrown: unknown) => this.#warn(extension, hook, thrown));
  }

  #warn({ uri }: AnyExtension, hook: string, cause: unknown): void {
    this.#logger.warn("Extension hook failed; continuing without it", {
      extension: uri,
      hook,
      cause,
    });
  }

  /** The turn is over. Errors are only logged here, because everything of the turn is already stored or lost. */
  end(end: TurnEnd): void {
    for (const { extension } of this.#begun) if (extension.onTurnEnd !== undefined) void this.#end(extension, end);
  }

  async #end(extension: ExtensionReader["extension"], end: TurnEnd): Promise<void> {
    try {
      const ending = extension.onTurnEnd?.(this.#view(extension.uri), end);
      if (isPromise(ending)) await inTime(ending, this.#time);
    } catch (thrown) {
      this.#logger.error("Extension hook failed", {
        extension: extension.uri,
        hook: "onTurnEnd",
        cause: thrown,
      });
    }
  }

  /**
   * Resolves when the agent may be called. Rejects if an extension's work takes too long, unless it is of kind `data`.
   * `undefined`: the agent may be called immediately.
   */
  get ready(): Promise<unknown> | undefined {
    return this.#waits.length === 0 ? undefined : Promise.all(this.#waits.map((wait) => this.#settled(wait)));
  }

  async #settled({ uri, work }: Wait): Promise<void> {
    try {
      await inTime(Promise.allSettled([work]), this.#time);
    } catch (late) {
      this.#left.add(uri);
      const reader = this.#readers.find(({ extension }) => extension.uri === uri);
      if (reader !== undefined) fails(reader.extension, "onTurnStart", late, this.#logger);
    }
  }

  /** A turn without the members that only the agent may use. */
  #view(uri: string): ExtensionTurn {
    const turn = this.#turn;
    const { message, metadata, taskId, contextId, number, attempt, principal, extensions, clock, logger, resumable } =
      turn;
    const facts = {
      message,
      metadata,
      taskId,
      contextId,
      number,
      attempt,
      principal,
      extensions,
      clock,
      logger,
      resumable,
    };
    return {
      ...facts,
      started: this.#offered.get(uri),
      // A getter, because the signal is created on first access.
      get signal() {
        return turn.signal;
      },
      get rows() {
        return turn.extensionRows(uri);
      },
      requestAuthorization: (init) => turn.requestAuthorization(init),
      waitFor: (work) => {
        // The work may reject unobserved, if another extension fails the turn, or the turn began long ago.
        unhandled(work);
        this.#waits.push({ uri, work });
      },
    };
  }
}

interface Wait {
  readonly uri: string;
  readonly work: Promise<unknown>;
}
