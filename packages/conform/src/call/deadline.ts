/** The time limit of one request. Ends the request when the time is up, and with the run. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #run: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  readonly #stop = (): void => this.#controller.abort(this.#run.reason);

  /**
   * @param timeout - In milliseconds.
   * @param run - The signal of the run. Throws its reason where it is aborted already.
   */
  constructor(timeout: number, run: AbortSignal) {
    run.throwIfAborted();
    this.#run = run;
    this.#timer = setTimeout(() => this.#controller.abort(new Error(`no answer within ${timeout} ms`)), timeout);
    run.addEventListener("abort", this.#stop, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The head of a stream has arrived: from here the stream has all the time that its reader gives it. */
  stopClock(): void {
    clearTimeout(this.#timer);
  }

  /** The request is over. Closes its connection if that is still open. */
  close(): void {
    clearTimeout(this.#timer);
    this.#run.removeEventListener("abort", this.#stop);
    this.#controller.abort();
  }
}
