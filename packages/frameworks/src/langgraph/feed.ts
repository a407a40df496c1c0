import type { AgentEvent } from "@parley/server";

/* What a run of a graph does, in order: what its reader sees, and what is stored. */

export type Item =
  | { readonly kind: "text"; readonly artifactId: string; readonly text: string }
  | { readonly kind: "end"; readonly artifactId: string }
  | { readonly kind: "event"; readonly event: AgentEvent }
  | { readonly kind: "save"; readonly apply: () => void; readonly stored: (error?: Error) => void };

/**
 * A queue between a graph and the turn that reads it. Text and checkpoints are in one queue, so a checkpoint is never stored before the text that
 * it follows: a resumed turn would not show it.
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

  /** Applies a change of the thread in its turn. Resolves once it is stored. */
  save(apply: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const stored = (error?: Error): void => (error === undefined ? resolve() : reject(error));
      this.push({ kind: "save", apply, stored });
    });
  }

  /** The graph has ended, or the turn: `error`, what failed. */
  end(error?: unknown): void {
    this.#end ??=
      error === undefined
        ? {}
        : { error: error instanceof Error ? error : new Error("The graph failed", { cause: error }) };
    this.#wake();
  }

  /** No more items are read: nothing else is stored. */
  stop(): void {
    const error = new Error("The turn has ended");
    this.#end = { error };
    for (const item of this.#items.splice(0)) if (item.kind === "save") item.stored(error);
  }

  /** Everything that was pushed since the last read. */
  async *[Symbol.asyncIterator](): AsyncGenerator<readonly Item[]> {
    for (;;) {
      if (this.#items.length > 0) yield this.#items.splice(0);
      else if (this.#end === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
      else if (this.#end.error === undefined) return;
      else throw this.#end.error;
    }
  }
}
