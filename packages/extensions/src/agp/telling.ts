/** Most capabilities that peers are told at a time where others have announced them. */
const maxAtOnce = 256;

/** A capability that peers are told now. */
interface Running {
  /** Set where it has changed since. */
  again: readonly string[] | undefined;
  done: Promise<void>;
}

/**
 * Tells peers what changes. Changes of a capability that come while peers are told of it are told together, and there is a bound for all: a
 * caller who announces all the time must not make this gateway call others all the time.
 */
export class Telling {
  readonly #tellNow: (capability: string, via: readonly string[]) => Promise<void>;
  readonly #running = new Map<string, Running>();

  constructor(tellNow: (capability: string, via: readonly string[]) => Promise<void>) {
    this.#tellNow = tellNow;
  }

  /**
   * Tells the peers what is the best route to a capability now.
   *
   * @param via - The gateways that the change came through.
   * @param isBounded - Whether it is left to the next round where peers are told much already.
   */
  tell(capability: string, via: readonly string[], isBounded: boolean): Promise<void> {
    const running = this.#running.get(capability);
    if (running !== undefined) {
      running.again = via;
      return running.done;
    }
    if (isBounded && this.#running.size >= maxAtOnce) return Promise.resolve();
    const telling: Running = { again: via, done: Promise.resolve() };
    this.#running.set(capability, telling);
    telling.done = this.#run(capability, telling);
    return telling.done;
  }

  async #run(capability: string, telling: Running): Promise<void> {
    try {
      for (let next = telling.again; next !== undefined; next = telling.again) {
        telling.again = undefined;
        await this.#tellNow(capability, next);
      }
    } finally {
      this.#running.delete(capability);
    }
  }
}
