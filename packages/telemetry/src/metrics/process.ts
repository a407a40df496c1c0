import { monitorEventLoopDelay } from "node:perf_hooks";
import { attribute } from "../names.ts";
import { metrics, type Reading } from "./definitions.ts";

/** Milliseconds between two looks at the event loop. */
const resolution = 20;
const nanoseconds = 1e9;

/** What the process uses: CPU, memory, and how late its event loop is. */
export class ProcessUsage {
  readonly #loop = monitorEventLoopDelay({ resolution });

  constructor() {
    this.#loop.enable();
  }

  /** The delay of the event loop begins anew with each reading. */
  read(set: Parameters<Reading>[0]): void {
    const { user, system } = process.cpuUsage();
    set(metrics.cpu, user / 1e6, { [attribute.cpuMode]: "user" });
    set(metrics.cpu, system / 1e6, { [attribute.cpuMode]: "system" });
    set(metrics.memory, process.memoryUsage.rss());
    // Before the first look there is none.
    const { mean, count } = this.#loop;
    set(metrics.loopMean, count === 0 ? 0 : late(mean));
    set(metrics.loopP99, count === 0 ? 0 : late(this.#loop.percentile(99)));
    this.#loop.reset();
  }

  close(): void {
    this.#loop.disable();
  }
}

/** The time of a timer without its own, in seconds. */
function late(measured: number): number {
  return Math.max(0, measured / nanoseconds - resolution / 1000);
}
