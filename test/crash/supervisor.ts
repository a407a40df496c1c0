import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { typescript } from "../programs.ts";

const script = fileURLToPath(new URL("server.ts", import.meta.url));

/** When a server kills itself, counted in appends to its store. */
export interface SelfKill {
  readonly moment: "before" | "after";
  readonly append: number;
}

/** One life of the server. */
export interface Life {
  kill(signal: NodeJS.Signals): void;
  /** The signal that ended it, or its exit code. */
  readonly end: Promise<NodeJS.Signals | number | null>;
}

/** Starts servers on one file and one port, one after the other, and keeps what they complained of. */
export class Supervisor {
  readonly complaints: string[] = [];
  readonly #path: string;
  readonly #port: number;
  #child: ChildProcess | undefined;

  constructor(path: string, port: number) {
    this.#path = path;
    this.#port = port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Resolves once the server listens, or has died before that. */
  async start(selfKill?: SelfKill): Promise<Life> {
    const how = selfKill === undefined ? [] : [selfKill.moment, String(selfKill.append)];
    const child = spawn(process.execPath, [...typescript, script, this.#path, String(this.#port), ...how], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    const end = once(child, "close").then(([code, signal]) => (signal ?? code) as NodeJS.Signals | number | null);
    createInterface({ input: child.stderr }).on("line", (line) => this.complaints.push(line));
    const ready = once(createInterface({ input: child.stdout }), "line");
    await Promise.race([ready, end]);
    return { kill: (signal) => void child.kill(signal), end };
  }

  /** Leaves nothing behind. */
  stop(): void {
    this.#child?.kill("SIGKILL");
  }
}

/**
 * A port for servers that come and go. Not one that the system would hand out: while no server listens, a client that
 * connects to such a port can be given the same one as its own, and then talks to itself.
 */
export async function reservePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    const probe = createServer();
    const free = await new Promise<boolean>((resolve) => {
      probe.once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
}
