import type { Clock } from "@parley/a2a/internal/base/index";
import type { AgentYield, Settled, WaitEvent } from "@parley/a2a/internal/protocol/index";

type Came =
  | { readonly at: number; readonly step: IteratorResult<AgentYield, unknown>; readonly error?: never }
  | { readonly at: number; readonly error: { readonly thrown: unknown }; readonly step?: never };

interface MergeOptions {
  /** Whether the other generators continue if one throws. */
  readonly settled: boolean;
  /** Aborted when the consumer leaves the merged generator. */
  readonly left: AbortSignal;
  readonly clock: Clock;
}

/** How often a waiting generator is polled while others work, in milliseconds. */
const askAgain = 1000;

/**
 * Merges generators in the order of their values. Each generator continues once the consumer has taken its value, so each holds at most one
 * value. A wait is held back until all generators wait, because yielding it ends the agent's function.
 */
export async function* merge(
  generators: readonly AsyncGenerator<AgentYield, unknown, void>[],
  { settled, left, clock }: MergeOptions,
): AsyncGenerator<AgentYield, unknown[], void> {
  const open = new Set(generators.keys());
  const results: unknown[] = Array.from({ length: generators.length });
  const came: Came[] = [];
  const held = new Map<number, WaitEvent>();
  let clear = (): void => {};
  let wake = (): void => {};
  left.addEventListener("abort", () => wake());
  const put = (item: Came): void => {
    came.push(item);
    wake();
  };
  const pull = (at: number): void => {
    void generators[at]?.next().then(
      (step) => put({ at, step }),
      (thrown: unknown) => put({ at, error: { thrown } }),
    );
  };
  const pullHeld = (): void => {
    const waiting = [...held.keys()];
    held.clear();
    for (const at of waiting) pull(at);
  };
  const hold = (at: number, wait: WaitEvent): void => {
    held.set(at, wait);
    clear();
    clear = clock.after(Math.max(1, Math.min(askAgain, soonest(held.values()) - clock.now())), pullHeld);
  };
  try {
    for (const at of open) pull(at);
    while (open.size > 0) {
      if (held.size === open.size) {
        clear();
        yield { kind: "wait", waits: [...held.values()].flatMap(({ waits }) => waits) };
        pullHeld();
      }
      if (came.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      const next = came.shift();
      if (next === undefined || left.aborted) return results;
      const { at, step, error } = next;
      if (step === undefined || step.done === true) open.delete(at);
      if (error !== undefined) {
        if (!settled) throw error.thrown;
        results[at] = { status: "rejected", reason: error.thrown } satisfies Settled<unknown>;
      } else if (step.done !== true) {
        if (isWait(step.value)) hold(at, step.value);
        else {
          yield step.value;
          pull(at);
        }
      } else
        results[at] = settled ? ({ status: "fulfilled", value: step.value } satisfies Settled<unknown>) : step.value;
    }
    return results;
  } finally {
    clear();
    // Concurrently, because each of them may have to clean up.
    const left = [...open].map(async (at) => generators[at]?.return(undefined));
    await Promise.allSettled(left);
  }
}

function isWait(value: AgentYield): value is WaitEvent {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "wait";
}

/** When the earliest of these waits ends, in milliseconds since the Unix epoch. */
function soonest(held: Iterable<WaitEvent>): number {
  const times = [...held].flatMap(({ waits }) => waits.map(({ wait }) => wait.until ?? Infinity));
  return Math.min(Infinity, ...times);
}
