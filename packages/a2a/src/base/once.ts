/** One value, as a stream gives it. */
export async function* once<T>(value: T): AsyncGenerator<T, void, void> {
  yield value;
}
