import { fork, type ChildProcess } from "node:child_process";
import { dirname, relative, resolve } from "node:path";
import { watch } from "chokidar";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { styleFor } from "../output/text.ts";
import type { ServeOptions } from "../serve.ts";

interface DevOptions extends ServeOptions {
  readonly watch?: readonly string[];
}

/** The module and the options that a child process serves. */
export interface Serving {
  readonly file: string;
  readonly options: ServeOptions;
}

/** Order to listen, once the module is loaded. */
export interface Listen {
  /** Whether another process is releasing the port. */
  readonly after: boolean;
}

/** Sent to a process: serve a module; listen; finish the tasks and exit. */
export type Order = { readonly serve: Serving } | Listen | "stop";

/** Sent by a process: the module is loaded, the stop is acknowledged, or the reason why it cannot serve. */
export type Report = "loaded" | "stopping" | { readonly failed: string };

/** Files that restart the server. Others, such as a database or the output of an agent, do not. */
const code = /\.(?:[cm]?[jt]sx?|json|env)$/;

/** Folders that are not watched. */
const skipped = /(?:^|[\\/])(?:node_modules|\.[^\\/.][^\\/]*)(?:[\\/]|$)/;

/** Delay after the last change: editors and tools write several files at once. */
const debounceMs = 100;

/** Maximum number of processes that finish their tasks while a newer one serves. */
const maxLeaving = 2;

/** Time for a process to acknowledge the stop order. A module that never yields cannot acknowledge it. */
const stopTimeoutMs = 3_000;

/** `parley dev`: serves a module, and restarts when a file changes. Returns the exit code. */
export async function dev(io: Io, file: string, options: DevOptions): Promise<number> {
  if (options.port === 0) throw new UsageError("--port must not be 0: the port would change with each restart");
  const { watch: more = [], ...serving } = options;
  const generations = new Generations(io, file, serving);
  const places = [dirname(resolve(io.cwd, file)), ...more.map((path) => resolve(io.cwd, path))];
  const watcher = watch(places, {
    ignoreInitial: true,
    ignored: (path, stats) =>
      skipped.test(relative(io.cwd, path)) || (stats?.isFile() === true && !code.test(path) && !places.includes(path)),
  });
  let timer: NodeJS.Timeout | undefined;
  watcher.on("all", (_event, path) => {
    clearTimeout(timer);
    timer = setTimeout(() => generations.next(relative(io.cwd, path)), debounceMs);
  });
  generations.next();
  try {
    await generations.ended;
  } finally {
    clearTimeout(timer);
    await watcher.close();
  }
  return 0;
}

/** The processes of a module, one per version of its files. The newest serves; older ones finish their tasks. */
class Generations {
  /** Resolves once the user has stopped it and all processes have exited. */
  readonly ended: Promise<void>;
  readonly #io: Io;
  readonly #file: string;
  readonly #options: ServeOptions;
  readonly #all = new Set<ChildProcess>();
  /** Processes that were told to stop, oldest first. */
  readonly #leaving = new Set<ChildProcess>();
  /** Timers that kill processes which do not acknowledge a stop. */
  readonly #killTimers = new Map<ChildProcess, NodeJS.Timeout>();
  /** The process that has the port, or waits for the previous one to release it. */
  #serving: ChildProcess | undefined;
  /** The process that is loading the module. */
  #coming: ChildProcess | undefined;
  #over = false;
  #end: () => void = () => {};

  constructor(io: Io, file: string, options: ServeOptions) {
    this.#io = io;
    this.#file = file;
    this.#options = options;
    this.ended = new Promise((resolve) => (this.#end = resolve));
    const interrupt = (): void => {
      this.#stopAll();
      // A second signal kills the processes, a third one this process.
      io.onInterrupt(() => this.#stopAll());
    };
    io.onInterrupt(interrupt);
  }

  /** Loads the module in a new process, which takes over once loaded. */
  next(changed?: string): void {
    if (this.#over) return;
    if (changed !== undefined) this.#say("dim", `${changed} changed.`);
    this.#coming?.kill("SIGKILL");
    const child = fork(new URL("./child.js", import.meta.url), [], { cwd: this.#io.cwd, stdio: "inherit" });
    this.#coming = child;
    this.#all.add(child);
    child.on("message", (report: Report) => this.#hear(child, report));
    // `exit` can come before the last report.
    child.on("close", (status) => this.#left(child, status));
    order(child, { serve: { file: this.#file, options: this.#options } });
  }

  #hear(child: ChildProcess, report: Report): void {
    if (report === "stopping") {
      clearTimeout(this.#killTimers.get(child));
    } else if (report === "loaded") {
      if (child !== this.#coming) return;
      const before = this.#serving;
      // This process serves from now on. A later change replaces it only once the new version has loaded.
      this.#serving = child;
      this.#coming = undefined;
      if (before !== undefined) this.#retire(before);
      order(child, { after: this.#leaving.size > 0 });
    } else {
      this.#fail(child, report.failed);
    }
  }

  #left(child: ChildProcess, status: number | null): void {
    clearTimeout(this.#killTimers.get(child));
    this.#killTimers.delete(child);
    this.#all.delete(child);
    this.#leaving.delete(child);
    if (!this.#over) this.#fail(child, `The server exited with ${status ?? "a signal"}.`);
    if (this.#over && this.#all.size === 0) this.#end();
  }

  /** Reports why a serving or loading process failed. */
  #fail(child: ChildProcess, why: string): void {
    if (child !== this.#coming && child !== this.#serving) return;
    if (child === this.#coming) this.#coming = undefined;
    else this.#serving = undefined;
    this.#say("red", why);
    this.#say(
      "dim",
      `${this.#serving === undefined ? "" : "Still serving the previous version. "}Waiting for a change.`,
    );
  }

  /** Tells a process to finish its tasks and exit. Kills the oldest if too many are finishing. */
  #retire(child: ChildProcess): void {
    this.#stop(child);
    this.#leaving.add(child);
    const [oldest] = this.#leaving;
    if (this.#leaving.size > maxLeaving && oldest !== undefined) oldest.kill("SIGKILL");
  }

  #stopAll(): void {
    const isRepeated = this.#over;
    this.#over = true;
    for (const child of this.#all) {
      // A process that is still loading has no tasks.
      if (isRepeated || child === this.#coming) child.kill("SIGKILL");
      else this.#stop(child);
    }
    if (this.#all.size === 0) this.#end();
  }

  /** Tells a process to finish its tasks and exit. Kills it if it does not acknowledge, because it would hold the port forever. */
  #stop(child: ChildProcess): void {
    if (this.#killTimers.has(child)) return;
    order(child, "stop");
    const kill = (): void => {
      this.#say("red", "The server did not respond and was killed.");
      child.kill("SIGKILL");
    };
    this.#killTimers.set(child, setTimeout(kill, stopTimeoutMs));
  }

  #say(format: "dim" | "red", text: string): void {
    this.#io.stderr.write(`${styleFor(this.#io.stderr, this.#io.env)(format, text)}\n`);
  }
}

function order(child: ChildProcess, given: Order): void {
  if (child.connected) child.send(given, () => {});
}
