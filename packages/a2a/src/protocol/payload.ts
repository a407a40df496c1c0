/**
 * A result or an event on its way: made of a value, of its JSON text, or of that text in pieces. It gives each form, made
 * when somebody asks for it, so a stored text goes out without being parsed.
 *
 * It holds one truth. Made of a value, its text is made from that value each time. Made of text
 * (`TextPayload`), its value is frozen: changing it throws a `TypeError`. To say something else make another payload.
 *
 * @example
 * ```ts
 * const reply = await next.call(operation, request, context);
 * return { ...reply, payload: reply.payload.map((value) => redact(value)) };
 * ```
 */
export class Payload<T> {
  readonly #value: T;

  /** @param value - What JSON can hold. Its text is made from it as it is then. */
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

  /** The same text in pieces, where it came in pieces: it is large, and a writer need not join it. */
  get pieces(): readonly string[] | undefined {
    return undefined;
  }

  /** Another payload, of what `change` makes of the value. */
  map<U>(change: (value: T) => U): Payload<U> {
    return new Payload(change(this.value));
  }

  /**
   * The value for an encoder that reads it once. Where it has to be parsed it is neither frozen nor kept, which takes a
   * third less time.
   */
  read(): T {
    return this.#value;
  }
}
