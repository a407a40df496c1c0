import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { bundled } from "../programs.ts";
import type { Command, NodeSettings } from "./node.ts";

/** Compiles the program of the nodes, so that builds during the run do not change this program. */
export function nodeProgram(): Promise<string> {
  return bundled(fileURLToPath(new URL("node.ts", import.meta.url)));
}

export interface NodeListener {
  /** Called with each line that a node logs. */
  onLine(line: string): void;
  /** Called if a node ends unexpectedly. */
  onEnd(what: string): void;
}

/** A node, which consists of successive processes on one port. */
export class ClusterNode {
  readonly #settings: Omit<NodeSettings, "name">;
  readonly #number: number;
  readonly #listener: NodeListener;
  readonly #script: string;
  #child: ChildProcess | undefined;
  #lives = 0;
  #isWanted = false;
  #isStopped = false;

  /** Creates a node. `script`: the program that `nodeProgram` compiled. */
  constructor(script: string, number: number, settings: Omit<NodeSettings, "name">, listener: NodeListener) {
    this.#script = script;
    this.#number = number;
    this.#settings = settings;
    this.#listener = listener;
  }

  /** Starts a process. Resolves once the process listens. Retries if it cannot start, because the database may be unavailable. */
  async start(): Promise<void> {
    this.#isWanted = true;
    while (this.#isWanted) {
      const child = this.#spawn();
      const ready = once(child, "message").then(() => true);
      if (await Promise.race([ready, once(child, "exit").then(() => false)])) return;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  #spawn(): ChildProcess {
    const name = `${this.#number}.${(this.#lives += 1)}`;
    const settings: NodeSettings = { ...this.#settings, name };
    const child = spawn(process.execPath, ["--trace-warnings", this.#script, JSON.stringify(settings)], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child = child;
    this.#isStopped = false;
    let isReady = false;
    child.once("message", () => (isReady = true));
    if (child.stderr)
      createInterface({ input: child.stderr }).on("line", (line) => this.#listener.onLine(`${name} ${line}`));
    child.once("exit", (code, signal) => {
      // If a process could not start, for example while the database is unavailable, `start()` retries instead.
      if (this.#isWanted && isReady) this.#listener.onEnd(`Node ${name} ended on its own: ${code ?? signal}`);
    });
    return child;
  }

  /** Sends a signal to the process, and waits until it has ended. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    this.#isWanted = false;
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    if (this.#isStopped) this.resume();
    child.kill(signal);
    await ended;
  }

  /** Pauses the process without giving it notice. */
  stop(): void {
    this.#isStopped = this.#child?.kill("SIGSTOP") === true;
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
    this.#isStopped = false;
  }

  /** The name of the current process. */
  get name(): string {
    return `${this.#number}.${this.#lives}`;
  }

  get port(): number {
    return this.#settings.port;
  }

  tell(command: Command): void {
    if (this.#child?.connected === true) this.#child.send(command, () => {});
  }
}
