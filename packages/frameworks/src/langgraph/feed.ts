import type { AgentEvent } from "@parley/server";

/* The output and the checkpoints of a graph run, in order. */

export type Item =
  | { readonly kind: "text"; readonly artifactId: string; readonly text: string }
  | { readonly kind: "end"; readonly artifactId: string }
  | { readonly kind: "event"; readonly event: AgentEvent }
  | { readonly kind: "save"; readonly apply: () => void; readonly stored: (error?: Error) => void };

/**
 * A queue between a graph and the turn that reads it. Text and checkpoints share it, so a checkpoint is never stored before the text that precedes
 * it. Otherwise a resumed turn would omit that text.
 */
export class Feed implements AsyncIterable<readonly Item[]> {
  #items: Item[] = [];
  #wake = (): void => undefined;
  #end: { readonly error?: Error } | undefined;

  push(item: Item): void {
    if (this.#end !== undefined) return item.kind === "save" ? item.stored(this.#end.error) : undefined;
    this.#items.push(item);
    this.#wake();
  }

  /** Queues a change to the thread. Resolves once it is stored. */
  save(apply: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const stored = (error?: Error): void => (error === undefined ? resolve() : reject(error));
      this.push({ kind: "save", apply, stored });
    });
  }

  /** Called when the graph or the turn has ended. `error` is the reason for a failure. */
  end(error?: unknown): void {
    this.#end ??=
      error === undefined
        ? {}
        : { error: error instanceof Error ? error : new Error("The graph failed", { cause: error }) };
    this.#wake();
  }

  /** Stops reading, so later items are not stored. */
  stop(): void {
    const error = new Error("The turn has ended");
    this.#end = { error };
    for (const item of this.#items.splice(0)) if (item.kind === "save") item.stored(error);
  }

  /** Yields all items that were pushed since the last read. */
  async *[Symbol.asyncIterator](): AsyncGenerator<readonly Item[]> {
    for (;;) {
      if (this.#items.length > 0) yield this.#items.splice(0);
      else if (this.#end === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
      else if (this.#end.error === undefined) return;
      else throw this.#end.error;
    }
  }
}
