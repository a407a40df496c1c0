import type { Settled } from "../../protocol/index.ts";

type Came<T> =
  | { readonly at: number; readonly step: IteratorResult<T, unknown>; readonly error?: never }
  | { readonly at: number; readonly error: { readonly thrown: unknown }; readonly step?: never };

/**
 * Merges generators in the order in which their values come. Each one goes on only when its value was taken, so at most one value of each
 * is held.
 */
export async function* merge<T>(
  generators: readonly AsyncGenerator<T, unknown, void>[],
  settled: boolean,
  left: AbortSignal,
): AsyncGenerator<T, unknown[], void> {
  const open = new Set(generators.keys());
  const results: unknown[] = Array.from({ length: generators.length });
  const came: Came<T>[] = [];
  let wake = (): void => {};
  left.addEventListener("abort", () => wake());
  const put = (item: Came<T>): void => {
    came.push(item);
    wake();
  };
  const pull = (at: number): void => {
    void generators[at]?.next().then(
      (step) => put({ at, step }),
      (thrown: unknown) => put({ at, error: { thrown } }),
    );
  };
  try {
    for (const at of open) pull(at);
    while (open.size > 0) {
      if (came.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      const next = came.shift();
      if (next === undefined || left.aborted) return results;
      const { at, step, error } = next;
      if (step === undefined || step.done === true) open.delete(at);
      if (error !== undefined) {
        if (!settled) throw error.thrown;
        results[at] = { status: "rejected", reason: error.thrown } satisfies Settled<unknown>;
      } else if (step.done !== true) {
        yield step.value;
        pull(at);
      } else
        results[at] = settled ? ({ status: "fulfilled", value: step.value } satisfies Settled<unknown>) : step.value;
    }
    return results;
  } finally {
    // All at once: each of them may have to clean up.
    const left = [...open].map(async (at) => generators[at]?.return(undefined));
    await Promise.allSettled(left);
  }
}
