/** Where a result is given that somebody waits for. The first call counts. */
export interface Resolver<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

/** A promise with its `resolve` and `reject`: `Promise.withResolvers`, which Node 20 lacks. */
export interface Deferred<T> extends Resolver<T | PromiseLike<T>> {
  readonly promise: Promise<T>;
}

export function deferred<T>(): Deferred<T> {
  let resolve!: (value: T | PromiseLike<T>) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
