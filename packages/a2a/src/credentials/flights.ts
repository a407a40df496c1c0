import { A2AError } from "../model/index.ts";
import { aborted, follow } from "../transport/client/signals.ts";

interface Flight<T> {
  readonly result: Promise<T>;
  readonly work: AbortController;
  waiting: number;
}

/** Work that several callers wait for. It is aborted when the last of them has left. */
export class Flights<T> {
  readonly #flights = new Map<string, Flight<T>>();

  /** The work of this name that runs, else new work. */
  async join(name: string, signal: AbortSignal | undefined, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const flight = this.#flights.get(name) ?? this.#begin(name, run);
    flight.waiting += 1;
    const { own, release } = follow(signal);
    try {
      return await Promise.race([flight.result, aborted(own.signal)]);
    } finally {
      release();
      flight.waiting -= 1;
      if (flight.waiting === 0) {
        this.#end(name, flight);
        flight.work.abort(new A2AError("Aborted", "Nobody waits for the token any more"));
      }
    }
  }

  #begin(name: string, run: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const work = new AbortController();
    const result = run(work.signal);
    const flight: Flight<T> = { result, work, waiting: 0 };
    this.#flights.set(name, flight);
    result.then(
      () => this.#end(name, flight),
      () => this.#end(name, flight),
    );
    return flight;
  }

  #end(name: string, flight: Flight<T>): void {
    if (this.#flights.get(name) === flight) this.#flights.delete(name);
  }
}
