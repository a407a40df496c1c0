import process from "node:process";
import { Worker } from "node:worker_threads";
import { codeOf, explain } from "../errors.ts";
import { processIo } from "../io.ts";
import { serve } from "../serve.ts";
import type { Listen, Order, Report, Serving } from "./index.ts";

/* A child process of `parley dev`: it serves one version of a module. */

/** Time for the previous process to release the port. */
const portTimeoutMs = 10_000;

const tell = (report: Report): void => {
  if (process.connected) process.send?.(report, undefined, undefined, () => {});
};

/** Kills this process after `parley dev` was killed, even if the module never yields. */
const watchdog = new Worker(new URL("./watchdog.js", import.meta.url), { workerData: process.ppid });
watchdog.unref();

let listenNow: (order: Listen) => void;
const mayListen = new Promise<Listen>((resolve) => (listenNow = resolve));
const stops = new Set<() => void>();
let stopped = false;
let graceMs = 0;

function stop(): void {
  if (stopped) return;
  stopped = true;
  tell("stopping");
  for (const run of stops) run();
  if (stops.size === 0) process.exit(0);
}

/** Listens once the previous process has released the port. If there is no previous process, another program has the port. */
async function takeOver<T>(listen: () => Promise<T>): Promise<T> {
  tell("loaded");
  const { after } = await mayListen;
  for (const began = performance.now(); ;) {
    try {
      return await listen();
    } catch (error) {
      const code = error instanceof Error ? codeOf(error.cause) : undefined;
      if (code !== "EADDRINUSE" || !after || performance.now() - began > portTimeoutMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function begin({ file, options }: Serving): Promise<void> {
  graceMs = options.grace * 1000;
  const io = {
    ...processIo(),
    // A terminal sends Ctrl-C to all of its processes. The parent decides.
    onInterrupt(run: (signal: "SIGTERM") => void) {
      const own = (): void => run("SIGTERM");
      stops.add(own);
      return () => void stops.delete(own);
    },
  };
  try {
    process.exitCode = await serve(io, file, options, takeOver);
  } catch (error) {
    tell({ failed: explain(error, { verbose: options.verbose === true }) });
    process.exitCode = 1;
  }
  process.disconnect?.();
  process.exit();
}

process.on("SIGINT", () => {});
process.on("disconnect", () => {
  watchdog.postMessage(graceMs);
  stop();
});
process.on("message", (order: Order) => {
  if (order === "stop") stop();
  else if ("after" in order) listenNow(order);
  else void begin(order.serve);
});
