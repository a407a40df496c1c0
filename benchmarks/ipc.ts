import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";

// Calls between the command and the processes that it starts: a request has a name, and gets one answer.

interface Question {
  readonly id: number;
  readonly name: string;
  readonly input: unknown;
}

type Answer = { readonly id: number; readonly value: unknown } | { readonly id: number; readonly error: string };

export type Answers = Readonly<Record<string, (input: never) => unknown>>;

/** In the child: answers requests from the parent, and ends the process when the parent has ended. */
export function answerParent(answers: Answers): void {
  const send = (message: unknown): void => void process.send?.(message);
  const answer = async ({ id, name, input }: Question): Promise<void> => {
    try {
      const respond = answers[name];
      if (respond === undefined) throw new Error(`no answer is defined for ${name}`);
      send({ id, value: await respond(input as never) });
    } catch (error) {
      send({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  };
  process.on("message", (question: Question) => void answer(question));
  process.on("disconnect", () => process.exit(0));
  send({ id: 0, value: null });
}

/** In the parent: a child process. */
export class Child {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #last = 0;

  /** Resolves once the child accepts requests. `file` is a module in `benchmarks/`, without its suffix. */
  static async start(file: string, args: readonly string[] = [], execArgv: readonly string[] = []): Promise<Child> {
    const child = new Child(file, args, execArgv);
    await new Promise<unknown>((resolve, reject) => child.#waiting.set(0, { resolve, reject }));
    return child;
  }

  private constructor(file: string, args: readonly string[], execArgv: readonly string[]) {
    const path = fileURLToPath(new URL(`${file}.js`, import.meta.url));
    this.#process = fork(path, args, {
      execArgv: [...execArgv],
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      serialization: "advanced",
    });
    this.#process.on("message", (answer: Answer) => {
      const asker = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ("error" in answer) asker?.reject(new Error(`${file}: ${answer.error}`));
      else asker?.resolve(answer.value);
    });
    this.#process.on("exit", (code, signal) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`${file} ended (${signal ?? code})`));
      this.#waiting.clear();
    });
  }

  ask<T>(name: string, input?: unknown): Promise<T> {
    const id = ++this.#last;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#process.send({ id, name, input } satisfies Question, (error) => {
        if (error !== null) reject(error);
      });
    });
  }

  /** Kills the process, like a crash. */
  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => this.#process.once("exit", () => resolve()));
    this.#process.kill("SIGKILL");
    await ended;
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => this.#process.once("exit", () => resolve()));
    this.#process.disconnect();
    // A server that is busy with a stream of the official SDK may react slowly.
    const patience = setTimeout(() => this.#process.kill("SIGKILL"), 3_000);
    await ended;
    clearTimeout(patience);
  }
}
