/** The functions that a test can call, by name, in a process that it has started. */
export type Questions = Readonly<Record<string, (...input: never[]) => unknown>>;

export interface Question {
  readonly id: number;
  readonly name: string;
  readonly input: readonly unknown[];
}

/** A reply. If `id` is 0, the process reports that it is ready. */
export interface Reply {
  readonly id: number;
  readonly value?: unknown;
  readonly failure?: string;
}

/** Returns the memory that this process holds after a garbage collection, in bytes. */
function held(): number {
  const collect = (globalThis as { gc?: () => void }).gc;
  if (collect === undefined) throw new Error("Start this process with --expose-gc");
  collect();
  const { heapUsed, external } = process.memoryUsage();
  // `external` includes array buffers.
  return heapUsed + external;
}

/** Answers calls until the parent process ends. */
export function answer(questions: Questions, ready: unknown): void {
  const reply = (said: Reply): void => void process.send?.(said);
  const all: Questions = { ...questions, held };
  process.on("message", ({ id, name, input }: Question) => {
    // Starts with a promise, so that synchronous errors are also sent to the test.
    Promise.resolve()
      .then(() => all[name]?.(...(input as never[])))
      .then(
        (value) => reply({ id, value }),
        (error: unknown) => reply({ id, failure: error instanceof Error ? String(error.stack) : String(error) }),
      );
  });
  process.on("disconnect", () => process.exit());
  reply({ id: 0, value: ready });
}
