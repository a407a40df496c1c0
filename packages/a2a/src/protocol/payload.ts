import { deepFreeze } from "../base/index.ts";

/**
 * A response or an event, as a value and as JSON text. One form is made from the other when it is first read, so text from a
 * store is sent without being parsed. A payload that is made of a value makes its text from that value at each read. A payload
 * that is made of text (`TextPayload`) has a frozen value. To change a payload, make another one with `map`.
 *
 * @example
 * ```ts
 * const reply = await next.call(operation, request, context);
 * return { ...reply, payload: reply.payload.map((value) => redact(value)) };
 * ```
 */
export class Payload<T> {
  readonly #value: T;

  /** @param value - Any JSON value. */
  constructor(value: T) {
    this.#value = value;
  }

  /** The value. Do not change it: in a payload made of text it is frozen. */
  get value(): T {
    return this.#value;
  }

  /** The value as JSON of A2A 1.0. */
  get json(): string {
    return JSON.stringify(this.#value);
  }

  /** The JSON text in pieces, where it is large and came in pieces: a writer need not join them. */
  get pieces(): readonly string[] | undefined {
    return undefined;
  }

  /** A new payload with the value that `change` returns. */
  map<U>(change: (value: T) => U): Payload<U> {
    return new Payload(change(this.value));
  }

  /** The value, for an encoder that reads it once. A value that has to be parsed is neither frozen nor kept, which is a third faster. */
  read(): T {
    return this.#value;
  }
}

/** A payload that is made of JSON text, such as that of a store. */
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
