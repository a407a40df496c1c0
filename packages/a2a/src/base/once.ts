/** A stream of one value. */
export async function* once<T>(value: T): AsyncGenerator<T, void, void> {
  yield value;
}
