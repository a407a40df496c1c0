import process from "node:process";
import { parentPort, workerData } from "node:worker_threads";

/*
 * A thread of the process of a module. Where `parley dev` was killed, the process finishes its tasks and ends. A module that never
 * yields keeps the process from hearing that: then this thread ends it.
 */

/** How long the process may take to hear that `parley dev` is gone, and beyond the grace of its tasks to end, in milliseconds. */
const patience = 2_000;

const poll = setInterval(() => {
  if (process.ppid === workerData) return;
  clearInterval(poll);
  let end = setTimeout(kill, patience);
  parentPort?.on("message", (grace: number) => {
    clearTimeout(end);
    end = setTimeout(kill, grace + patience);
  });
}, 250);

function kill(): void {
  process.kill(process.pid, "SIGKILL");
}
