import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { bundled } from "../programs.ts";
import type { Command, NodeSettings } from "./node.ts";

/** Compiles the program of the nodes. They all run it to the end, whatever is built meanwhile. */
export function nodeProgram(): Promise<string> {
  return bundled(fileURLToPath(new URL("node.ts", import.meta.url)));
}

export interface NodeListener {
  /** Called with each line that a node logs. */
  onLine(line: string): void;
  /** Called if a node ends unexpectedly. */
  onEnd(what: string): void;
}

/** A node: one process after another on one port. */
export class ClusterNode {
  readonly #settings: Omit<NodeSettings, "name">;
  readonly #number: number;
  readonly #listener: NodeListener;
  readonly #script: string;
  #child: ChildProcess | undefined;
  #lives = 0;
  #isWanted = false;
  #isStopped = false;

  /** `script`: what `nodeProgram` has compiled. */
  constructor(script: string, number: number, settings: Omit<NodeSettings, "name">, listener: NodeListener) {
    this.#script = script;
    this.#number = number;
    this.#settings = settings;
    this.#listener = listener;
  }

  /** Starts a process. Resolves when it listens. One that cannot start is restarted, because the database may be unavailable. */
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
      // One that cannot start while the database is unavailable is restarted.
      if (this.#isWanted && isReady) this.#listener.onEnd(`Node ${name} ended on its own: ${code ?? signal}`);
    });
    return child;
  }

  /** Ends the process by a signal, and waits until it has ended. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    this.#isWanted = false;
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    if (this.#isStopped) this.resume();
    child.kill(signal);
    await ended;
  }

  /** Pauses it: it does not notice. */
  stop(): void {
    this.#isStopped = this.#child?.kill("SIGSTOP") === true;
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
    this.#isStopped = false;
  }

  /** The name of its process. */
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
