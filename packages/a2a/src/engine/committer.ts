import { defer } from "../base/index.ts";
import type { AppendItem, AppendOutcome, Store } from "../store/index.ts";

/**
 * Someone with something to append. `take` is called when the transaction begins, so that whatever gathered until then
 * goes down as one item. `settle` and `fail` are called in the order of the items, and must not throw.
 */
export interface Submission {
  take(): AppendItem;
  settle(outcome: AppendOutcome): void;
  fail(error: unknown): void;
}

/**
 * Group commit (D3): what comes in one turn of the event loop, or while the store is busy, goes down in one transaction.
 * Under load a thousand tasks share a commit; a lone event waits for the end of the turn, and no longer.
 */
export class Committer {
  readonly #store: Store;
  #queue: Submission[] = [];
  #busy = false;

  constructor(store: Store) {
    this.#store = store;
  }

  submit(submission: Submission): void {
    this.#queue.push(submission);
    if (this.#busy) return;
    this.#busy = true;
    defer(() => void this.#drain());
  }

  /** `onOutcome` runs in the order of the items, before anyone who waits for the promise. */
  append(item: AppendItem, onOutcome: (outcome: AppendOutcome) => void = () => {}): Promise<AppendOutcome> {
    return new Promise((resolve, reject) => {
      const settle = (outcome: AppendOutcome): void => {
        onOutcome(outcome);
        resolve(outcome);
      };
      this.submit({ take: () => item, settle, fail: reject });
    });
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue;
      this.#queue = [];
      try {
        const outcomes = await this.#store.append(batch.map((submission) => submission.take()));
        batch.forEach((submission, index) => {
          const outcome = outcomes[index];
          if (outcome === undefined) submission.fail(new Error("The store gave no outcome for an item"));
          else submission.settle(outcome);
        });
      } catch (error) {
        for (const submission of batch) submission.fail(error);
      }
      // The others' turn: a stream that runs at full speed must not keep new requests from being read.
      if (this.#queue.length > 0) await new Promise<void>((resolve) => defer(resolve));
    }
    this.#busy = false;
  }
}
