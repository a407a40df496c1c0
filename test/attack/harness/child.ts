import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { compiled } from "../../programs.ts";
import type { Question, Reply } from "../processes/answer.ts";

const mebi = 2 ** 20;

/** The heap of each process, in MiB. */
const heap = 256;

/** A process with a small heap, which reports how much memory it holds, and how it ended. */
export class Child {
  /** The lines on the process's standard error. */
  readonly log: string[] = [];
  /** The value that the process sent when it was ready. */
  readonly greeting: Promise<unknown>;
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #asked = 0;

  constructor(script: string, input: unknown, options: { readonly ownClock?: boolean } = {}) {
    const processes = new URL("../processes/", import.meta.url);
    this.#process = fork(compiled(fileURLToPath(new URL(script, processes))), [JSON.stringify(input)], {
      execArgv: [
        `--max-old-space-size=${heap}`,
        "--expose-gc",
        ...(options.ownClock === true ? ["--import", new URL("clock.mjs", processes).href] : []),
      ],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#ended = once(this.#process, "exit");
    if (this.#process.stderr !== null) {
      createInterface({ input: this.#process.stderr }).on("line", (line) => void this.log.push(line));
    }
    this.#process.on("message", (reply: Reply) => {
      this.#waiting.get(reply.id)?.(reply);
      this.#waiting.delete(reply.id);
    });
    this.#process.on("exit", (code, signal) => {
      const failure = `The process ended with ${signal ?? code}; its last words:\n${this.log.slice(-12).join("\n")}`;
      for (const [id, settle] of this.#waiting) settle({ id, failure });
      this.#waiting.clear();
    });
    this.greeting = this.#reply(0);
    // A test may expect the process to die before it is ready.
    this.greeting.catch(() => undefined);
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  get alive(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  ask(name: string, ...input: readonly unknown[]): Promise<unknown> {
    const id = ++this.#asked;
    const reply = this.#reply(id);
    this.#tell({ id, name, input });
    return reply;
  }

  /** Returns the current memory of the process in bytes. */
  async held(): Promise<number> {
    return Number(await this.ask("held"));
  }

  /** Makes the wall clock of the process jump, if the process was started with its own clock. */
  jump(ms: number): void {
    this.#tell({ jump: ms });
  }

  /** The peak memory of the process since `forgetPeak`, in MiB. */
  get peak(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, "utf8");
    return Math.round((Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024) / mebi);
  }

  forgetPeak(): void {
    writeFileSync(`/proc/${this.pid}/clear_refs`, "5");
  }

  /** Resolves once the process has ended, for any reason. */
  async ended(): Promise<void> {
    await this.#ended;
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    this.#process.kill(signal);
    await this.#ended;
  }

  #tell(message: Question | { readonly jump: number }): void {
    // A process that has just ended cannot get a message. Its end rejects the pending calls.
    if (this.#process.connected) this.#process.send(message, () => {});
  }

  #reply(id: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const settle = ({ value, failure }: Reply): void => {
        if (failure === undefined) resolve(value);
        else reject(new Error(failure));
      };
      if (this.alive) this.#waiting.set(id, settle);
      else settle({ id, failure: `The process is gone; its last words:\n${this.log.slice(-12).join("\n")}` });
    });
  }
}
