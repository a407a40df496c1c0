/** What a process of this suite can be asked by the test that started it, by name. */
export type Questions = Readonly<Record<string, (...input: never[]) => unknown>>;

export interface Question {
  readonly id: number;
  readonly name: string;
  readonly input: readonly unknown[];
}

/** What goes back; `id` 0 is the process itself, which says that it is ready. */
export interface Reply {
  readonly id: number;
  readonly value?: unknown;
  readonly failure?: string;
}

/** What a process holds, in bytes, once everything that nobody needs is gone. */
function held(): number {
  const collect = (globalThis as { gc?: () => void }).gc;
  if (collect === undefined) throw new Error("Start this process with --expose-gc");
  collect();
  const { heapUsed, external } = process.memoryUsage();
  // `external` has the array buffers in it.
  return heapUsed + external;
}

/** Answers questions until the parent is gone. */
export function answer(questions: Questions, ready: unknown): void {
  const reply = (said: Reply): void => void process.send?.(said);
  const all: Questions = { ...questions, held };
  process.on("message", ({ id, name, input }: Question) => {
    // A promise, so that what is thrown at once is told as well.
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
