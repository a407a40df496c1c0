import cluster from "node:cluster";
import { randomBytes, randomUUID } from "node:crypto";
import { availableParallelism } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { isMainThread } from "node:worker_threads";
import type { Logger } from "@parley/a2a/internal/base/index";
import { A2AError } from "@parley/a2a/internal/model/index";
import type { ServedAgent } from "@parley/server/internal/handler";
import { defaultLogger } from "../defaults.ts";
import { addressOf, hasOwnPort, refuseHostUser, refuseOpenConsole, refuseOpenDoor, urlOf, bind } from "../listen.ts";
import { closeOnce } from "../process.ts";
import type { ServeOptions, Server, CloseOptions } from "../serve-options.ts";
import { Calls, tell, wake, type Child } from "./calls.ts";
import { Member, placeOfThisProcess } from "./member.ts";
import { isOurs, placeVariable, type Order, type Place, type Report } from "./messages.ts";
import { frontOf, Spread } from "./spread.ts";

/* `serve(agent, { processes: n })`: the parent starts serving processes, which run the same program. */

const maxProcesses = 256;

/** @param serveHere - Serves in this process, as one of several. */
export async function serveProcesses(
  options: ServeOptions,
  serveHere: (options: ServeOptions, member?: Member) => Promise<Server>,
): Promise<Server> {
  const place = placeOfThisProcess();
  if (place !== undefined) {
    const member = new Member(place);
    try {
      return await serveHere(options, member);
    } catch (thrown) {
      await member.fail(thrown);
      throw thrown;
    }
  }
  const count = countOf(options.processes);
  if (count === 1) return serveHere(options);
  refuseElsewhere();
  return startProcesses(options, count);
}

function countOf(processes: unknown): number {
  if (processes === "cores") return Math.min(maxProcesses, availableParallelism());
  if (typeof processes === "number" && Number.isInteger(processes) && processes >= 1 && processes <= maxProcesses)
    return processes;
  throw new TypeError(`The option \`processes\` must be a whole number from 1 to ${maxProcesses}, or "cores"`);
}

/** Throws if new processes would not run this program, or if it already has other child processes. */
function refuseElsewhere(): void {
  const why = !isMainThread
    ? "A worker thread cannot start processes that serve: call serve() in the main thread"
    : cluster.isWorker
      ? "Another program started this process with node:cluster: set `processes` in one of the two only"
      : Object.keys(cluster.workers ?? {}).length > 0
        ? "This program has already started processes: only one of its servers can have `processes`"
        : process.argv[1] === undefined
          ? "`processes` starts the program again, so it must be a file that node runs"
          : undefined;
  if (why !== undefined) throw new Error(why);
}

/** Initial backoff before an ended process is restarted, in milliseconds. It doubles while processes end soon after their start. */
const shortestPause = 100;
const longestPause = 30_000;
/** Milliseconds that a process must serve to count as stable. */
const settled = 10_000;
/** Time after the grace period for a process to close, and then the same time again for it to exit, in milliseconds. */
const closeTimeout = 2_000;
/** Time after which a warning says that a new process has not called `serve()`, in milliseconds. */
const callTimeout = 30_000;
/** Maximum number of ended processes that the parent remembers. */
const maxEnded = 100;
/** Time for the processes to take the last accepted connections, in milliseconds. */
const spreadTimeout = 1_000;

/** Listens, starts the serving processes, and distributes connections. Resolves when all of them serve. */
async function startProcesses(options: ServeOptions, count: number): Promise<Server> {
  const { host = "127.0.0.1", port = 4000, bindings = [], tls } = options;
  const logger = defaultLogger(options);
  const address = await addressOf(host);
  refuseOpenDoor(host, address, options);
  refuseOpenConsole(host, address, options);
  refuseHostUser(options);
  const spread = new Spread<Child>({
    // Another process takes over its tasks and the connection.
    onStuck(child) {
      const { worker, number } = child;
      child.isStuck = true;
      logger.error("Process does not accept connections; killing it", { process: number, pid: worker.process.pid });
      worker.process.kill("SIGKILL");
    },
  });
  const others = bindings.filter(hasOwnPort);
  const numbers = [port, ...others.map((each) => each.port)];
  const fronts = numbers.map((number, at) => ({ number, ...frontOf(at, spread) }));
  const bound: number[] = [];
  const group = new Group(spread, count, bound, logger);
  try {
    for (const { server, number } of fronts) bound.push(await bind(server, address, number));
    for (const { server } of fronts)
      server.on("error", (cause) => logger.error("Failed to accept a connection", { cause }));
    await group.start();
  } catch (error) {
    for (const { server } of fronts) server.close();
    await group.stop(0);
    throw error;
  }
  const end = async ({ drainDelay, grace }: Required<CloseOptions>): Promise<void> => {
    group.drain();
    await until(drainDelay, () => spread.isEmpty);
    await Promise.all(fronts.map((front) => front.leave()));
    await until(spreadTimeout, () => spread.isEmpty || !spread.isBusy);
    spread.end();
    await group.stop(grace);
  };
  const [main = 0, ...own] = bound;
  return {
    url: urlOf(host, main, tls !== undefined),
    port: main,
    ports: Object.fromEntries(others.map(({ binding }, at) => [binding.name, own[at] ?? 0])),
    agents: group.agents,
    signal: (...event) => group.calls.signal(event),
    deleteOwner: (...of) => group.calls.deleteOwner(...of),
    exportOwner: (of) => group.calls.exportOwner(of),
    mounts: {
      get agents() {
        return group.agents;
      },
      add: refuseMount,
      replace: refuseMount,
      remove: async () => refuseMount(),
    },
    close: closeOnce(options, end),
  };
}

/** Waits until a condition is met, up to `timeout` milliseconds. */
async function until(timeout: number, isMet: () => boolean): Promise<void> {
  const end = performance.now() + timeout;
  for (let left = timeout; left > 0 && !isMet(); left = end - performance.now()) await pause(Math.min(left, 20));
}

function refuseMount(): never {
  throw new A2AError(
    "UnsupportedOperation",
    "With `processes`, change mounts in each serving process, not in the parent",
  );
}

/** A process that has ended, and whether it was killed from outside. */
interface End {
  readonly pid: number;
  readonly isKilled: boolean;
}

/** The serving processes. */
class Group {
  agents: readonly ServedAgent[] = [];
  readonly calls = new Calls(() => this.#serving());
  readonly #spread: Spread<Child>;
  readonly #count: number;
  readonly #ports: readonly number[];
  readonly #secret = randomBytes(32).toString("base64");
  readonly #logger: Logger;
  readonly #children = new Map<number, Child>();
  readonly #restarts = new Set<NodeJS.Timeout>();
  /** Number of consecutive processes that ended soon after their start, by process number. */
  readonly #failures = new Map<number, number>();
  readonly #group = randomUUID();
  /** The most recently ended processes. */
  #ends: readonly End[] = [];
  #starting: { resolve(): void; reject(error: Error): void } | undefined;
  #isDraining = false;
  #isStopping = false;
  #onEmpty: (() => void) | undefined;

  /** `ports`: read when a process is started. */
  constructor(spread: Spread<Child>, count: number, ports: readonly number[], logger: Logger) {
    this.#spread = spread;
    this.#count = count;
    this.#ports = ports;
    this.#logger = logger;
  }

  /** Resolves when all processes serve. Rejects when one ends before that. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#starting = { resolve, reject };
      for (let number = 1; number <= this.#count; number += 1) this.#fork(number);
    });
  }

  #serving(): readonly Child[] {
    return this.#isStopping ? [] : [...this.#children.values()].filter(({ isReady, hasLeft }) => isReady && !hasLeft);
  }

  /** Makes readiness fail in all processes, which continue to serve. */
  drain(): void {
    this.#isDraining = true;
    for (const child of this.#children.values()) if (child.isReady) tell(child, { parley: "drain" });
  }

  /** Ends all processes. Their turns get `grace` milliseconds. */
  async stop(grace: number): Promise<void> {
    this.#isStopping = true;
    for (const restart of this.#restarts) clearTimeout(restart);
    const children = [...this.#children.values()];
    if (children.length === 0) return;
    const empty = new Promise<void>((resolve) => (this.#onEmpty = resolve));
    for (const child of children) {
      if (child.isReady) tell(child, { parley: "close", grace });
      else child.worker.process.kill("SIGTERM");
    }
    const late = setTimeout(
      () => {
        for (const { worker, number } of this.#children.values()) {
          this.#logger.warn("Process did not stop in time; killing it", { process: number, pid: worker.process.pid });
          worker.process.kill("SIGKILL");
        }
      },
      grace + 2 * closeTimeout,
    );
    await empty;
    clearTimeout(late);
  }

  #fork(number: number): void {
    const place: Place = {
      parent: process.pid,
      number,
      ports: this.#ports,
      group: this.#group,
      ended: this.#ends.map(({ pid }) => pid),
      killed: this.#ends.flatMap(({ pid, isKilled }) => (isKilled ? pid : [])),
      secret: this.#secret,
    };
    const worker = cluster.fork({ [placeVariable]: JSON.stringify(place) });
    const child: Child = {
      worker,
      number,
      since: performance.now(),
      isReady: false,
      isStuck: false,
      hasLeft: false,
      unread: 0,
      missed: false,
      send: (port, socket) =>
        worker.process.send({ parley: "connection", port } satisfies Order, socket, { keepOpen: true }, () => {}),
    };
    this.#children.set(number, child);
    const slow = setTimeout(
      () => this.#logger.warn("Process has not called serve() yet", { process: number, pid: worker.process.pid }),
      callTimeout,
    );
    slow.unref();
    worker.on("message", (message: unknown) => {
      if (!isOurs<Report>(message)) return;
      clearTimeout(slow);
      this.#heard(child, message);
    });
    // Emitted after all messages of the process.
    worker.on("disconnect", () => this.#spread.ended(child));
    worker.on("error", (cause) =>
      this.#logger.error("Failed to send a message to a process", { process: number, cause }),
    );
    worker.on("exit", (code: number | null, signal: string | null) => {
      clearTimeout(slow);
      this.#ended(child, code, signal);
    });
  }

  #heard(child: Child, report: Report): void {
    if (report.parley === "taken") this.#spread.taken(child);
    else if (report.parley === "wakeup") for (const other of this.#others(child)) wake(other, report.text);
    else if (report.parley === "ready") this.#ready(child, report.agents);
    else if (report.parley === "failed") this.#failed(child, report.message);
    else if (report.parley === "leaving") {
      child.hasLeft = true;
      this.#spread.remove(child);
      tell(child, { parley: "left" });
    } else if (report.parley === "closed") this.#closed(child);
    else this.calls.answered(report);
  }

  #ready(child: Child, agents: readonly ServedAgent[]): void {
    child.isReady = true;
    if (this.#isStopping) return tell(child, { parley: "close", grace: 0 });
    if (this.#isDraining) tell(child, { parley: "drain" });
    this.#spread.add(child);
    this.agents = agents;
    if (this.#starting === undefined) {
      this.#logger.info("Process serves again", { process: child.number, pid: child.worker.process.pid });
    } else if ([...this.#children.values()].every(({ isReady }) => isReady)) {
      this.#starting.resolve();
      this.#starting = undefined;
    }
  }

  #failed(child: Child, message: string): void {
    if (this.#starting === undefined) {
      this.#logger.error("Process failed to serve", { process: child.number, reason: message });
      return;
    }
    this.#starting.reject(new Error(message));
    this.#starting = undefined;
  }

  /** Called when the server of a process has closed. Sends SIGTERM, because the process's program may still do other work. */
  #closed({ worker }: Child): void {
    worker.process.kill("SIGTERM");
  }

  #ended(child: Child, code: number | null, signal: string | null): void {
    const { number, worker, since } = child;
    this.#children.delete(number);
    this.calls.ended(child);
    const how = signal ?? `code ${code}`;
    if (this.#starting !== undefined) {
      const sentence = `Process ${number} of ${this.#count} ended before it served (${how}). See its output for the reason`;
      this.#starting.reject(new Error(sentence));
      this.#starting = undefined;
      return;
    }
    if (this.#isStopping) {
      if (this.#children.size === 0) this.#onEmpty?.();
      return;
    }
    // A crash, including out of memory, ends the process with a code or another signal.
    const { pid } = worker.process;
    if (pid !== undefined) this.#tellEnd({ pid, isKilled: signal === "SIGKILL" && !child.isStuck });
    const isNew = performance.now() - since < settled;
    const failures = isNew ? (this.#failures.get(number) ?? 0) + 1 : 0;
    this.#failures.set(number, failures);
    const pause = Math.min(longestPause, shortestPause * 2 ** Math.min(failures, 20));
    const log = { process: number, pid: worker.process.pid, how, restartIn: pause };
    if (child.isReady) this.#logger.warn("Process ended; restarting", log);
    else this.#logger.error("Process ended before it served; restarting", log);
    const restart = setTimeout(() => {
      this.#restarts.delete(restart);
      this.#fork(number);
    }, pause);
    this.#restarts.add(restart);
  }

  #tellEnd(end: End): void {
    this.#ends = [...this.#ends.filter(({ pid }) => pid !== end.pid), end].slice(-maxEnded);
    // Also tells starting processes: they take over tasks before they are ready, and read messages that were sent earlier.
    for (const other of this.#children.values()) tell(other, { parley: "gone", ...end });
  }

  #others(child: Child): readonly Child[] {
    return [...this.#children.values()].filter((other) => other !== child && other.isReady);
  }
}
