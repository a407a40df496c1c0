import process from "node:process";
import { explain } from "../errors.ts";
import { processIo } from "../io.ts";
import { serve } from "../serve.ts";
import type { Order, Report, Serving } from "./messages.ts";

/* A process that `parley dev` starts: it serves one version of a module. */

/** How long to wait for the process before to leave the port, in milliseconds. */
const patience = 10_000;

const tell = (report: Report): void => void process.send?.(report);

let listenNow: () => void;
const mayListen = new Promise<void>((resolve) => (listenNow = resolve));
const stops = new Set<() => void>();
let stopped = false;

function stop(): void {
  if (stopped) process.exit(0);
  stopped = true;
  for (const run of stops) run();
  if (stops.size === 0) process.exit(0);
}

/** Listens as soon as the process before has left the port. */
async function takeOver<T>(listen: () => Promise<T>): Promise<T> {
  tell("loaded");
  await mayListen;
  for (const began = performance.now(); ;) {
    try {
      const server = await listen();
      tell("ready");
      return server;
    } catch (error) {
      const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
      if (code !== "EADDRINUSE" || performance.now() - began > patience) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function begin({ file, options }: Serving): Promise<void> {
  const io = {
    ...processIo(),
    // The terminal sends Ctrl-C to all of its processes. The first one decides.
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
process.on("disconnect", stop);
process.on("message", (order: Order) => {
  if (order === "listen") listenNow();
  else if (order === "stop") stop();
  else void begin(order.serve);
});
