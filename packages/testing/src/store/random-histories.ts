import type { Store } from "@parley/server/internal/store/index";
import { Comparison, withoutSizes } from "./comparison.ts";
import type { Expectation } from "./given.ts";
import type { History } from "./histories.ts";
import { Reference } from "./reference.ts";

export interface Subject {
  readonly expect: (actual: unknown) => Expectation;
  readonly create: () => Store | Promise<Store>;
  /** Abandons a store as a killed process would, and opens its data again. */
  readonly crash: (store: Store) => Store | Promise<Store>;
}

/** Passes if a store behaves like the reference in random histories of appends, sweeps, reads and crashes. */
export async function likeTheReference(subject: Subject, runs: number): Promise<void> {
  const { forHistories } = await loadHistories();
  await forHistories(runs, (history) => replay(subject, history));
}

/** Loaded here, because it needs fast-check. */
async function loadHistories(): Promise<typeof import("./histories.ts")> {
  try {
    return await import("./histories.ts");
  } catch (cause) {
    const message = "Random histories need the package fast-check: npm install --save-dev fast-check";
    throw cause instanceof Error && cause.message.includes("fast-check") ? new Error(message, { cause }) : cause;
  }
}

async function replay({ expect, create, crash }: Subject, { steps, history }: History): Promise<void> {
  let store = await create();
  const reference = new Reference();
  try {
    for (const step of steps) {
      switch (step.step) {
        case "append":
          expect(withoutSizes(await store.append(step.items))).toEqual(withoutSizes(reference.append(step.items)));
          // Few rows are left at the end of a history.
          for (const now of [2, 6]) await new Comparison(expect, store, reference).due({ now, limit: 100 });
          break;
        case "sweep":
          await store.sweep({ ...step, limit: 100 });
          reference.sweep({ ...step, limit: 100 });
          break;
        case "list":
          await new Comparison(expect, store, reference).lists(step.scope, step.query);
          break;
        case "crash":
          store = await crash(store);
      }
    }
    await new Comparison(expect, store, reference).everything(history);
  } finally {
    await store.close();
  }
}
