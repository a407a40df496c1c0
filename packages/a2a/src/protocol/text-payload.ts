import { deepFreeze } from "../base/index.ts";
import { Payload } from "./payload.ts";

/**
 * A payload that is made of JSON text, such as that of a store. It has a file of its own, because clients make payloads of
 * values alone and need not load it.
 */
export class TextPayload<T> extends Payload<T> {
  readonly #text: string | readonly string[];
  /** The value, after it was first read. */
  #parsed: T | undefined;

  /** @param text - JSON of A2A 1.0: one text, or the pieces of a large one. The array of pieces is frozen. */
  constructor(text: string | readonly string[]) {
    super(undefined as T);
    this.#text = typeof text === "string" ? text : Object.freeze(text);
  }

  /** The value. It is frozen. */
  override get value(): T {
    this.#parsed ??= deepFreeze(this.#parse());
    return this.#parsed;
  }

  /** The JSON text. Pieces are joined at each read. */
  override get json(): string {
    const text = this.#text;
    return typeof text === "string" ? text : text.join("");
  }

  /** The pieces; `undefined` where the payload was made of one text. */
  override get pieces(): readonly string[] | undefined {
    return typeof this.#text === "string" ? undefined : this.#text;
  }

  /** The value, parsed anew unless it was read before. */
  override read(): T {
    return this.#parsed ?? this.#parse();
  }

  #parse(): T {
    return JSON.parse(this.json) as T;
  }
}
