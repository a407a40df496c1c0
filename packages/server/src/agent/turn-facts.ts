import type { Clock, Logger } from "@parley/a2a/internal/base/index";
import type { JsonLike, JsonObject, JsonValue, Message, Task } from "@parley/a2a/internal/model/index";
import type { AnyExtension, Turn, TurnBase, TurnContext } from "@parley/a2a/internal/protocol/index";

/**
 * What is known about a message, from the turn that the engine passes. It is a class because one is created for each
 * message: a class costs one allocation, and an object literal would copy twenty members.
 */
export class FactsOfTurn {
  protected readonly base: TurnBase;

  constructor(base: TurnBase) {
    this.base = base;
  }

  get message(): Message {
    return this.base.message;
  }

  get text(): string {
    return this.base.text;
  }

  get taskId(): string {
    return this.base.taskId;
  }

  get contextId(): string {
    return this.base.contextId;
  }

  get task(): Task | undefined {
    return this.base.task;
  }

  get number(): number {
    return this.base.number;
  }

  get attempt(): number {
    return this.base.attempt;
  }

  get checkpoint(): JsonValue | undefined {
    return this.base.checkpoint;
  }

  get principal(): Turn["principal"] {
    return this.base.principal;
  }

  get call(): Turn["call"] {
    return this.base.call;
  }

  get headers(): Turn["headers"] {
    return this.base.headers;
  }

  get metadata(): JsonObject | undefined {
    return this.base.metadata;
  }

  get acceptedOutputModes(): readonly string[] {
    return this.base.acceptedOutputModes;
  }

  ext(extension: AnyExtension): undefined {
    return this.base.extension(extension.uri) as undefined;
  }

  get extensions(): readonly string[] {
    return this.base.extensions;
  }

  get signal(): Turn["signal"] {
    return this.base.signal;
  }

  get context(): TurnContext {
    return this.base.context;
  }

  get logger(): Logger {
    return this.base.logger;
  }

  get clock(): Clock {
    return this.base.clock;
  }

  allows(skillId: string): boolean {
    return this.base.allows(skillId);
  }

  state(): JsonValue | undefined {
    return this.base.state();
  }

  setState<Value extends JsonLike<Value>>(value: Value | undefined): void {
    this.base.setState(value);
  }

  makeId(): string {
    return this.base.makeId();
  }

  flush(): Promise<void> {
    return this.base.flush();
  }
}

/**
 * Tells the waits of a turn apart, in the same way in each attempt. One after the other, they are known by their order. The generators of
 * `turn.all()` race: steps that are remembered change who comes first. There a wait is known by what it waits for.
 */
export class WaitPlaces {
  readonly #base: Pick<TurnBase, "count">;
  /** How many `turn.all()` are under way, one within the other. */
  #depth = 0;

  constructor(base: Pick<TurnBase, "count">) {
    this.#base = base;
  }

  /** A `turn.all()` begins. The result is called when it is over. */
  race(): () => void {
    this.#depth += 1;
    return () => {
      this.#depth -= 1;
      if (this.#depth === 0) this.#base.count(races, 1);
    };
  }

  /**
   * What a wait is known by. It is numbered when that is asked for, which is when its function begins to wait: a checkpoint that is saved
   * before does not count it.
   *
   * @param ordered - What it is, where the order tells the rest.
   * @param raced - What it is, in `turn.all()`.
   * @param key - Of the agent.
   */
  place(ordered: string, raced: string, key: string | undefined): () => string {
    if (key !== undefined) return () => `=${key}`;
    const base = this.#base;
    // Each `turn.all()` has numbers of its own: how far another one came is not the same in each attempt.
    const of = this.#depth === 0 ? ordered : `a${base.count(races, 0) + 1}.${raced}`;
    return () => `${of}#${base.count(of, 1)}`;
  }
}

/** Counts the `turn.all()` that are over. */
const races = "a";
