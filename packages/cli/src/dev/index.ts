import { fork, type ChildProcess } from "node:child_process";
import { dirname, relative, resolve } from "node:path";
import { watch } from "chokidar";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { styleFor } from "../output/text.ts";
import type { ServeOptions } from "../serve.ts";

/** Options of `parley dev`. */
interface DevOptions extends ServeOptions {
  readonly watch?: readonly string[];
}

/** What a process is to serve. */
export interface Serving {
  readonly file: string;
  readonly options: ServeOptions;
}

/** To begin, once it has loaded the module. */
export interface Listen {
  /** Whether it comes after another process, which is leaving the port. */
  readonly after: boolean;
}

/** To a process: what to serve; to begin; to finish its tasks and end. */
export type Order = { readonly serve: Serving } | Listen | "stop";

/** From a process: its module is loaded, it has heard that it is to end, or why it cannot serve. */
export type Report = "loaded" | "stopping" | { readonly failed: string };

/** Kinds of files that a module is made of. Others, such as a database or what an agent writes, restart nothing. */
const code = /\.(?:[cm]?[jt]sx?|json|env)$/;

/** Folders that are not looked into. */
const skipped = /(?:^|[\\/])(?:node_modules|\.[^\\/.][^\\/]*)(?:[\\/]|$)/;

/** How long files have to be left alone before a restart, in milliseconds. Editors and tools write several at once. */
const quiet = 100;

/** How many processes may finish their tasks beside the one that serves. */
const maxLeaving = 2;

/** How long a process may take to hear that it is to end, in milliseconds. A module that never yields hears nothing. */
const patience = 3_000;

/** `parley dev`: serves a module, and serves it anew when a file changes. Returns the exit code. */
export async function dev(io: Io, file: string, options: DevOptions): Promise<number> {
  if (options.port === 0) throw new UsageError("--port 0 would be another port after each change; name one");
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
    timer = setTimeout(() => generations.next(relative(io.cwd, path)), quiet);
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

/** The processes of a module, one for each version of its files. The newest one serves, and those before finish their tasks. */
class Generations {
  /** Resolves once the user has ended it, and all processes are gone. */
  readonly ended: Promise<void>;
  readonly #io: Io;
  readonly #file: string;
  readonly #options: ServeOptions;
  readonly #all = new Set<ChildProcess>();
  /** Those that were told to stop, the oldest first. */
  readonly #leaving = new Set<ChildProcess>();
  /** For those that were told to stop: what ends them where they do not hear it. */
  readonly #deaf = new Map<ChildProcess, NodeJS.Timeout>();
  /** The one that has the port, or waits for the one before to leave it. */
  #serving: ChildProcess | undefined;
  /** The one that loads the module. */
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
      // The second signal stops at once, the third one ends this process.
      io.onInterrupt(() => this.#stopAll());
    };
    io.onInterrupt(interrupt);
  }

  /** Loads the module in a new process. It takes over when it has loaded. */
  next(changed?: string): void {
    if (this.#over) return;
    if (changed !== undefined) this.#say("dim", `${changed} has changed.`);
    this.#coming?.kill("SIGKILL");
    const child = fork(new URL("./child.js", import.meta.url), [], { cwd: this.#io.cwd, stdio: "inherit" });
    this.#coming = child;
    this.#all.add(child);
    child.on("message", (report: Report) => this.#hear(child, report));
    // Not `exit`, which can come before the last report.
    child.on("close", (status) => this.#left(child, status));
    order(child, { serve: { file: this.#file, options: this.#options } });
  }

  #hear(child: ChildProcess, report: Report): void {
    if (report === "stopping") {
      clearTimeout(this.#deaf.get(child));
    } else if (report === "loaded") {
      if (child !== this.#coming) return;
      const before = this.#serving;
      // From here on it is the one that serves: a change that follows leaves it in place until that can be served.
      this.#serving = child;
      this.#coming = undefined;
      if (before !== undefined) this.#retire(before);
      order(child, { after: this.#leaving.size > 0 });
    } else {
      this.#fail(child, report.failed);
    }
  }

  #left(child: ChildProcess, status: number | null): void {
    clearTimeout(this.#deaf.get(child));
    this.#deaf.delete(child);
    this.#all.delete(child);
    this.#leaving.delete(child);
    if (!this.#over) this.#fail(child, `The server has ended with ${status ?? "a signal"}.`);
    if (this.#over && this.#all.size === 0) this.#end();
  }

  /** Says why the process that serves, or the one that is to follow it, does so no more. */
  #fail(child: ChildProcess, why: string): void {
    if (child !== this.#coming && child !== this.#serving) return;
    if (child === this.#coming) this.#coming = undefined;
    else this.#serving = undefined;
    this.#say("red", why);
    this.#say("dim", `${this.#serving === undefined ? "" : "What was served before goes on. "}Waiting for a change.`);
  }

  /** Tells a process to finish its tasks and to end. Of those that still do so the oldest ends at once. */
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
      // What is not loaded yet has no tasks.
      if (isRepeated || child === this.#coming) child.kill("SIGKILL");
      else this.#stop(child);
    }
    if (this.#all.size === 0) this.#end();
  }

  /** Tells a process to finish its tasks and to end, and ends it where it does not hear. It would hold the port for ever. */
  #stop(child: ChildProcess): void {
    if (this.#deaf.has(child)) return;
    order(child, "stop");
    const kill = (): void => {
      this.#say("red", "The server did not respond, and was ended.");
      child.kill("SIGKILL");
    };
    this.#deaf.set(child, setTimeout(kill, patience));
  }

  #say(format: "dim" | "red", text: string): void {
    this.#io.stderr.write(`${styleFor(this.#io.stderr, this.#io.env)(format, text)}\n`);
  }
}

function order(child: ChildProcess, given: Order): void {
  if (child.connected) child.send(given, () => {});
}
