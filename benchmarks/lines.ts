import type { ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

/** A program that prints a line when it is ready, and ends when its standard input closes. */
export interface Started<T> {
  readonly said: T;
  /** Closes its standard input, so that it ends. */
  stop(): Promise<void>;
  /** Kills it, like a crash. */
  kill(): Promise<void>;
}

/** Reads the first line of a program, which is JSON. Rejects if the program ends before it prints one. */
export async function firstLine<T>(
  child: ChildProcessByStdio<Writable, Readable, null>,
  what: string,
): Promise<Started<T>> {
  const ended = once(child, "exit");
  const stop = async (): Promise<void> => {
    child.stdin.end();
    await ended;
  };
  const failed = ended.then(([code]) => Promise.reject(new Error(`${what} could not be started (${String(code)})`)));
  // After the start, the end of the program is not a failure.
  failed.catch(() => {});
  const [line] = (await Promise.race([once(createInterface({ input: child.stdout }), "line"), failed])) as [string];
  return {
    said: JSON.parse(line) as T,
    stop,
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
