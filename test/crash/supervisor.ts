import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { bundled } from "../programs.ts";

export { reservePort } from "../ports.ts";

const usual = fileURLToPath(new URL("server.ts", import.meta.url));

/** The append to its store at which a server kills itself. */
export interface SelfKill {
  readonly moment: "before" | "after";
  readonly append: number;
}

/** One process of the server. */
export interface Life {
  kill(signal: NodeJS.Signals): void;
  /** The signal that ended it, or its exit code. */
  readonly end: Promise<NodeJS.Signals | number | null>;
}

/** Starts servers one at a time, on the same file and port, and collects their errors. */
export class Supervisor {
  readonly complaints: string[] = [];
  /** The output of all of them. */
  readonly lines: string[] = [];
  readonly #path: string;
  readonly #port: number;
  readonly #script: Promise<string>;
  #child: ChildProcess | undefined;

  /** `script`: the server program. Its arguments are the path and the port. */
  constructor(path: string, port: number, script: string = usual) {
    this.#path = path;
    this.#port = port;
    this.#script = bundled(script);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Resolves once the server listens, or has already ended. */
  async start(selfKill?: SelfKill): Promise<Life> {
    const how = selfKill === undefined ? [] : [selfKill.moment, String(selfKill.append)];
    const script = await this.#script;
    const child = spawn(process.execPath, [script, this.#path, String(this.#port), ...how], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    const end = once(child, "close").then(([code, signal]) => (signal ?? code) as NodeJS.Signals | number | null);
    createInterface({ input: child.stderr }).on("line", (line) => this.complaints.push(line));
    const ready = new Promise<void>((resolve) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        this.lines.push(line);
        // A task that is taken over may print a line first.
        if (line === "ready") resolve();
      });
    });
    await Promise.race([ready, end]);
    return { kill: (signal) => void child.kill(signal), end };
  }

  /** Ends the running server. */
  stop(): void {
    this.#child?.kill("SIGKILL");
  }
}
