import { StatusError } from "./status-error.ts";

/** The time that a caller gives to a call (`grpc-timeout`). */
export class Deadline {
  /** What the caller is told, once the time is over. */
  error: StatusError | undefined;
  readonly passed: Promise<StatusError>;
  readonly #timer: NodeJS.Timeout;
  #controller: AbortController | undefined;

  /** `timeout` in milliseconds; `run` is called when it is over. */
  constructor(timeout: number, run: (error: StatusError) => void) {
    let resolve: (error: StatusError) => void;
    this.passed = new Promise((settle) => (resolve = settle));
    this.#timer = setTimeout(() => {
      this.error = new StatusError("DEADLINE_EXCEEDED", "The deadline has passed");
      run(this.error);
      resolve(this.error);
      this.#controller?.abort();
    }, timeout);
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.error !== undefined) this.#controller.abort();
    return this.#controller.signal;
  }

  /** The call has ended by itself. */
  clear(): void {
    clearTimeout(this.#timer);
  }
}
