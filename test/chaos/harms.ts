import type { PostgresServer } from "../postgres/server.ts";
import type { Balancer } from "./balancer.ts";
import type { ClusterNode } from "./cluster.ts";
import type { Fault } from "./history.ts";
import type { PlannedFault } from "./plan.ts";

export interface HarmOptions {
  readonly postgres: PostgresServer;
  readonly nodes: readonly ClusterNode[];
  readonly toNodes: Balancer;
  /** The balancer between each node and the database. */
  readonly toDatabase: readonly Balancer[];
  readonly note: (fault: Fault) => void;
}

/** Executes the plan. Faults of the same node, or of the database, run one at a time. */
export class Harms {
  readonly #options: HarmOptions;
  /** The last fault of each node, and of the database. */
  readonly #queues = new Map<string, Promise<void>>();
  /** Aborted to end every pause. */
  readonly #repairing = new AbortController();

  constructor(options: HarmOptions) {
    this.#options = options;
  }

  /** Injects all faults at their times. Resolves after `length` milliseconds. */
  async run(faults: readonly PlannedFault[], length: number): Promise<void> {
    const begun = performance.now();
    for (const fault of faults) {
      await pause(begun + fault.after - performance.now());
      this.#queue(fault);
    }
    await pause(begun + length - performance.now());
  }

  /** Ends the remaining faults. Afterwards the database and all nodes are running. */
  async repair(): Promise<void> {
    this.#repairing.abort();
    await Promise.all(this.#queues.values());
  }

  #queue(fault: PlannedFault): void {
    const { what, node, lasts } = fault;
    const target = what.includes("database") ? "database" : String(node);
    const before = this.#queues.get(target) ?? Promise.resolve();
    const done = before.then(async () => {
      if (this.#repairing.signal.aborted) return;
      this.#options.note({ type: "fault", at: Date.now(), what, lasts, ...(node >= 0 && { node }) });
      await this.#do(fault);
    });
    this.#queues.set(target, done);
  }

  async #do({ what, node: number, lasts }: PlannedFault): Promise<void> {
    const { postgres, toNodes, toDatabase } = this.#options;
    const wait = (): Promise<void> => pause(lasts, this.#repairing.signal);
    if (what === "cut clients") return void toNodes.cut(0.5);
    if (what === "cut database") return toDatabase.forEach((each) => each.cut(0.5));
    if (what === "crash database" || what === "restart database") {
      await (what === "crash database" ? postgres.crash() : postgres.stop());
      await wait();
      return postgres.start();
    }
    const node = this.#options.nodes[number];
    if (node === undefined) throw new Error(`There is no node ${number}`);
    if (what === "isolate") {
      toDatabase[number]?.hold(true);
      await wait();
      return toDatabase[number]?.hold(false);
    }
    if (what === "stop") {
      node.stop();
      await wait();
      return node.resume();
    }
    if (what === "drop wake-ups") {
      node.tell({ dropWakeups: true });
      await wait();
      return node.tell({ dropWakeups: false });
    }
    await node.end(what === "kill" ? "SIGKILL" : "SIGTERM");
    await wait();
    // Other faults may affect the database during the start, so the start may take a while.
    await node.start();
  }
}

/** Waits for this time. The signal ends the wait early. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (ms <= 0 || signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}
