import { deepFreeze } from "../base/index.ts";
import { Payload } from "./payload.ts";

/**
 * A payload made of text. In a file of its own, since clients make payloads of values alone and need not carry this.
 */
export class TextPayload<T> extends Payload<T> {
  readonly #text: string | readonly string[];
  /** What the text says, once somebody asked. */
  #parsed: T | undefined;

  /** @param text - JSON of A2A 1.0: one text, or the pieces of a large one, which is frozen. */
  constructor(text: string | readonly string[]) {
    super(undefined as T);
    this.#text = typeof text === "string" ? text : Object.freeze(text);
  }

  override get value(): T {
    this.#parsed ??= deepFreeze(this.#parse());
    return this.#parsed;
  }

  override get json(): string {
    const text = this.#text;
    return typeof text === "string" ? text : text.join("");
  }

  override get pieces(): readonly string[] | undefined {
    return typeof this.#text === "string" ? undefined : this.#text;
  }

  override read(): T {
    return this.#parsed ?? this.#parse();
  }

  #parse(): T {
    return JSON.parse(this.json) as T;
  }
}
