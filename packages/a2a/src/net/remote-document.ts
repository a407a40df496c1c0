import type { Clock } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import type { GuardedFetch } from "./port.ts";

interface RemoteDocumentOptions<T> {
  readonly url: string;
  readonly clock: Clock;
  readonly load: () => Promise<T>;
  /** A description for errors: `The key set of the sender`. */
  readonly name: string;
  /** Minimum time between two requests, in milliseconds, so that anonymous callers cannot trigger floods. Default 30 s. */
  readonly cooldown?: number;
}

/** Age at which the document is read again, in milliseconds, so that removed content is not trusted for long. */
const freshFor = 10 * 60_000;
/** How long the last content is used while it cannot be read again, in milliseconds. */
const usableFor = 24 * 60 * 60_000;
/** How long a caller waits for a new read while the last one is usable, in milliseconds. Webhook senders wait ten seconds. */
const longestWait = 3_000;

/**
 * A document of another server, such as its keys or its metadata. Reads it on first use, and caches it for a while. Concurrent callers
 * share one request.
 */
export class RemoteDocument<T> {
  readonly #options: RemoteDocumentOptions<T>;
  readonly #cooldown: number;
  #known: { readonly value: T; readonly at: number } | undefined;
  #reading: Promise<T> | undefined;
  #asked = -Infinity;

  constructor(options: RemoteDocumentOptions<T>) {
    this.#options = options;
    this.#cooldown = options.cooldown ?? 30_000;
  }

  /** The last content while it is fresh. */
  get fresh(): T | undefined {
    const known = this.#known;
    return known !== undefined && this.#since(known.at) <= freshFor ? known.value : undefined;
  }

  /** Milliseconds until the document may be read again. */
  get wait(): number {
    return Math.max(0, this.#cooldown - this.#since(this.#asked));
  }

  /**
   * The current document. If the document cannot be read now, returns the cached content, unless it is too old.
   *
   * @throws A2AError `Unavailable` if neither is usable.
   */
  async current(): Promise<T> {
    const fresh = this.fresh;
    if (fresh !== undefined) return fresh;
    const known = this.#known;
    const usable = known !== undefined && this.#since(known.at) < usableFor ? known : undefined;
    if (this.#reading === undefined && this.wait > 0) {
      if (usable !== undefined) return usable.value;
      throw this.#unreadable(undefined, this.wait);
    }
    const reading = this.#read();
    return usable === undefined ? reading : this.#orAfterAWhile(reading, usable.value);
  }

  /**
   * Reads the document again, because the cached content lacks something. `undefined`: the last request was too recent.
   *
   * @throws A2AError `Unavailable` if it cannot be read.
   */
  again(): Promise<T> | undefined {
    return this.#reading ?? (this.wait > 0 ? undefined : this.#read());
  }

  #since(time: number): number {
    return this.#options.clock.elapsed() - time;
  }

  /** The result of a new read, or the cached content if the read takes too long. */
  #orAfterAWhile(reading: Promise<T>, last: T): Promise<T> {
    return new Promise((resolve) => {
      const stop = this.#options.clock.after(longestWait, () => resolve(last));
      void reading
        .catch(() => last)
        .then(resolve)
        .finally(stop);
    });
  }

  #read(): Promise<T> {
    if (this.#reading !== undefined) return this.#reading;
    this.#asked = this.#options.clock.elapsed();
    return (this.#reading = this.#options
      .load()
      .then((value) => {
        this.#known = { value, at: this.#options.clock.elapsed() };
        return value;
      })
      .catch((cause: unknown) => {
        // The error of a failed connection does not contain the URL, which the log needs.
        throw this.#unreadable(new Error(`${this.#options.url} cannot be read`, { cause }), this.#cooldown);
      })
      .finally(() => (this.#reading = undefined)));
  }

  #unreadable(cause: unknown, wait: number): A2AError {
    return new A2AError("Unavailable", `${this.#options.name} cannot be read`, { cause, retryAfter: wait / 1000 });
  }
}

/** The JSON at an address. Throws if the answer is not 200. */
export async function readJson(fetch: GuardedFetch, url: string): Promise<unknown> {
  const response = await fetch(url, { headers: { accept: "application/json" } });
  if (response.status === 200) return response.json();
  await response.body?.cancel();
  throw new Error(`${url} answered with HTTP ${response.status}`);
}
