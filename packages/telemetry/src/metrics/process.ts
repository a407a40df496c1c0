import { monitorEventLoopDelay } from "node:perf_hooks";
import { attribute } from "../names.ts";
import { metrics, type Reading } from "./definitions.ts";

/** Sampling interval of the event loop's delay, in milliseconds. */
const resolution = 20;
const nanoseconds = 1e9;

/** Resource usage of the process: CPU, memory and event loop delay. */
export class ProcessUsage {
  readonly #loop = monitorEventLoopDelay({ resolution });

  constructor() {
    this.#loop.enable();
  }

  /** Reads the values, and resets the event loop delay. */
  read(set: Parameters<Reading>[0]): void {
    const { user, system } = process.cpuUsage();
    set(metrics.cpu, user / 1e6, { [attribute.cpuMode]: "user" });
    set(metrics.cpu, system / 1e6, { [attribute.cpuMode]: "system" });
    set(metrics.memory, process.memoryUsage.rss());
    // Before the first sample, the mean is NaN.
    const { mean, count } = this.#loop;
    set(metrics.loopMean, count === 0 ? 0 : late(mean));
    set(metrics.loopP99, count === 0 ? 0 : late(this.#loop.percentile(99)));
    this.#loop.reset();
  }

  close(): void {
    this.#loop.disable();
  }
}

/** The delay beyond the sampling interval, in seconds. */
function late(measured: number): number {
  return Math.max(0, measured / nanoseconds - resolution / 1000);
}
